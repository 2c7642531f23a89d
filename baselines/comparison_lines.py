"""Lines of the comparison pages, and the baseline that each line shows for each problem.

The pages compare agents without communication ("silence"), the papers' private federations, and this package's.
"""

from collections.abc import Mapping
from types import ModuleType

from fedbandit_envs import baselines
from fedbandit_envs.baselines.tuned import TUNED_NAMES, constants
from fedbandit_envs.registry.registration import registered

SILENT, TUNED, PAPER, PAPER_TUNED = "untuned silence", "tuned silence", "paper's form", "paper's form, tuned"
OURS, OURS_TUNED, TRUE, PLACEBO = "weighted", "weighted, tuned", "true data", "placebo"
TRUE_TUNED = "true data, tuned"
LINES = (SILENT, TUNED, PAPER, PAPER_TUNED, OURS, OURS_TUNED, PLACEBO, TRUE)


def _names(family: ModuleType) -> dict[str, str]:
    silent, paper, ours = (family.COMPARISON[which] for which in ("silent", "paper", "ours"))
    tuned = TUNED_NAMES[ours]
    if constants(tuned) == constants(TUNED_NAMES[silent]):
        # This package's federation takes the constants of tuned silence by default. Where its own tuning has found the
        # same ones, the tuned form would play the same runs, so that the page shows the untuned form on both lines.
        tuned = ours
    true = family.ON_TRUE_DATA[ours]
    forms = (family.PLACEBOS[ours], true, true if tuned == ours else f"{true}-tuned")
    names = (silent, TUNED_NAMES[silent], paper, TUNED_NAMES[paper], ours, tuned, *forms)
    return dict(zip((*LINES, TRUE_TUNED), names, strict=True))


BASELINE_OF: Mapping[str, Mapping[str, str]] = {
    family.__name__.split(".")[-2]: _names(family)
    for family in registered(baselines)
    if hasattr(family, "COMPARISON")
}
"""For each problem (by name), the name of the baseline that each line of :data:`LINES` shows.

The leaderboard's line :data:`TRUE_TUNED` is there too: the weighted form without noise, with the constants of its tuned
form, so that both can be compared.
"""
