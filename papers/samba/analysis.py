"""Tables, ratios and curves of the SAMBA paper's Figure 8, and of the page that compares noise with encryption.

K is the number of arms (each has a data owner), N the number of rounds. A run "in the open" is one without encryption.
"""

from collections.abc import Mapping, Sequence
from operator import attrgetter
from types import SimpleNamespace
from typing import Any

import numpy as np
from scipy.stats import linregress

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.experiments.result import RunResult
from fedbandit_envs.papers.reproduction.comparison import Ratio, Statement, all_hold, compare, mean_of
from fedbandit_envs.papers.reproduction.experiment import PanelRuns
from fedbandit_envs.papers.reproduction.page import Curves, Table, each
from fedbandit_envs.papers.samba import experiments
from fedbandit_envs.papers.samba.experiments import (
    ALGORITHMS,
    ENCRYPTED,
    MOST_ARMS,
    OPEN,
    PAPER_ROUNDS,
    SILENT,
)

ORDER_OF_MAGNITUDE = 10.0
SLOWEST, FASTEST, TWICE = "thompson", "epsilon-greedy", "pursuit"
PAPER_SECONDS = 15 * 60

PUBLISHED = {
    "epsilon-greedy": (48_172, 1_471),
    "epsilon-decreasing": (49_450, 1_918),
    "ucb": (47_952, 75),
    "thompson": (52_572, 194),
    "softmax": (47_737, 1_009),
    "pursuit": (45_119, 9_821),
}
"""Mean and standard deviation of the cumulative reward in the authors' 150 published runs, by algorithm.

The runs are on MovieLens with K = 100 arms and N = 1e5 rounds.
"""
PUBLISHED_RUNS = 150

_OPEN = ", in the open"
OPEN_BESIDE_ENCRYPTED = {title + _OPEN: title for title in ALGORITHMS.values()}
"""Names of the curves of runs without encryption, each with the name of the curve of the encrypted runs."""


def titled(curves: Curves, end: str = "") -> Curves:
    """Returns curves of algorithms under the names that the page shows.

    Args:
        curves: Curves by the algorithm's name.
        end: Text that is added to each title of an algorithm.
    """
    return {ALGORITHMS[name] + end: own for name, own in curves.items()}


