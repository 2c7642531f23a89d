"""Tables, ratios and curves of SAMBA's Figure 8; those of the page on noise beside encryption are in ``privacy``."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.leaderboard.reproduction.comparison import Ratio, all_hold, compare
from fedbandit_envs.leaderboard.reproduction.page import over_seeds
from fedbandit_envs.leaderboard.reproduction.panel_runs import PanelRuns
from fedbandit_envs.papers.samba.experiments import ALGORITHMS, MOST_ARMS, PAPER_ROUNDS
from fedbandit_envs.papers.samba.runs import Selected

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


class Line(NamedTuple):
    """A straight line through points.

    Attributes:
        slope: Its slope.
        start: Its value at 0.
        explained: R^2.
    """

    slope: float
    start: float
    explained: float


def straight(sizes: Sequence[float], values: Sequence[float]) -> Line:
    """Returns the straight line through points."""
    slope, intercept = np.polyfit(sizes, values, 1)
    left = np.sum((np.asarray(values) - np.polyval([slope, intercept], sizes)) ** 2)
    spread = np.sum((np.asarray(values) - np.mean(values)) ** 2)
    return Line(float(slope), float(intercept), float(1 - left / spread))


class Times:
    """CPU seconds of encrypted runs and of runs in the open, against N or K.

    Attributes:
        letter: ``N`` or ``K``.
        sizes: Values of N or K.
        encrypted: Results by algorithm and size.
        plain: Results in the open, likewise.
        lines: Straight lines through the means of encrypted runs, by algorithm.
        overheads: Encrypted over open, by algorithm and size.
    """

    def __init__(self, runs: PanelRuns) -> None:
        """Takes the results apart by algorithm."""
        self.letter, column = ("N", "budget") if len(runs.values("budget")) > 1 else ("K", "arms")
        self.sizes = sorted(runs.values(column))
        self.encrypted, self.plain = (
            {name: runs.by(column, line=name, plain=plain) for name in ALGORITHMS} for plain in (False, True)
        )
        means = {
            name: [float(own[size].spent.mean()) for size in self.sizes]
            for name, own in self.encrypted.items()
        }
        self.lines = {name: straight(self.sizes, values) for name, values in means.items()}
        self.overheads = {
            name: {size: compare(own[size].spent, self.plain[name][size].spent) for size in self.sizes}
            for name, own in self.encrypted.items()
        }
        self.furthest = max(
            abs(mean / (self.lines[name].slope * size + self.lines[name].start) - 1)
            for name, values in means.items()
            for size, mean in zip(self.sizes, values, strict=True)
        )

    def seconds(self) -> list[dict[str, Any]]:
        """Returns the table of CPU seconds by algorithm and size."""
        return [
            {"CPU seconds, encrypted / in the open": title}
            | {
                f"{self.letter} = {size:,}": f"{over_seeds(self.encrypted[name][size].spent, ',.2f')} / "
                f"{self.plain[name][size].spent.mean():.3f}"
                for size in self.sizes
            }
            for name, title in ALGORITHMS.items()
        ]

    def fits(self) -> list[dict[str, Any]]:
        """Returns the table of straight lines, and of the overhead of encryption at the largest size."""
        last = self.sizes[-1]
        return [
            {
                "line through them": title,
                f"ms for each of {self.letter}": f"{1e3 * self.lines[name].slope:.3f}",
                "at 0, s": f"{self.lines[name].start:.2f}",
                "R^2": f"{self.lines[name].explained:.4f}",
                f"encrypted / open at {self.letter} = {last:,}": self.overheads[name][last],
            }
            for name, title in ALGORITHMS.items()
        ]

    def curves(self) -> dict[str, dict[int, Any]]:
        """Returns CPU seconds over size, of encrypted runs and of those in the open."""
        return {
            title + end: {size: over_seeds(results[name][size].spent) for size in self.sizes}
            for results, end in ((self.encrypted, ""), (self.plain, _OPEN))
            for name, title in ALGORITHMS.items()
        }

    def ratios(self) -> list[Ratio]:
        """Returns all ratios of encrypted runs' CPU seconds to open ones'."""
        return [ratio for own in self.overheads.values() for ratio in own.values()]

    def least_explained(self) -> str:
        """Returns the algorithm whose line explains least."""
        return min(self.lines, key=lambda name: self.lines[name].explained)

    def at_last(self) -> dict[str, Array]:
        """Returns the CPU seconds of encrypted runs at the largest size, by algorithm."""
        return {name: own[self.sizes[-1]].spent for name, own in self.encrypted.items()}

    def double(self) -> Ratio:
        """Returns Pursuit's CPU seconds over the mean of the others'."""
        others = [values for name, values in self.at_last().items() if name != TWICE]
        return compare(self.at_last()[TWICE], np.mean(others, axis=0))

    def order(self) -> list[str]:
        """Returns the algorithms with one iteration a round, the fastest first."""
        return sorted(
            (name for name in ALGORITHMS if name != TWICE), key=lambda name: self.at_last()[name].mean()
        )

    def is_slowest(self, name: str) -> str:
        """Returns, as a verdict, whether an algorithm takes longest of those with one iteration a round."""
        spent = self.at_last()
        return all_hold(
            compare(spent[name], spent[rest]).at_least(1) for rest in self.order() if rest != name
        )

    def is_fastest(self, name: str) -> str:
        """Returns, as a verdict, whether an algorithm takes the least time of those with one iteration a round."""
        spent = self.at_last()
        return all_hold(compare(spent[name], spent[rest]).at_most(1) for rest in self.order() if rest != name)

    def last_budget(self) -> int:
        """Returns N of the largest size."""
        return int(self.encrypted[FASTEST][self.sizes[-1]].budget)

    def papers_size(self) -> int:
        """Returns the largest size that the paper has."""
        return PAPER_ROUNDS if self.letter == "N" else MOST_ARMS

    def at_papers_size(self) -> str:
        """Returns the CPU seconds of the lines at the paper's largest size, as text."""
        size = self.papers_size()
        return ", ".join(
            f"{ALGORITHMS[name]} {line.slope * size + line.start:,.0f}" for name, line in self.lines.items()
        )

    def same_rewards(self) -> tuple[int, int]:
        """Returns the number of encrypted runs with the reward of the open run of their seed, and the number of all."""
        same = [
            result.reward == self.plain[name][size].reward
            for name, own in self.encrypted.items()
            for size, result in own.items()
        ]
        return int(np.sum(same)), int(np.size(same))


