"""The command line, put together from the commands in the files of this folder.

Each command imports what it needs when it is called, so that ``fedbandit --help`` is fast.
"""

import typer

from fedbandit_envs.cli import audit, lab, leaderboard, listing, privacy, run, samba, terminal, trajectories

app = typer.Typer(
    cls=terminal.Commands,
    context_settings={"help_option_names": ["--help", "-h"]},
    no_args_is_help=True,
    add_completion=False,
    # Rich's own markup would take words in square brackets for styles, and not print them.
    rich_markup_mode="markdown",
    help="Federated bandits: environments and baselines. Begin with `fedbandit quickstart`, then `fedbandit list`.",
)


app.callback(invoke_without_command=True)(terminal.main)
app.command(name="list")(listing.list_)
for command in (
    run.run,
    run.quickstart,
    privacy.privacy,
    audit.audit,
    run.reproduce,
    run.sweep,
    run.plot,
    run.tune,
    trajectories.trajectories,
    samba.samba,
    samba.samba_keys,
    samba.samba_role,
    lab.lab,
):
    app.command()(command)
app.add_typer(leaderboard.app, name="leaderboard")
