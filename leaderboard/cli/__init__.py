"""The command line: a file a command, put together here."""

import typer

from fedbandit_envs.leaderboard.cli import audit, leaderboard, quickstart, reproduce, run, samba, tune
from fedbandit_envs.leaderboard.cli import list as list_

app = typer.Typer(
    no_args_is_help=True, add_completion=False, help="Federated bandits: environments and baselines."
)
app.command(name="list")(list_.list_)
for command in (run.run, quickstart.quickstart, audit.audit, reproduce.reproduce, tune.tune):
    app.command()(command)
for command in (samba.samba, samba.samba_keys, samba.samba_role):
    app.command()(command)
app.add_typer(leaderboard.app, name="leaderboard")
