"""Power of the test by which entries of silent tracks are refuted that pool rows which are not watched.

python benchmarks/pooling_power.py [--repeats 1000] [--watched 1 2 3 4]

An entry that knows which rows are watched plays these honestly by UCB1, and each other row, with the probability in the
column `share`, by UCB1 on the sums of all rows of its replica. Replicas are drawn from 200 of each task of
`arms-quick`, as many a time as the suite has. Other entries spoil one row of each replica, so that its regret is three
times as large (`spoiled`), or have less regret in all rows that are not watched, by the share in the column (`less`).
The column `gain` is the share by which all this lowers the entry's mean regret.
"""

import argparse

import numpy as np

from fedbandit_envs.baselines.arms import UCB1
from fedbandit_envs.experiments import simulate
from fedbandit_envs.leaderboard.pooling import LEVEL, chance
from fedbandit_envs.leaderboard.suites import SUITES

REPLICAS = 200


class Pooled(UCB1):
    """UCB1 on the sums of all rows of a replica."""

    def act(self, observation):
        sums = {name: array.sum(axis=1, keepdims=True) + 0 * array for name, array in observation.items()}
        return super().act(
            {**observation, **{name: sums[name] for name in sums if name.startswith("total_")}}
        )


def refuted(regrets, watched):
    """Whether the entry is: tests of each task and of all together share the level; see `pooling.suspicion`."""
    tests = [*regrets, np.concatenate(regrets)]
    masks = [np.arange(one.shape[1]) < watched + np.zeros((len(one), 1)) for one in tests]
    return min(map(chance, tests, masks)) < LEVEL / len(tests)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=1000)
    parser.add_argument("--watched", type=int, nargs="+", default=[1, 2, 3, 4])
    options = parser.parse_args()
    tasks = SUITES["arms-quick"].tasks
    honest, pooled = (
        [simulate(task.federation(), policy(), range(REPLICAS)).regret[-1] for task in tasks]
        for policy in (UCB1, Pooled)
    )
    cases = [("pools", share) for share in (1.0, 0.5, 0.4, 0.3, 0.2, 0.1)]
    cases += [("spoiled", 1.0), ("less", 0.15), ("less", 0.1), ("less", 0.05)]
    print(f"{'watched':>8}{'entry':>9}{'share':>7}{'gain':>8}{'refuted':>9}")
    for watched in options.watched:
        for entry, share in cases:
            rng = np.random.default_rng([watched, int(100 * share)])
            found, gains = 0, []
            for _ in range(options.repeats):
                regrets = []
                for mine, together, task in zip(honest, pooled, tasks, strict=True):
                    drawn = rng.choice(REPLICAS, task.seeds, replace=False)
                    own = rng.permuted(mine[drawn], axis=1)
                    chosen = rng.random(own.shape) < share
                    regret = own * (1 - share) if entry == "less" else np.where(chosen, together[drawn], own)
                    if entry == "spoiled":
                        regret[:, -1] = 3 * own[:, -1]
                    regret[:, :watched] = own[:, :watched]
                    regrets.append(regret)
                    gains.append(1 - regret.mean() / own.mean())
                found += refuted(regrets, watched)
            share_found = found / options.repeats
            print(f"{watched:8}{entry:>9}{share:7.2f}{np.mean(gains):8.3f}{share_found:9.3f}", flush=True)


if __name__ == "__main__":
    main()
