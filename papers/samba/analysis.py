"""Tables, ratios and curves of SAMBA's Figure 8, and of the page that sets noise beside encryption."""

from collections.abc import Mapping, Sequence
from operator import attrgetter
from types import SimpleNamespace
from typing import Any

import numpy as np
from scipy.stats import linregress

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.leaderboard.reproduction.comparison import Ratio, Statement, all_hold, compare
from fedbandit_envs.leaderboard.reproduction.page import Curves, Table, each, over_seeds
from fedbandit_envs.leaderboard.reproduction.panel_runs import PanelRuns
from fedbandit_envs.leaderboard.runs.result import RunResult
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
"""Mean and standard deviation of the authors' 150 published runs: MovieLens, K = 100, N = 1e5."""
PUBLISHED_RUNS = 150

_OPEN = ", in the open"
OPEN_BESIDE_ENCRYPTED = {title + _OPEN: title for title in ALGORITHMS.values()}
"""Names of the curves of runs in the open, which are drawn beside those of encrypted runs."""


def titled(curves: Curves, end: str = "") -> Curves:
    """Returns the curves of algorithms by the algorithms' titles, with an end."""
    return {ALGORITHMS[name] + end: own for name, own in curves.items()}


class Times:
    """CPU seconds of encrypted runs and of runs in the open, against N or K.

    Attributes:
        letter: ``N`` or ``K``.
        most: The largest N or K.
        papers_size: The paper's largest.
        encrypted: CPU seconds of encrypted runs by algorithm and size, ``(seeds,)`` each.
        plain: CPU seconds of runs in the open, likewise.
        last: CPU seconds of encrypted runs at the largest size, by algorithm.
        lines: Straight lines through the means of encrypted runs, by algorithm.
        overheads: Encrypted over open, by algorithm and size.
        same: Whether an encrypted run has earned what the open run of its seed has, for each encrypted run.
    """

    def __init__(self, runs: PanelRuns) -> None:
        """Compares encrypted runs with those in the open, by algorithm and size."""
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
        """Returns the algorithms' CPU seconds at a size by their straight lines."""
        return {name: float(line.slope * size + line.intercept) for name, line in self.lines.items()}

    def furthest(self) -> float:
        """Returns the largest relative distance of a mean from its straight line."""
        return max(
            abs(spent.mean() / self.on_lines(size)[name] - 1)
            for name, own in self.encrypted.items()
            for size, spent in own.items()
        )

    def seconds(self) -> Table:
        """Yields the lines of the table of CPU seconds by algorithm and size."""
        for name, own in self.encrypted.items():
            cells = {"CPU seconds, encrypted / in the open": ALGORITHMS[name]}
            for size, spent in own.items():
                plain = f"{self.plain[name][size].mean():.3f}"
                cells[f"{self.letter} = {size:,}"] = f"{over_seeds(spent, ',.2f')} / {plain}"
            yield cells

    def fits(self) -> Table:
        """Yields the lines of the table of straight lines, and of the overhead of encryption at the largest size."""
        for name, line in self.lines.items():
            yield {
                "line through them": ALGORITHMS[name],
                f"ms for each of {self.letter}": f"{1e3 * line.slope:.3f}",
                "at 0, s": f"{line.intercept:.2f}",
                "R^2": f"{line.rvalue**2:.4f}",
                f"encrypted / open at {self.letter} = {self.most:,}": self.overheads[name][self.most],
            }

    def curves(self) -> Curves:
        """Returns CPU seconds over size, of encrypted runs and of those in the open."""
        encrypted, plain = (each(spent, over_seeds) for spent in (self.encrypted, self.plain))
        return {**titled(encrypted), **titled(plain, _OPEN)}

    def ratios(self) -> list[Ratio]:
        """Returns all ratios of encrypted runs' CPU seconds to open ones'."""
        return [ratio for own in self.overheads.values() for ratio in own.values()]

    def least_explained(self) -> str:
        """Returns the algorithm with the least R^2 of its straight line."""
        return min(self.lines, key=lambda name: self.lines[name].rvalue ** 2)

    def is_slowest(self) -> Statement:
        """Returns the verdict on whether Thompson Sampling takes longest of those with one iteration a round."""
        return all_hold(ratio.at_least(1) for ratio in self.over_others(SLOWEST))

    def double(self) -> Ratio:
        """Returns Pursuit's CPU seconds over the mean of the others'."""
        others = [spent for name, spent in self.last.items() if name != TWICE]
        return compare(self.last[TWICE], np.mean(others, axis=0))

    def order(self) -> list[str]:
        """Returns the algorithms with one iteration a round, the fastest first."""
        return sorted((name for name in self.last if name != TWICE), key=lambda name: self.last[name].mean())

    def over_others(self, name: str) -> list[Ratio]:
        """Returns an algorithm's CPU seconds over those of each other with one iteration a round."""
        return [compare(self.last[name], self.last[rest]) for rest in self.order() if rest != name]


