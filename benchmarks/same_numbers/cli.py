"""Writes down what commands print: every command's help, lists, and runs as JSON; a file a command.

OMP_NUM_THREADS=1 python cli.py OUT_FOLDER
"""

import argparse
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

FEDBANDIT = Path(sys.executable).with_name("fedbandit")

GROUPS = ("leaderboard",)
"""Commands that have commands of their own."""

RUNS = {
    "run-procurement": "run SS-UCB FedProcurement-v0 --rounds 200 --seeds 3 --json",
    "run-procurement-private": "run P-FCB FedProcurement-v0 --rounds 1000 --seeds 3 --json --set pair=as_given",
    "run-linear": "run LinUCB FedLinear-v0 --rounds 200 --seeds 3 --json",
    "run-linear-private": "run FedUCB-min FedLinear-v0 --rounds 300 --seeds 3 --json --set privatizer.epsilon=2",
    "run-linear-async": "run FedLinUCB FedLinearAsync-v0 --rounds 500 --seeds 3 --json",
    "run-exposure": "run FairX-LinUCB FedExposure-v0 --rounds 200 --seeds 3 --json",
    "run-exposure-private": "run Priv-FairX-weighted FedExposure-v0 --rounds 300 --seeds 3 --json",
    "run-arms": "run UCB1 FedArmsMovieLens-v0 --rounds 500 --seeds 3 --json --set num_arms=10 --check-rows",
    "run-arms-private": "run MOSS-weighted FedArms-v0 --rounds 500 --seeds 3 --json --set epsilon=0.1",
    "run-arms-lossy": "run Fed-UCB1 FedArms-v0 --rounds 500 --seeds 3 --json --set loss=0.2 --set topology=ring",
    "run-liars": "run FCB FedProcurement-v0 --rounds 500 --seeds 3 --json --stack "
    """'[["fedbandit_envs.wrappers:Byzantine", {"agents": 0.3}]]'""",
    "run-learned": "run PPO-arms FedArms-v0 --rounds 300 --seeds 3 --json",
    "run-table": "run SS-UCB FedProcurement-v0 --rounds 200 --seeds 3",
    "run-entry-point": "run fedbandit_envs.baselines.arms:UCB1 FedArms-v0 --rounds 200 --seeds 3 --json",
    "run-unknown": "run SS-UBC FedProcurement-v0",
    "run-unknown-argument": "run SS-UCB FedProcurement-v0 --set colour=red",
    "audit": "audit all --samples 2000 --json",
    "samba": "samba --algorithm ucb --arms 5 --budget 60 --seed 0 --json",
    "samba-tcp": "samba --algorithm thompson --arms 3 --budget 40 --seed 1 --transport tcp --json",
    "samba-plain": "samba --algorithm pursuit --arms 10 --budget 300 --seed 0 --plain --json",
    "quickstart": "quickstart --rounds 500 --seeds 3 --out quickstart",
    "tune": "tune arms --baseline UCB1 --rounds 300 --seeds 2 --workers 1 --out tuning",
}
"""What is printed, by name; on the command line as it stands."""

_HELP = re.compile(r"^│ ([a-z][a-z-]*)  ", re.MULTILINE)
# Progress bars, which come with errors.
_PROGRESS = re.compile(r"^.*\d:\d\d:\d\d.*\n", re.MULTILINE)


def lasting(text: str, folder: str) -> str:
    """Returns what a command has printed without what is another in every run: seconds, progress, the folder's name."""
    try:
        found = json.loads(text)
    except ValueError:
        return _PROGRESS.sub("", text).replace(str(Path(folder).resolve()), "FOLDER")
    for name in ("cpu_seconds", "wall_seconds"):
        found.pop(name, None)
    return json.dumps(found, indent=2) + "\n"


def printed(words: list[str], folder: str) -> str:
    """Returns what a command prints on both streams, and its exit code."""
    plain = {"COLUMNS": "120", "NO_COLOR": "1", "TERM": "dumb"}
    done = subprocess.run(
        [FEDBANDIT, *words], env={**os.environ, **plain}, capture_output=True, text=True, cwd=folder
    )
    wrong = f"exit code {done.returncode}\n{done.stderr}" if done.returncode else ""
    return lasting(done.stdout + wrong, folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:

        def keep(name: str, words: list[str]) -> str:
            text = printed(words, folder)
            (options.out / f"{name}.txt").write_text(text)
            print(name, flush=True)
            return text

        for command in _HELP.findall(keep("help", ["--help"])):
            text = keep(f"help-{command}", [command, "--help"])
            if command in GROUPS:
                for one in _HELP.findall(text):
                    keep(f"help-{command}-{one}", [command, one, "--help"])
        keep("list", ["list"])
        for name, line in RUNS.items():
            keep(name, shlex.split(line))


if __name__ == "__main__":
    main()