class Times:
    """CPU seconds of runs with and without encryption, against the number of rounds N or the number of arms K.

    "Size" stands for N or K, whichever is varied.

    Attributes:
        letter: ``N`` or ``K``, whichever is varied.
        most: The largest size of these runs.
        papers_size: The largest size of the paper's runs.
        encrypted: CPU seconds of encrypted runs by algorithm and size, ``(seeds,)`` each.
        plain: CPU seconds of runs without encryption by algorithm and size, ``(seeds,)`` each.
        last: CPU seconds of encrypted runs at the largest size, by algorithm, ``(seeds,)`` each.
        lines: Straight lines fitted to mean CPU seconds of encrypted runs over size, by algorithm.
        overheads: CPU seconds with encryption divided by those without, by algorithm and size.
        same: For each encrypted run, whether its reward is that of the run without encryption on the same seed.
    """

    def __init__(self, runs: PanelRuns) -> None:
        """Computes the attributes from the results of a panel.

        Args:
            runs: Results with the labels ``line`` (algorithm), ``budget`` (N), ``arms`` (K) and ``plain``.
        """
        by_rounds = len(runs.values("budget")) > 1
        self.letter, column = ("N", "budget") if by_rounds else ("K", "arms")
        self.most, self.papers_size = max(runs.values(column)), PAPER_ROUNDS if by_rounds else MOST_ARMS
        encrypted, plain = (runs.where(plain=kind).lines(column) for kind in (False, True))
        self.encrypted, self.plain = (each(results, attrgetter("spent")) for results in (encrypted, plain))
        self.last = {name: own[self.most] for name, own in self.encrypted.items()}
        self.lines = {
            name: linregress(list(own), [spent.mean() for spent in own.values()])
            for name, own in self.encrypted.items()
        }
        self.overheads: dict[str, dict[int, Ratio]] = {name: {} for name in ALGORITHMS}
        self.same: list[bool] = []
        for name, own in encrypted.items():
            for size, run in own.items():
                beside = plain[name][size]
                self.overheads[name][size] = compare(run.spent, beside.spent)
                self.same += list(run.reward == beside.reward)

    def on_lines(self, size: int) -> dict[str, float]:
        """Returns the CPU seconds that the fitted straight lines predict at a size, by algorithm."""
        return {name: float(line.slope * size + line.intercept) for name, line in self.lines.items()}

    def furthest(self) -> float:
        """Returns the largest relative distance of mean CPU seconds from the fitted straight line."""
        return max(
            abs(spent.mean() / self.on_lines(size)[name] - 1)
            for name, own in self.encrypted.items()
            for size, spent in own.items()
        )

    def seconds(self) -> Table:
        """Yields a table with a line for each algorithm: CPU seconds with and without encryption, by size."""
        for name, own in self.encrypted.items():
            cells = {"CPU seconds, encrypted / in the open": ALGORITHMS[name]}
            for size, spent in own.items():
                plain = f"{self.plain[name][size].mean():.3f}"
                cells[f"{self.letter} = {size:,}"] = f"{mean_of(spent, ',.2f')} / {plain}"
            yield cells

    def fits(self) -> Table:
        """Yields a table with a line for each algorithm: its fitted straight line, and the overhead of encryption.

        The overhead is CPU seconds with encryption divided by those without, at the largest size.
        """
        for name, line in self.lines.items():
            yield {
                "line through them": ALGORITHMS[name],
                f"ms for each of {self.letter}": f"{1e3 * line.slope:.3f}",
                "at 0, s": f"{line.intercept:.2f}",
                "R^2": f"{line.rvalue**2:.4f}",
                f"encrypted / open at {self.letter} = {self.most:,}": self.overheads[name][self.most],
            }

    def curves(self) -> Curves:
        """Returns curves of CPU seconds over size for each algorithm, with encryption and without."""
        encrypted, plain = (each(spent, mean_of) for spent in (self.encrypted, self.plain))
        return {**titled(encrypted), **titled(plain, _OPEN)}

    def ratios(self) -> list[Ratio]:
        """Returns CPU seconds with encryption divided by those without, for all algorithms and sizes."""
        return [ratio for own in self.overheads.values() for ratio in own.values()]

    def least_explained(self) -> str:
        """Returns the name of the algorithm whose CPU seconds a straight line fits worst, by R^2."""
        return min(self.lines, key=lambda name: self.lines[name].rvalue ** 2)

    def is_slowest(self) -> Statement:
        """Returns the verdict on whether Thompson Sampling takes the most CPU time of all algorithms but Pursuit.

        Pursuit is left out, since it has two iterations in a round.
        """
        return all_hold(ratio.at_least(1) for ratio in self.over_others(SLOWEST))

    def double(self) -> Ratio:
        """Returns Pursuit's CPU seconds divided by the mean of the other algorithms', at the largest size."""
        others = [spent for name, spent in self.last.items() if name != TWICE]
        return compare(self.last[TWICE], np.mean(others, axis=0))

    def order(self) -> list[str]:
        """Returns the names of the algorithms with one iteration a round (all but Pursuit), the fastest first."""
        return sorted((name for name in self.last if name != TWICE), key=lambda name: self.last[name].mean())

    def over_others(self, name: str) -> list[Ratio]:
        """Returns an algorithm's CPU seconds divided by those of each other algorithm with one iteration a round.

        The ratios are at the largest size.

        Args:
            name: Name of the algorithm.
        """
        return [compare(self.last[name], self.last[rest]) for rest in self.order() if rest != name]


Rewards = Mapping[str, Mapping[int, Array]]
"""Cumulative rewards of runs without encryption, by algorithm and number of rounds N, ``(seeds,)`` each."""


def rewards_of(runs: PanelRuns) -> dict[str, dict[int, Array]]:
    """Returns the cumulative rewards of a panel's runs by algorithm and number of rounds N, ``(seeds,)`` each."""
    return {name: dict(zip(run.noted, run.rewards.T, strict=True)) for name, run in runs.by("line").items()}


