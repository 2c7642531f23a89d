"""The command ``fedbandit trajectories``, which plays episodes in the functional twin and writes them as a data set."""

from pathlib import Path
from typing import Annotated

import typer

from fedbandit_envs.cli import terminal

_POLICY = "A policy of the twin: a name such as PureUCB1, `file.py:Class`, or JSON with name and constants."


def trajectories(
    env_id: Annotated[str, typer.Option("--env", help="An environment's id.")],
    policy: Annotated[str, typer.Option(help=_POLICY)],
    out: Annotated[Path, typer.Option(help="Folder for the data set.")] = Path("fedbandit-trajectories"),
    rounds: Annotated[int, typer.Option(help="Rounds of an episode.")] = 500,
    seeds: Annotated[int, typer.Option(help="Number of seeds, each of which is an episode.", min=1)] = 1000,
    first_seed: Annotated[int, typer.Option(help="The first seed; the others follow.", min=0)] = 0,
    set_: terminal.SetOption = None,
    stack: Annotated[str, typer.Option(help="Wrappers of the environment, as a JSON list.")] = "[]",
) -> None:
    """Plays a policy and writes what agents saw, did and got, with the best actions as labels.

    A key of --set is an argument of the environment. Each agent of each episode is a row of episodes.parquet, whose
    columns croissant.json describes. Needs the extras `[jax]` and `[data]`.

    Example: `fedbandit trajectories --env FedArms-v0 --policy PureUCB1 --seeds 100 --set num_agents=1`
    """
    from fedbandit_envs.basics.entry_points import make as make_named
    from fedbandit_envs.experiments.execute import progress
    from fedbandit_envs.experiments.spec import read_assignments, read_value, refusing

    terminal.require_extra("jax", "jax")
    terminal.require_extra("data", "pyarrow")
    from fedbandit_envs import functional

    known = {name: getattr(functional, name) for name in functional.__all__ if name.startswith("Pure")}
    with terminal.explained_play(out), refusing():
        arguments = {**read_assignments(set_ or []), "max_cycles": rounds}
        env = functional.make(env_id, read_value(stack), **arguments)
        chosen = make_named("policy", read_value(policy), known, functional.PurePolicy)
    with terminal.explained_play(out), progress(policy, seeds) as update:
        played = range(first_seed, first_seed + seeds)
        for path in functional.write_trajectories(
            env, chosen, played, out, done=lambda episodes: update(advance=episodes)
        ):
            typer.echo(path)
