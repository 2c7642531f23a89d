"""The command line, put together from the commands in the files of this folder."""

import typer

from fedbandit_envs.cli import audit, lab, leaderboard, listing, runs, samba, sweeps

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    # Rich's own markup would take words in square brackets for styles, and not print them.
    rich_markup_mode="markdown",
    help="Federated bandits: environments and baselines.",
)
app.command(name="list")(listing.list_)
for command in (
    runs.run,
    runs.quickstart,
    audit.audit,
    sweeps.reproduce,
    sweeps.sweep,
    sweeps.plot,
    sweeps.tune,
):
    app.command()(command)
for samba_command in (samba.samba, samba.samba_keys, samba.samba_role):
    app.command()(samba_command)
app.command()(lab.lab)
app.add_typer(leaderboard.app, name="leaderboard")
