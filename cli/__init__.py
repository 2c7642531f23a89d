"""The command line, put together from the commands in the files of this folder.

Each command imports what it needs when it is called, so that ``fedbandit --help`` is fast.
"""

from typing import Any

import typer
from typer.core import TyperGroup

from fedbandit_envs.cli import audit, lab, listing, run, samba, terminal


class _Leaderboard(TyperGroup):
    """The group ``leaderboard``, whose commands are imported when one of them is called: options name the suites."""

    def _loaded(self) -> TyperGroup:
        from fedbandit_envs.cli.leaderboard import app

        group = typer.main.get_command(app)
        assert isinstance(group, TyperGroup)
        return group

    def list_commands(self, ctx: Any) -> list[str]:
        """Returns the names of the commands."""
        return self._loaded().list_commands(ctx)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Returns a command by its name."""
        return self._loaded().get_command(ctx, cmd_name)


app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    # Rich's own markup would take words in square brackets for styles, and not print them.
    rich_markup_mode="markdown",
    help="Federated bandits: environments and baselines.",
)


app.callback()(terminal.main)
app.command(name="list")(listing.list_)
for command in (
    run.run,
    run.quickstart,
    audit.audit,
    run.reproduce,
    run.sweep,
    run.plot,
    run.tune,
    samba.samba,
    samba.samba_keys,
    samba.samba_role,
    lab.lab,
):
    app.command()(command)
app.add_typer(
    typer.Typer(cls=_Leaderboard, no_args_is_help=True),
    name="leaderboard",
    help="Ranks baselines and submitted policies by results that anybody can reproduce.",
)
