"""Runs every experiment of `fedbandit reproduce`, small, so that the pages of two commits can be compared.

OMP_NUM_THREADS=1 python pages.py OUT_FOLDER [EXPERIMENT ...]
"""

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

FEDBANDIT = Path(sys.executable).with_name("fedbandit")


class Size(NamedTuple):
    """How much of an experiment is played: the least that still fills all of its tables."""

    scale: str = "small"
    rounds: int = 2000
    trials: int = 3


USUAL = (
    "pfcb-exp1", "pfcb-exp2", "pfcb-exp3", "pfcb-fig2", "feducb-fig1a", "feducb-fig1b", "feducb-fig1c", "feducb-fig2",
    "feducb-horizon", "feducb-graphs", "byzantine", "fedlinucb", "fairx-exp1", "fairx-exp2", "fairx-exp3",
    "fairx-exp4", "fairx-solver", "fairx-private", "fairx-shares", "fairx-price", "samba-fig8c", "samba-privacy",
)  # fmt: skip
SIZES = dict.fromkeys(USUAL, Size()) | {
    "feducb-critique": Size("tiny", 500),
    "private-federation": Size("tiny", 2000),
    "private-budget": Size("tiny", 2000),
    # Of these three, times are measured and not compared; encryption makes them dear.
    "samba-fig8a": Size(rounds=400, trials=2),
    "samba-fig8b": Size(rounds=120, trials=2),
    "samba-fig8d": Size(rounds=120, trials=2),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("experiments", nargs="*", metavar="EXPERIMENT", help="all by default")
    options = parser.parse_args()
    failed = []
    for name in options.experiments or SIZES:
        size = SIZES[name]
        words = [FEDBANDIT, "reproduce", name, "--scale", size.scale, "--rounds", size.rounds]
        words += ["--trials", size.trials, "--workers", 1, "--out", options.out]
        start = time.time()
        done = subprocess.run(
            [str(word) for word in words],
            env={**os.environ, "COLUMNS": "200"},
            capture_output=True,
            text=True,
        )
        print(f"{name}: {time.time() - start:.0f} s" + (", FAILED" if done.returncode else ""), flush=True)
        if done.returncode:
            failed.append(name)
            print(done.stderr[-3000:], flush=True)
    sys.exit(f"failed: {', '.join(failed)}" if failed else 0)


if __name__ == "__main__":
    main()
