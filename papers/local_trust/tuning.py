"""Tunes clips and times of releases for claims about all data of an agent; prints them for ``OF_AGENTS``.

python -m fedbandit_envs.papers.local_trust.tuning [--rounds 10000] [--seeds 2]
"""

import argparse

from joblib import Parallel, delayed

from fedbandit_envs.experiments.spec import RunSpec
from fedbandit_envs.experiments.tuning import FIRST_SEED
from fedbandit_envs.papers.local_trust.experiments import OF_AGENTS, protecting_agents
from fedbandit_envs.papers.trust.experiments import Releases
from fedbandit_envs.papers.trust.tuning import best


def _task(line: str, epsilon: float, rounds: int, seeds: int) -> Releases:
    def play(releases: Releases) -> RunSpec:
        return protecting_agents(line, epsilon, rounds, seeds, releases=releases, first_seed=FIRST_SEED)

    return best(play)


def main() -> None:
    """Tunes each line at each epsilon."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10_000)
    parser.add_argument("--seeds", type=int, default=2)
    sizes = vars(parser.parse_args())
    found = Parallel(n_jobs=2, verbose=5)(delayed(_task)(*task, **sizes) for task in OF_AGENTS)
    for task, releases in zip(OF_AGENTS, found, strict=True):
        print(task, releases)


if __name__ == "__main__":
    main()
