"""Runs and their results: sweeps, reproductions, the leaderboard, the lab and the command line."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fedbandit_envs.leaderboard.runs.result import RunResult
    from fedbandit_envs.leaderboard.runs.simulate import simulate
    from fedbandit_envs.leaderboard.runs.spec import RunSpec

__all__ = ["RunResult", "RunSpec", "simulate"]


def __getattr__(name: str) -> Any:
    """Returns a name of ``__all__``, importing its module only now: a sandboxed policy starts faster without them."""
    from fedbandit_envs.leaderboard.runs import result, simulate, spec

    found = {"RunResult": result.RunResult, "RunSpec": spec.RunSpec, "simulate": simulate.simulate}
    if name not in found:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return found[name]
