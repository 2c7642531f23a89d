"""The command line: put together here."""

import typer

from fedbandit_envs.leaderboard.cli import audit, lab, leaderboard, runs, samba, sweeps

app = typer.Typer(
    no_args_is_help=True, add_completion=False, help="Federated bandits: environments and baselines."
)
app.command(name="list")(runs.list_)
app.command()(runs.run)
app.command()(runs.quickstart)
app.command()(audit.audit)
app.command()(sweeps.reproduce)
app.command()(sweeps.tune)
app.command()(samba.samba)
app.command()(samba.samba_keys)
app.command()(samba.samba_role)
app.command()(lab.lab)
app.add_typer(leaderboard.app, name="leaderboard")