def thompson_over(rewards: Rewards) -> dict[str, dict[int, Ratio]]:
    """Returns Thompson Sampling's mean reward divided by each algorithm's, by algorithm and number of rounds N."""
    best = rewards["thompson"]
    return {name: {at: compare(best[at], own[at]) for at in best} for name, own in rewards.items()}


def reward_table(rewards: Rewards, last: int) -> Table:
    """Yields a table with a line for each algorithm: its cumulative reward at each number of rounds N.

    Args:
        rewards: Cumulative rewards by algorithm and N.
        last: The N for which the table compares Thompson Sampling's reward with the algorithm's.
    """
    for name, ratios in thompson_over(rewards).items():
        yield {
            "reward, mean (sd)": ALGORITHMS[name],
            **{f"N = {budget:,}": _mean_sd(values) for budget, values in rewards[name].items()},
            "Thompson / it at the last N": "1" if name == "thompson" else ratios[last],
        }


def is_best(rewards: Rewards, budgets: Sequence[int]) -> Statement:
    """Returns the verdict on whether Thompson Sampling has the largest reward at each of the given numbers of rounds.

    Args:
        rewards: Cumulative rewards by algorithm and number of rounds.
        budgets: The numbers of rounds.
    """
    rivals = [own for name, own in thompson_over(rewards).items() if name != "thompson"]
    return all_hold(own[budget].at_least(1) for own in rivals for budget in budgets)


def most_first(rewards: Rewards, last: int) -> list[str]:
    """Returns the names of the algorithms in decreasing order of mean reward after ``last`` rounds."""
    return sorted(rewards, key=lambda name: -float(rewards[name][last].mean()))


def published(rewards: Rewards) -> Table:
    """Yields a table with a line for each algorithm: reward in the authors' published runs and in ours.

    They agree if the 95 % interval of their difference contains 0.
    """
    for name, (mean, sd) in PUBLISHED.items():
        ours = rewards[name][PAPER_ROUNDS]
        away = ours.mean() - mean
        half = 1.96 * np.sqrt(ours.var(ddof=1) / ours.size + sd**2 / PUBLISHED_RUNS)
        yield {
            "reward, mean (sd)": ALGORITHMS[name],
            "theirs": f"{mean:,} ({sd:,})",
            "ours": _mean_sd(ours),
            "ours less theirs (± 95 %)": f"{away:+,.0f} ± {half:,.0f}",
            "agrees?": "agrees" if abs(away) <= half else f"**differs**, by {away / mean:+.1%}",
        }


def _mean_sd(values: Array) -> str:
    return f"{values.mean():,.0f} ({values.std(ddof=1):,.0f})"


def independent_sd(run: SimpleNamespace) -> float:
    """Returns the standard deviation that cumulative reward would have if rewards were independent given the pulls.

    Args:
        run: The result of a run, with the means of the arms and the number of pulls of each.
    """
    means = np.array(run.means)
    return float(np.sqrt((run.pulls @ (means * (1 - means))).mean()))


Shares = Mapping[tuple[str, int], Mapping[str, Array]]
"""Shares of the CPU time, ``(seeds,)`` each, by run (a pair of algorithm and number of arms K) and by role."""


def shares_of(runs: PanelRuns) -> dict[tuple[str, int], dict[str, Array]]:
    """Returns each role's share of the CPU time, ``(seeds,)``, by run and role.

    A run is a pair of algorithm and number of arms K. The roles are ``comp``, ``controller`` and ``customer``; and for
    the owners, each of whom is a role, ``owner`` (the mean of their shares), ``all owners`` (the sum), and ``largest``
    and ``smallest`` (the share of the owner with the largest and with the smallest mean over seeds).
    """
    found = {}
    for labels, result in runs.rows:
        roles: dict[str, Array] = dict(zip(result.roles, result.seconds.T / result.spent, strict=True))
        owners = np.array([roles.pop(role) for role in result.roles if role.startswith("owner-")])
        means = owners.mean(axis=1)
        found[labels["line"], labels["arms"]] = roles | {
            "owner": owners.mean(axis=0),
            "all owners": owners.sum(axis=0),
            "largest": owners[means.argmax()],
            "smallest": owners[means.argmin()],
        }
    return found