Rewards = Mapping[str, Mapping[int, Array]]
"""Cumulative rewards of runs in the open by algorithm and N, ``(seeds,)`` each."""


def rewards_of(runs: PanelRuns) -> dict[str, dict[int, Array]]:
    """Returns :data:`Rewards`."""
    return {name: dict(zip(run.noted, run.rewards.T, strict=True)) for name, run in runs.by("line").items()}


def thompson_over(rewards: Rewards) -> dict[str, dict[int, Ratio]]:
    """Returns Thompson Sampling's rewards over each algorithm's, by algorithm and N."""
    best = rewards["thompson"]
    return {name: {at: compare(best[at], own[at]) for at in best} for name, own in rewards.items()}


def reward_table(rewards: Rewards, last: int) -> Table:
    """Yields the lines of the table of rewards by algorithm and N, and of ratios at the last N."""
    for name, ratios in thompson_over(rewards).items():
        yield {
            "reward, mean (sd)": ALGORITHMS[name],
            **{f"N = {budget:,}": _mean_sd(values) for budget, values in rewards[name].items()},
            "Thompson / it at the last N": "1" if name == "thompson" else ratios[last],
        }


def is_best(rewards: Rewards, budgets: Sequence[int]) -> Statement:
    """Returns the verdict on whether Thompson Sampling earns most at all of some N."""
    rivals = [own for name, own in thompson_over(rewards).items() if name != "thompson"]
    return all_hold(own[budget].at_least(1) for own in rivals for budget in budgets)


def most_first(rewards: Rewards, last: int) -> list[str]:
    """Returns the algorithms, most reward at the last N first."""
    return sorted(rewards, key=lambda name: -float(rewards[name][last].mean()))


def published(rewards: Rewards) -> Table:
    """Yields the lines of the table that sets the authors' published runs beside ours."""
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
    """Returns the standard deviation of a run's rewards if single rewards were independent, for the arms it pulls."""
    means = np.array(run.means)
    return float(np.sqrt((run.pulls @ (means * (1 - means))).mean()))


Shares = Mapping[tuple[str, int], Mapping[str, Array]]
"""Shares of the CPU time by run, which is a pair of an algorithm and K, and by role, ``(seeds,)`` each."""


def shares_of(runs: PanelRuns) -> dict[tuple[str, int], dict[str, Array]]:
    """Returns :data:`Shares`: of Comp, Controller and the data customer, and of the owners.

    Of owners, each of whom is a role of its own, there are ``owner``, the mean share, ``all owners``, the sum, and
    ``largest`` and ``smallest``, the shares of those with the largest and the smallest mean over seeds.
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
    """Returns the mean share of a role in each run, ``(runs,)``."""
    means: Array = np.array([own[role].mean() for own in shares.values()])
    return means


def over_role(shares: Shares, role: str, other: str) -> Array:
    """Returns the mean share of a role over that of another in each run, ``(runs,)``."""
    return mean_shares(shares, role) / mean_shares(shares, other)


def share_table(runs: PanelRuns, shares: Shares) -> Table:
    """Yields the lines of the table of shares by run."""
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
            "CPU seconds": over_seeds(row.result.spent, ",.2f"),
            **{head: f"{roles[name].mean():.1%}" for head, name in heads.items()},
            "an owner": f"{roles['owner'].mean():.2%}",
            "largest owner / smallest": f"{ratio:.2f}",
        }


def share_curves(shares: Shares) -> dict[str, dict[int, Any]]:
    """Returns percentages of an owner, Controller, the data customer and Comp, at 1 to 4, by run."""
    bars = list(enumerate(("owner", "controller", "customer", "comp"), start=1))
    return {_title(run): {x: over_seeds(100 * own[role]) for x, role in bars} for run, own in shares.items()}


def comp_is_largest(shares: Shares) -> Statement:
    """Returns the verdict on whether Comp has a larger share than any other role in every run."""
    rivals = ("controller", "customer", "largest")
    return all_hold(compare(own["comp"], own[name]).at_least(1) for own in shares.values() for name in rivals)


def comp_by_arms(shares: Shares) -> dict[str, dict[int, Ratio]]:
    """Returns Comp's share of the CPU time by K, by the curve's name."""
    found: dict[str, dict[int, Ratio]] = {}
    for (name, arms), own in shares.items():
        share = compare(own["comp"], np.ones(own["comp"].size))
        found.setdefault(f"{name}, Comp / all", {})[arms] = share
    return found


def comp_at_most_arms(shares: Shares) -> list[Ratio]:
    """Returns Comp's share at the largest K over that at the smallest, of every algorithm."""
    ends = [choose(arms for _, arms in shares) for choose in (max, min)]
    return [compare(*(shares[name, arms]["comp"] for arms in ends)) for name in ALGORITHMS]


