"""Tables, ratios and curves of SAMBA's Figure 8; those of the page on noise beside encryption are in ``privacy``."""

from collections.abc import Mapping, Sequence
from operator import attrgetter
from types import SimpleNamespace
from typing import Any

import numpy as np
from scipy.stats import linregress

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.leaderboard.reproduction.comparison import Ratio, Statement, all_hold, compare
from fedbandit_envs.leaderboard.reproduction.page import Curves, Row, by_line, each, over_seeds
from fedbandit_envs.leaderboard.reproduction.panel_runs import PanelRuns
from fedbandit_envs.papers.samba.experiments import ALGORITHMS, MOST_ARMS, PAPER_ROUNDS

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

    def seconds(self) -> list[Row]:
        """Returns the table of CPU seconds by algorithm and size."""
        cells = {
            ALGORITHMS[name]: {
                size: f"{over_seeds(spent, ',.2f')} / {self.plain[name][size].mean():.3f}"
                for size, spent in own.items()
            }
            for name, own in self.encrypted.items()
        }
        return by_line(cells, "CPU seconds, encrypted / in the open", self.letter + " = {:,}")

    def fits(self) -> list[Row]:
        """Returns the table of straight lines, and of the overhead of encryption at the largest size."""
        return [
            {
                "line through them": ALGORITHMS[name],
                f"ms for each of {self.letter}": f"{1e3 * line.slope:.3f}",
                "at 0, s": f"{line.intercept:.2f}",
                "R^2": f"{line.rvalue**2:.4f}",
                f"encrypted / open at {self.letter} = {self.most:,}": self.overheads[name][self.most],
            }
            for name, line in self.lines.items()
        ]

    def curves(self) -> Curves:
        """Returns CPU seconds over size, of encrypted runs and of those in the open."""
        both = {ALGORITHMS[name]: own for name, own in self.encrypted.items()}
        return each(both | {ALGORITHMS[name] + _OPEN: own for name, own in self.plain.items()}, over_seeds)

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


class Rewards:
    """Cumulative rewards of runs in the open, against N.

    Attributes:
        rewards: Rewards by algorithm and N, ``(seeds,)`` each.
        ratios: Thompson Sampling's rewards over each algorithm's, by N.
    """

    def __init__(self, runs: PanelRuns) -> None:
        """Compares Thompson Sampling's rewards with the others'."""
        self.rewards: dict[str, dict[int, Array]] = {
            name: dict(zip(run.noted, run.rewards.T, strict=True)) for name, run in runs.by("line").items()
        }
        best = self.rewards["thompson"]
        self.ratios = {
            name: {budget: compare(best[budget], values) for budget, values in own.items()}
            for name, own in self.rewards.items()
        }

    def table(self) -> list[Row]:
        """Returns the table of rewards by algorithm and N."""
        texts = {ALGORITHMS[name]: own for name, own in each(self.rewards, _mean_sd).items()}
        rows = by_line(texts, "reward, mean (sd)", "N = {:,}")
        last = [("1" if name == "thompson" else [*own.values()][-1]) for name, own in self.ratios.items()]
        return [{**row, "Thompson / it at the last N": cell} for row, cell in zip(rows, last, strict=True)]

    def curves(self) -> Curves:
        """Returns rewards over N by algorithm."""
        return each({ALGORITHMS[name]: own for name, own in self.rewards.items()}, over_seeds)

    def is_best(self, budgets: Sequence[int]) -> Statement:
        """Returns the verdict on whether Thompson Sampling earns most at all of some N."""
        rivals = [own for name, own in self.ratios.items() if name != "thompson"]
        return all_hold(own[budget].at_least(1) for own in rivals for budget in budgets)

    def order(self) -> list[str]:
        """Returns the algorithms, most reward at the last N first."""
        return sorted(self.rewards, key=lambda name: -float([*self.rewards[name].values()][-1].mean()))

    def published(self) -> list[Row]:
        """Returns the table that sets the authors' published runs beside ours."""
        table = []
        for name, (mean, sd) in PUBLISHED.items():
            ours = self.rewards[name][PAPER_ROUNDS]
            away = ours.mean() - mean
            half = 1.96 * np.sqrt(ours.var(ddof=1) / ours.size + sd**2 / PUBLISHED_RUNS)
            row = {
                "reward, mean (sd)": ALGORITHMS[name],
                "theirs": f"{mean:,} ({sd:,})",
                "ours": _mean_sd(ours),
                "ours less theirs (± 95 %)": f"{away:+,.0f} ± {half:,.0f}",
                "agrees?": "agrees" if abs(away) <= half else f"**differs**, by {away / mean:+.1%}",
            }
            table.append(row)
        return table


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


def share_table(runs: PanelRuns, shares: Shares) -> list[Row]:
    """Returns the table of shares by run."""
    heads = {
        "Comp": "comp",
        "Controller": "controller",
        "data customer": "customer",
        "all owners": "all owners",
    }
    uneven = over_role(shares, "largest", "smallest")
    return [
        {
            "algorithm": _title(run),
            "CPU seconds": over_seeds(row.result.spent, ",.2f"),
            **{head: f"{roles[name].mean():.1%}" for head, name in heads.items()},
            "an owner": f"{roles['owner'].mean():.2%}",
            "largest owner / smallest": f"{ratio:.2f}",
        }
        for row, (run, roles), ratio in zip(runs.rows, shares.items(), uneven, strict=True)
    ]


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
