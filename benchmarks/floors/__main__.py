"""Prints agent-rounds per CPU-second of the package and of its floors, and their ratio, measured in turns.

OMP_NUM_THREADS=1 python -m benchmarks.floors                         # three minutes
OMP_NUM_THREADS=1 python -m benchmarks.floors --only SS-UCB --turns 9
"""

import argparse
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np

from benchmarks.floors import arms, draws, linear
from benchmarks.floors.rates import machine_rates
from benchmarks.machine import describe
from fedbandit_envs.baselines import BASELINES
from fedbandit_envs.randomness.streams import row_seeds
from fedbandit_envs.registry.registration import make_federation

HORIZON = 10**6


class Plays(Protocol):
    """What can be measured."""

    def play(self, rounds: int) -> None: ...


class Packaged:
    """A baseline through the public batch API; without a name, the environment alone with the same actions always."""

    def __init__(self, env_id: str, name: str | None, seeds: range, action: Any = 0, **kwargs: Any) -> None:
        env = make_federation(env_id, num_agents=10, max_cycles=HORIZON, **kwargs)
        self._env = env if name is None else BASELINES[name].wrap(env)
        self._observation = self._env.reset_batch(seeds).observation
        shape = (len(seeds), 10)
        self.regret = np.zeros(shape)
        if name is None:
            same = np.zeros((*shape, *np.shape(action)), np.asarray(action).dtype) + action
            self._act: Callable[[Any], Any] = lambda observation: same
        else:
            policy = BASELINES[name].make_policy()
            policy.reset(self._env.policy_spec, row_seeds(seeds, 10))
            self._act = policy.act

    def play(self, rounds: int) -> None:
        observation = self._observation
        for _ in range(rounds):
            observation, _, _, info = self._env.step_batch(self._act(observation))
            self.regret += info["regret"]
        self._observation = observation


class Race(NamedTuple):
    """A run of the package and the floors below it.

    Attributes:
        package: Makes what the package plays, given seeds.
        floors: Make floors, by name, given seeds.
        replicas: How many, of ten agents each.
    """

    package: Callable[[range], Packaged]
    floors: Mapping[str, Callable[[range], Any]]
    replicas: int


def _rows(floor: type) -> dict[str, Any]:
    return {"by rounds": partial(floor, by_rounds=True), "by agents": floor}


RACES = {
    "words alone": Race(
        partial(draws.Words, threefry=True), {"by agents": draws.Words}, 20
    ),
    "linear alone": Race(partial(Packaged, "FedLinear-v0", None), _rows(linear.FirstArm), 20),
    "LinUCB": Race(partial(Packaged, "FedLinear-v0", "LinUCB"), _rows(linear.LinUCB), 20),
    "arms alone": Race(
        partial(Packaged, "FedArms-v0", None), {"by agents": arms.FirstArm}, 200
    ),
    "UCB1": Race(
        partial(Packaged, "FedArms-v0", "UCB1"),
        {
            "by rounds": partial(arms.UCB1, kernel=arms.by_rounds),
            "one row": partial(arms.UCB1, kernel=arms.one_row),
            "by agents": arms.UCB1,
        },
        200,
    ),
}  # fmt: skip
"""By name: ten agents; 100 arms of ten dimensions, ten Bernoulli arms."""


def seconds(player: Plays, rounds: int) -> float:
    """Returns the CPU seconds that a player takes."""
    start = time.process_time()
    player.play(rounds)
    return time.process_time() - start


def measure(race: Race, turns: int, budget: float) -> dict[str, list[float]]:
    """Measures the package and its floors in turns, all on the same rounds of the same instances.

    Args:
        race: What is measured.
        turns: How often.
        budget: CPU seconds that the package has for a turn.

    Returns:
        Agent-rounds per CPU-second by name, ``"package"`` first, one a turn.
    """
    seeds = range(race.replicas)
    players: dict[str, Any] = {"package": race.package(seeds)}
    players |= {name: make(seeds) for name, make in race.floors.items()}
    # Twice: kernels are compiled in the first one.
    for rounds in (300, 100):
        spent = {name: seconds(player, rounds) for name, player in players.items()}
    rounds = max(1, round(100 * budget / spent["package"]))
    rates: dict[str, list[float]] = {name: [] for name in players}
    for _ in range(turns):
        for name, player in players.items():
            rates[name].append(race.replicas * 10 * rounds / seconds(player, rounds))
    return rates


def quartiles(values: Iterable[float]) -> str:
    """Returns the median and, in brackets, the quartiles, to three digits."""
    low, middle, high = np.quantile(list(values), [0.25, 0.5, 0.75])
    return f"{middle:.3g} [{low:.3g}, {high:.3g}]"


def lines(only: Iterable[str], turns: int, budget: float) -> Iterator[tuple[str, ...]]:
    """Measures and yields the cells of the table's lines, one for each run and floor."""
    for run in only:
        rates = measure(RACES[run], turns, budget)
        package = np.array(rates.pop("package"))
        for name, floor in rates.items():
            cells = quartiles(package / 1e6), quartiles(np.array(floor) / 1e6)
            yield run, str(RACES[run].replicas), name, *cells, quartiles(package / np.array(floor))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=RACES, action="append", help="again for several; all by default")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0, help="of CPU time for the package's turn")
    options = parser.parse_args()
    print(describe())
    rates = machine_rates()
    print(", ".join(f"{value:.3g} {unit}" for unit, value in rates.items()))
    print("million agent-rounds per CPU-second, medians [quartiles] of", options.turns, "turns\n")
    print(f"{'run':18} {'floor':9} {'package':>20} {'floor':>20} {'package / floor':>22}")
    for run, _, name, package, floor, ratio in lines(options.only or RACES, options.turns, options.seconds):
        print(f"{run:18} {name:9} {package:>20} {floor:>20} {ratio:>22}", flush=True)


if __name__ == "__main__":
    main()