def around_one(ratios: Sequence[Ratio]) -> str:
    """Returns, as text, how many intervals of ratios contain 1, and how many intervals there are."""
    verdicts = [ratio.holds(1) for ratio in ratios]
    return f"{verdicts.count('holds')} of {len(verdicts) - verdicts.count('undecided')}"


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
    """Returns regret by the means of what was pulled, for each pull, ``(seeds,)``, by line and epsilon.

    A run without epsilon stands at all of them. An encrypted run has the regret of that in the open, as it pulls the
    same owners.
    """

    def regret(result: Any) -> Array:
        total: Array = result.regret[-1].sum(axis=1) if isinstance(result, RunResult) else runs[OPEN].regret
        return total / pulls(runs)

    return each(runs.lines("epsilon"), regret)


def pulls(runs: PanelRuns) -> int:
    """Returns the number of pulls of a run, all agents or owners together."""
    return experiments.AGENTS * runs.plan.scale.rounds


def protections(runs: PanelRuns) -> Table:
    """Yields the lines of the table of regret, bytes and CPU time a pull, of who sees what, and of what is claimed."""
    found, best = regrets_a_pull(runs), max(runs[OPEN].means)
    for labels, result in runs.rows:
        line, at = labels["line"], labels.get("epsilon", runs.values("epsilon")[0])
        regret = found[line][at]
        sent, spent, trust, epsilon = _facts(result)
        yield {
            "run": f"{line} {at:g}" if "epsilon" in labels else line,
            "regret a pull (± 95 %)": over_seeds(regret, ",.4f"),
            "reward a pull": f"{best - regret.mean():.4f}",
            "cumulative reward": f"{pulls(runs) * (best - regret.mean()):,.0f}",
            "/ silent regret": "1" if line == SILENT else compare(regret, found[SILENT][at]),
            "bytes a pull": f"{sent / pulls(runs):,.2f}",
            "CPU µs a pull": f"{spent / pulls(runs):,.2f}",
            "who sees what": _SEES[line],
            "trust": trust,
            "epsilon claimed": epsilon,
        }


def regret_curves(runs: PanelRuns) -> Curves:
    """Returns regret a pull over epsilon, level where a run has none."""
    found = each(regrets_a_pull(runs), over_seeds)
    drawn = (experiments.PRIVATE, experiments.PLACEBO, SILENT, experiments.SHARED, ENCRYPTED)
    return {line: found[line] for line in drawn}


def noise(runs: PanelRuns) -> dict[float, list[Ratio]]:
    """Returns private regret over that of true data, of noise alone and of silence, by epsilon."""
    found = regrets_a_pull(runs)
    return {
        epsilon: [
            compare(private, found[line][epsilon])
            for line in (experiments.SHARED, experiments.PLACEBO, SILENT)
        ]
        for epsilon, private in found[experiments.PRIVATE].items()
    }


def _facts(result: Any) -> tuple[float, float, str, str]:
    """Returns the bytes and CPU microseconds of a run, whom one must trust, and the best epsilon that is claimed.

    Epsilon is written for each adjacency for which it is claimed.
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
