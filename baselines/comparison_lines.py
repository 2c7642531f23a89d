"""Lines of pages that compare silence, the papers' private federations and ours, and which baseline each line shows."""

from collections.abc import Mapping
from types import ModuleType

from fedbandit_envs import baselines
from fedbandit_envs.baselines.tuned import TUNED_NAMES, constants
from fedbandit_envs.registry.discovery import registered

SILENT, TUNED, PAPER, PAPER_TUNED = "untuned silence", "tuned silence", "paper's form", "paper's form, tuned"
OURS, OURS_TUNED, TRUE, PLACEBO = "weighted", "weighted, tuned", "true data", "placebo"
LINES = (SILENT, TUNED, PAPER, PAPER_TUNED, OURS, OURS_TUNED, PLACEBO, TRUE)


def _names(family: ModuleType) -> dict[str, str]:
    silent, paper, ours = (family.COMPARISON[which] for which in ("silent", "paper", "ours"))
    tuned = TUNED_NAMES[ours]
    if constants(tuned) == constants(TUNED_NAMES[silent]):
        # With the same constants it would be the same run; pages show one.
        tuned = ours
    forms = (family.PLACEBOS[ours], family.ON_TRUE_DATA[ours])
    names = (silent, TUNED_NAMES[silent], paper, TUNED_NAMES[paper], ours, tuned, *forms)
    return dict(zip(LINES, names, strict=True))


BASELINE_OF: Mapping[str, Mapping[str, str]] = {
    family.__name__.split(".")[-2]: _names(family)
    for family in registered(baselines)
    if hasattr(family, "COMPARISON")
}
"""Names of baselines by problem and by line of :data:`LINES`."""
