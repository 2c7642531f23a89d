"""Tunes clips and times of releases for the panels that protect all data of an agent; writes ``tuned.json``.

python -m fedbandit_envs.papers.trust.tuning [--problems NAMES] [--rounds 10000] [--agents 30] [--seeds 4]
"""

import argparse
import json
from collections.abc import Callable
from itertools import product
from pathlib import Path

from joblib import Parallel, delayed

from fedbandit_envs.experiments.spec import RunSpec
from fedbandit_envs.experiments.tuning import FIRST_SEED
from fedbandit_envs.papers.trust.experiments import AGENT, EPSILONS, LOCAL, PROBLEMS, SERVER, Releases, run

GRID = tuple(map(Releases._make, product((0.03, 0.3, 1.0), (8, 32, 128), (1, 3))))
"""The clips, first rounds and numbers of releases that are tried."""


def best(play: Callable[[Releases], RunSpec]) -> Releases:
    """Returns the clip and the times of releases with the least mean regret.

    Args:
        play: Returns the run of given releases, on seeds that no experiment plays.
    """
    return min(GRID, key=lambda releases: play(releases).run().regret[-1].mean())


def _task(name: str, line: str, epsilon: float, rounds: int, agents: int, seeds: int) -> Releases:
    rounds = max(2, round(rounds * PROBLEMS[name].rounds))
    settings = (name, AGENT, line, rounds, seeds, agents, epsilon)
    return best(lambda releases: run(*settings, releases=releases, first_seed=FIRST_SEED))


def main() -> None:
    """Tunes the lines of some problems at each epsilon, and writes the constants into the file beside this one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problems", nargs="+", default=list(PROBLEMS))
    parser.add_argument("--rounds", type=int, default=10_000)
    parser.add_argument("--agents", type=int, default=30)
    parser.add_argument("--seeds", type=int, default=4)
    sizes = vars(parser.parse_args())
    tasks = list(product(sizes.pop("problems"), (LOCAL, SERVER), EPSILONS))
    found = Parallel(n_jobs=2, verbose=5)(delayed(_task)(*task, **sizes) for task in tasks)
    file = Path(__file__).with_name("tuned.json")
    tuned = json.loads(file.read_text())
    for (name, line, epsilon), releases in zip(tasks, found, strict=True):
        of_line = tuned.setdefault(name, {}).setdefault(f"{line}, epsilon {epsilon:g}", {})
        of_line[str(sizes["agents"])] = releases
    file.write_text(json.dumps(tuned, indent=1) + "\n")


if __name__ == "__main__":
    main()
