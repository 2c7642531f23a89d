"""The command line: a file a command, put together here."""

import typer

from fedbandit_envs.leaderboard.cli import audit, lab, leaderboard, quickstart, reproduce, run, samba, tune
from fedbandit_envs.leaderboard.cli import list as list_

app = typer.Typer(
    no_args_is_help=True, add_completion=False, help="Federated bandits: environments and baselines."
)
app.command(name="list")(list_.list_)
app.command()(run.run)
app.command()(quickstart.quickstart)
app.command()(audit.audit)
app.command()(reproduce.reproduce)
app.command()(tune.tune)
app.command()(samba.samba)
app.command()(samba.samba_keys)
app.command()(samba.samba_role)
app.command()(lab.lab)
app.add_typer(leaderboard.app, name="leaderboard")