class Rewards:
    """Cumulative rewards of runs in the open, against N.

    Attributes:
        results: By algorithm.
        budgets: The values of N.
        best: Thompson Sampling's rewards over each algorithm's, by N.
    """

    def __init__(self, runs: PanelRuns) -> None:
        """Takes the results by algorithm."""
        self.results: dict[str, Selected] = runs.by("line")
        self.budgets = list(self.results["ucb"].noted)
        best = self.results["thompson"].noted
        self.best = {
            name: {budget: compare(best[budget], result.noted[budget]) for budget in self.budgets}
            for name, result in self.results.items()
        }

    def table(self) -> list[dict[str, Any]]:
        """Returns the table of rewards by algorithm and N."""
        return [
            {"reward, mean (sd)": title}
            | {f"N = {budget:,}": _mean_sd(self.results[name].noted[budget]) for budget in self.budgets}
            | {
                "Thompson / it at the last N": "1"
                if name == "thompson"
                else self.best[name][self.budgets[-1]]
            }
            for name, title in ALGORITHMS.items()
        ]

    def curves(self) -> dict[str, dict[int, Any]]:
        """Returns rewards over N by algorithm."""
        return {
            title: {budget: over_seeds(values) for budget, values in self.results[name].noted.items()}
            for name, title in ALGORITHMS.items()
        }

    def is_best(self, budgets: Sequence[int]) -> str:
        """Returns, as a verdict, whether Thompson Sampling earns most at all of some N."""
        rivals = [name for name in ALGORITHMS if name != "thompson"]
        return all_hold(self.best[name][budget].at_least(1) for name in rivals for budget in budgets)

    def order(self) -> list[str]:
        """Returns the algorithms, most reward at the last N first."""
        return sorted(ALGORITHMS, key=lambda name: -self.results[name].noted[self.budgets[-1]].mean())

    def published(self) -> list[dict[str, Any]]:
        """Returns the table that sets the authors' published runs beside ours."""
        table = []
        for name, (mean, sd) in PUBLISHED.items():
            ours = self.results[name].noted[PAPER_ROUNDS]
            away = ours.mean() - mean
            half = 1.96 * np.sqrt(ours.var(ddof=1) / ours.size + sd**2 / PUBLISHED_RUNS)
            table.append(
                {
                    "reward, mean (sd)": ALGORITHMS[name],
                    "theirs": f"{mean:,} ({sd:,})",
                    "ours": _mean_sd(ours),
                    "ours less theirs (± 95 %)": f"{away:+,.0f} ± {half:,.0f}",
                    "agrees?": "agrees" if abs(away) <= half else f"**differs**, by {away / mean:+.1%}",
                }
            )
        return table

    def independent_sd(self) -> float:
        """Returns the standard deviation of UCB's rewards if rewards were independent, for the arms that it pulls."""
        ucb = self.results["ucb"]
        return float(np.sqrt((ucb.pulls @ (ucb.means * (1 - ucb.means))).mean()))


