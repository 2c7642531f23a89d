"""Runs and their results: sweeps, reproductions, the leaderboard, the lab and the command line."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fedbandit_envs.experiments.plots import plot
    from fedbandit_envs.experiments.result import RunResult
    from fedbandit_envs.experiments.simulate import simulate
    from fedbandit_envs.experiments.spec import RunSpec
    from fedbandit_envs.experiments.sweep import sweep

__all__ = ["RunResult", "RunSpec", "plot", "simulate", "sweep"]


def __getattr__(name: str) -> Any:
    """Returns a name of ``__all__``, importing its module only now: a sandboxed policy starts faster without them."""
    from fedbandit_envs.experiments import plots, result, simulate, spec, sweep

    found = {
        "RunResult": result.RunResult,
        "RunSpec": spec.RunSpec,
        "plot": plots.plot,
        "simulate": simulate.simulate,
        "sweep": sweep.sweep,
    }
    if name not in found:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return found[name]