def mean_shares(shares: Shares, role: str) -> Array:
    """Returns the mean over seeds of a role's share of the CPU time, for each run, ``(runs,)``."""
    means: Array = np.array([own[role].mean() for own in shares.values()])
    return means


def over_role(shares: Shares, role: str, other: str) -> Array:
    """Returns a role's mean share of the CPU time divided by another role's, for each run, ``(runs,)``.

    Args:
        shares: Shares of the CPU time by run and role.
        role: The role whose share is divided.
        other: The role by whose share it is divided.
    """
    return mean_shares(shares, role) / mean_shares(shares, other)


def share_table(runs: PanelRuns, shares: Shares) -> Table:
    """Yields a table with a line for each run: its CPU seconds and the roles' shares of them.

    Args:
        runs: The results of the panel.
        shares: Shares of the CPU time, as :func:`shares_of` returns them.
    """
    heads = {
        "Comp": "comp",
        "Controller": "controller",
        "data customer": "customer",
        "all owners": "all owners",
    }
    uneven = over_role(shares, "largest", "smallest")
    for row, (run, roles), ratio in zip(runs.rows, shares.items(), uneven, strict=True):
        yield {
            "algorithm": _title(run),
            "CPU seconds": mean_of(row.result.spent, ",.2f"),
            **{head: f"{roles[name].mean():.1%}" for head, name in heads.items()},
            "an owner": f"{roles['owner'].mean():.2%}",
            "largest owner / smallest": f"{ratio:.2f}",
        }


def share_curves(shares: Shares) -> dict[str, dict[int, Any]]:
    """Returns for each run a curve of percentages of the CPU time.

    At x = 1 is the mean owner's percentage, at 2 Controller's, at 3 the data customer's, and at 4 Comp's.
    """
    bars = list(enumerate(("owner", "controller", "customer", "comp"), start=1))
    return {_title(run): {x: mean_of(100 * own[role]) for x, role in bars} for run, own in shares.items()}


def comp_is_largest(shares: Shares) -> Statement:
    """Returns the verdict on whether Comp takes more CPU time than any other role, in every run."""
    rivals = ("controller", "customer", "largest")
    return all_hold(compare(own["comp"], own[name]).at_least(1) for own in shares.values() for name in rivals)


def comp_by_arms(shares: Shares) -> dict[str, dict[int, Ratio]]:
    """Returns for each algorithm the curve of Comp's share of the CPU time over the number of arms K."""
    found: dict[str, dict[int, Ratio]] = {}
    for (name, arms), own in shares.items():
        share = compare(own["comp"], np.ones(own["comp"].size))
        found.setdefault(f"{name}, Comp / all", {})[arms] = share
    return found


def comp_at_most_arms(shares: Shares) -> list[Ratio]:
    """Returns for each algorithm Comp's share of the CPU time at the largest K divided by that at the smallest."""
    most, least = (choose(arms for _, arms in shares) for choose in (max, min))
    return [compare(shares[name, most]["comp"], shares[name, least]["comp"]) for name in ALGORITHMS]


def around_one(ratios: Sequence[Ratio]) -> str:
    """Returns a text that says within how many of the ratios' intervals 1 lies, if instances are enough for that."""
    verdicts = [ratio.holds(1) for ratio in ratios]
    if "exploratory" in verdicts:
        return "whether it is 1: exploratory"
    return f"1 lies within {verdicts.count('holds')} of {len(verdicts)} intervals"


def _title(run: tuple[str, int]) -> str:
    name, arms = run
    return f"{ALGORITHMS[name]}, K = {arms}"


_SEES = {
    experiments.RANDOM: "nobody tells anything, or learns",
    SILENT: "nobody tells anything",
    experiments.SHARED: "every agent sees every other's true pulls and successes of each arm, in doubling rounds",
    experiments.PRIVATE: "the same under noise that each agent adds itself",
    experiments.PLACEBO: "noise alone: what messages are worth without data",
    OPEN: "the selector sees every owner's score in every round, and whom it picks",
    ENCRYPTED: "the customer sees the total, exactly; Comp masked and permuted scores; owners their own pulls "
    "and rewards; Controller and the wire ciphertexts",
}


