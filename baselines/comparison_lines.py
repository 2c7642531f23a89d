"""Lines of the comparison pages, and the baseline that each line shows for each problem.

The pages compare agents without communication ("silence"), the papers' private federations, and this package's.
"""

from collections.abc import Mapping
from types import ModuleType

from fedbandit_envs import baselines
from fedbandit_envs.baselines.baseline import forms
from fedbandit_envs.baselines.tuned import TUNED_NAMES, best_silence, by_epsilon
from fedbandit_envs.registry.registration import registered

SILENT, TUNED, PAPER, PAPER_TUNED = "untuned silence", "tuned silence", "paper's form", "paper's form, tuned"
OURS, OURS_TUNED, TRUE, PLACEBO = "weighted", "weighted, tuned", "true data", "placebo"
TRUE_TUNED = "true data, tuned"
LINES = (SILENT, TUNED, PAPER, PAPER_TUNED, OURS, OURS_TUNED, PLACEBO, TRUE)


def _names(family: ModuleType) -> dict[str, str]:
    silent, paper, ours = (family.COMPARISON[which] for which in ("silent", "paper", "ours"))
    placebo, true, known = family.PLACEBOS[ours], family.ON_TRUE_DATA[ours], forms(family)

    def tuned(of: str) -> str:
        # A form that was not tuned, or whose tuning has found the constants that it has, is shown on both lines.
        name, own = TUNED_NAMES.get(of, of), known[of].policy_kwargs
        found = by_epsilon(name).values() if name != of else ()
        return name if any({**own, **one} != own for one in found) else of

    best = best_silence(_problem(family)) or silent
    names = (silent, best, paper, tuned(paper), ours, tuned(ours), placebo, true, tuned(true))
    return dict(zip((*LINES, TRUE_TUNED), names, strict=True))


def _problem(family: ModuleType) -> str:
    return family.__name__.split(".")[-2]


BASELINE_OF: Mapping[str, Mapping[str, str]] = {
    _problem(family): _names(family) for family in registered(baselines) if hasattr(family, "COMPARISON")
}
"""For each problem (by name), the name of the baseline that each line of :data:`LINES` shows.

Tuned silence is the best silent baseline of the problem's suite. The leaderboard's line :data:`TRUE_TUNED` is there
too: the weighted form without noise, with constants of its own.
"""