def _mean_sd(values: Array) -> str:
    return f"{values.mean():,.0f} ({values.std(ddof=1):,.0f})"


class RoleShares:
    """One result's shares of the CPU time by role.

    Attributes:
        title: Algorithm and K, as text.
        result: The result.
        roles: Shares of Comp, Controller and the data customer by name, ``(seeds,)``.
        owners: Shares of the owners, ``(owners, seeds)``.
        uneven: The largest owner's share over the smallest's.
        controller: Controller's share over an owner's.
        customer: The data customer's share.
    """

    def __init__(self, result: Selected) -> None:
        """Divides each role's seconds by those of all."""
        self.title, self.result = f"{ALGORITHMS[result.algorithm]}, K = {result.arms}", result
        self.roles = {name: values / result.spent for name, values in result.seconds.items()}
        self.owners = np.array([own for name, own in self.roles.items() if name.startswith("owner-")])
        by_owner = self.owners.mean(axis=1)
        self.uneven = float(by_owner.max() / by_owner.min())
        self.controller = float(np.mean(self.roles["controller"]) / np.mean(self.owners.mean(axis=0)))
        self.customer = float(self.roles["customer"].mean())

    @property
    def row(self) -> dict[str, Any]:
        """Its line of the table of shares by role."""
        shares = {"Comp": "comp", "Controller": "controller", "data customer": "customer"}
        return {
            "algorithm": self.title,
            "CPU seconds": over_seeds(self.result.spent, ",.2f"),
            **{head: f"{self.roles[name].mean():.1%}" for head, name in shares.items()},
            "all owners": f"{self.owners.sum(axis=0).mean():.1%}",
            "an owner": f"{self.owners.mean(axis=0).mean():.2%}",
            "largest owner / smallest": f"{self.uneven:.2f}",
        }

    def bars(self) -> dict[int, Any]:
        """Returns its curve: percentages of an owner, Controller, the data customer and Comp."""
        bars = [self.owners.mean(axis=0), *(self.roles[name] for name in ("controller", "customer", "comp"))]
        return {place: over_seeds(100 * bar) for place, bar in enumerate(bars, start=1)}

    def comp_over_others(self) -> list[Ratio]:
        """Returns Comp's share over that of each other role, and over the largest owner's."""
        largest = self.owners[self.owners.mean(axis=1).argmax()]
        others = (self.roles["controller"], self.roles["customer"], largest)
        return [compare(self.roles["comp"], other) for other in others]


def role_shares(runs: PanelRuns) -> list[RoleShares]:
    """Returns the shares of the CPU time of every result."""
    return [RoleShares(row.result) for row in runs.rows]


def comp_is_largest(every: Sequence[RoleShares]) -> str:
    """Returns, as a verdict, whether Comp has a larger share than any other role in every result."""
    return all_hold(ratio.at_least(1) for one in every for ratio in one.comp_over_others())


def num_around_one(ratios: Sequence[Ratio]) -> int:
    """Returns the number of ratios whose interval contains 1."""
    return sum(ratio.low <= 1 <= ratio.high for ratio in ratios)


def num_intervals(ratios: Sequence[Ratio]) -> int:
    """Returns the number of ratios that have an interval."""
    return sum(ratio.low <= ratio.high for ratio in ratios)


def comp_shares(runs: PanelRuns) -> dict[str, dict[int, Ratio]]:
    """Returns Comp's share of the CPU time by K, by algorithm."""
    return {
        f"{name}, Comp / all": {arms: compare(share, np.ones(share.size)) for arms, share in own.items()}
        for name, own in _comp(runs).items()
    }


def comp_by_arms(runs: PanelRuns) -> list[Ratio]:
    """Returns Comp's share at the largest K over that at the smallest, of every algorithm."""
    return [compare(own[max(own)], own[min(own)]) for own in _comp(runs).values()]


def _comp(runs: PanelRuns) -> Mapping[str, dict[int, Array]]:
    return {
        name: {arms: RoleShares(result).roles["comp"] for arms, result in runs.by("arms", line=name).items()}
        for name in ALGORITHMS
    }