def regrets_a_pull(runs: PanelRuns) -> Curves:
    """Returns regret per pull, ``(seeds,)``, by the run's name and epsilon.

    Regret is computed from the means of the arms that were pulled. A run without an epsilon is repeated for all
    epsilons. An encrypted run gets the regret of the run without encryption, since both pull the same arms.
    """

    def regret(result: Any) -> Array:
        total: Array = result.regret[-1].sum(axis=1) if isinstance(result, RunResult) else runs[OPEN].regret
        return total / pulls(runs)

    return each(runs.lines("epsilon"), regret)


def pulls(runs: PanelRuns) -> int:
    """Returns the number of pulls by all agents together; a run of data owners has as many rounds, one pull in each."""
    return experiments.AGENTS * runs.plan.scale.rounds


def protections(runs: PanelRuns) -> Table:
    """Yields a table with a line for each run: regret, bytes and CPU time per pull, and how data are protected.

    The last columns say which party sees what, whom one must trust, and the epsilon that is claimed.
    """
    found, best = regrets_a_pull(runs), max(runs[OPEN].means)
    for labels, result in runs.rows:
        line, at = labels["line"], labels.get("epsilon", runs.values("epsilon")[0])
        regret = found[line][at]
        sent, spent, trust, epsilon = _facts(result)
        yield {
            "run": f"{line} {at:g}" if "epsilon" in labels else line,
            "regret a pull (± 95 %)": mean_of(regret, ",.4f"),
            "reward a pull": f"{best - regret.mean():.4f}",
            "cumulative reward": f"{pulls(runs) * (best - regret.mean()):,.0f}",
            "/ silent regret": "1" if line == SILENT else compare(regret, found[SILENT][at]),
            "bytes a pull": f"{sent / pulls(runs):,.2f}",
            "CPU µs a pull": f"{spent / pulls(runs):,.2f}",
            "who sees what": _SEES[line],
            "trust": trust,
            "epsilon claimed": epsilon,
        }


def noise(runs: PanelRuns) -> dict[float, list[Ratio]]:
    """Returns three ratios for each epsilon: regret with noisy data divided by regret of three other runs.

    In these, agents share true data, share noise without data, and do not communicate, in this order.
    """
    found = regrets_a_pull(runs)
    return {
        epsilon: [
            compare(private, found[line][epsilon])
            for line in (experiments.SHARED, experiments.PLACEBO, SILENT)
        ]
        for epsilon, private in found[experiments.PRIVATE].items()
    }


def _facts(result: Any) -> tuple[float, float, str, str]:
    """Returns four facts about a run: bytes sent, CPU microseconds, whom one must trust, and the epsilon claimed.

    Bytes and microseconds are means over seeds. The epsilon is a text with the smallest epsilon that is claimed under
    each adjacency.
    """
    if not isinstance(result, RunResult):
        trust, claimed = "whoever selects", "none"
        if result.claim is not None:
            trust, claimed = result.claim["trust"], "infinite: the total is exact"
        return result.bytes.mean(), 1e6 * result.spent.mean(), trust, claimed
    sent = result.traffic["bytes"].sum(axis=1).mean() if result.traffic else 0.0
    spent = 1e6 * result.cpu_seconds / result.regret.shape[1]
    if not result.claims:
        return sent, spent, *(("everybody", "none") if result.traffic else ("nobody", "nothing is told"))
    known = [claim for claim in result.claims if claim.epsilon is not None]
    texts = []
    for adjacency in dict.fromkeys(claim.adjacency for claim in known):
        least = min((c for c in known if c.adjacency == adjacency), key=lambda c: c.epsilon or 0.0)
        texts.append(f"{least.epsilon:.3g} ({adjacency}, delta {least.delta:.0e})")
    return sent, spent, str(result.claims[0].trust), "; ".join(texts) or "none"
