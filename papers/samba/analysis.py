"""Tables, ratios and curves of SAMBA's Figure 8; those of the page on noise beside encryption are in ``privacy``."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from scipy.stats import linregress

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.leaderboard.reproduction.comparison import Ratio, all_hold, compare
from fedbandit_envs.leaderboard.reproduction.page import Row, over_seeds
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
        sizes: Values of N or K.
        encrypted: CPU seconds of encrypted runs by algorithm and size, ``(seeds,)`` each.
        plain: CPU seconds of runs in the open, likewise.
        last: CPU seconds of encrypted runs at the largest size, by algorithm.
        lines: Straight lines through the means of encrypted runs, by algorithm.
        furthest: Largest relative distance of a mean from its line.
        overheads: Encrypted over open, by algorithm and size.
        same: Number of encrypted runs that have earned what the open run of their seed has.
        total: Number of encrypted runs.
    """

    def __init__(self, runs: PanelRuns) -> None:
        """Compares encrypted runs with those in the open, by algorithm and size."""
        self.letter, column = ("N", "budget") if len(runs.values("budget")) > 1 else ("K", "arms")
        self.sizes = sorted(runs.values(column))
        self.budget = max(runs.values("budget"))
        results = [
            {name: runs.by(column, line=name, plain=plain) for name in ALGORITHMS} for plain in (False, True)
        ]
        self.encrypted, self.plain = (
            {name: {size: own[size].spent for size in self.sizes} for name, own in some.items()}
            for some in results
        )
        self.last = {name: own[self.sizes[-1]] for name, own in self.encrypted.items()}
        means = {name: [spent.mean() for spent in own.values()] for name, own in self.encrypted.items()}
        self.lines = {name: linregress(self.sizes, values) for name, values in means.items()}
        self.furthest = max(
            abs(mean / self._on_line(name, size) - 1)
            for name, values in means.items()
            for size, mean in zip(self.sizes, values, strict=True)
        )
        self.overheads = {
            name: {size: compare(spent, self.plain[name][size]) for size, spent in own.items()}
            for name, own in self.encrypted.items()
        }
        encrypted, plain = results
        same = [
            encrypted[name][size].reward == plain[name][size].reward
            for name in ALGORITHMS
            for size in self.sizes
        ]
        self.same, self.total = int(np.sum(same)), int(np.size(same))

    def _on_line(self, name: str, size: int) -> float:
        """Returns an algorithm's CPU seconds at a size by its straight line."""
        return float(self.lines[name].slope * size + self.lines[name].intercept)

    def seconds(self) -> Iterator[Row]:
        """Returns the table of CPU seconds by algorithm and size."""
        for name, title in ALGORITHMS.items():
            cells = {"CPU seconds, encrypted / in the open": title}
            for size, spent in self.encrypted[name].items():
                plain = f"{self.plain[name][size].mean():.3f}"
                cells[f"{self.letter} = {size:,}"] = f"{over_seeds(spent, ',.2f')} / {plain}"
            yield cells

    def fits(self) -> Iterator[Row]:
        """Returns the table of straight lines, and of the overhead of encryption at the largest size."""
        last = self.sizes[-1]
        for name, line in self.lines.items():
            yield {
                "line through them": ALGORITHMS[name],
                f"ms for each of {self.letter}": f"{1e3 * line.slope:.3f}",
                "at 0, s": f"{line.intercept:.2f}",
                "R^2": f"{line.rvalue**2:.4f}",
                f"encrypted / open at {self.letter} = {last:,}": self.overheads[name][last],
            }

    def curves(self) -> dict[str, dict[int, Any]]:
        """Returns CPU seconds over size, of encrypted runs and of those in the open."""
        return {
            title + end: {size: over_seeds(spent) for size, spent in some[name].items()}
            for some, end in ((self.encrypted, ""), (self.plain, _OPEN))
            for name, title in ALGORITHMS.items()
        }

    def ratios(self) -> list[Ratio]:
        """Returns all ratios of encrypted runs' CPU seconds to open ones'."""
        return [ratio for own in self.overheads.values() for ratio in own.values()]

    def least_explained(self) -> str:
        """Returns the algorithm with the least R^2 of its straight line."""
        return min(self.lines, key=lambda name: self.lines[name].rvalue ** 2)

    def double(self) -> Ratio:
        """Returns Pursuit's CPU seconds over the mean of the others'."""
        others = [spent for name, spent in self.last.items() if name != TWICE]
        return compare(self.last[TWICE], np.mean(others, axis=0))

    def order(self) -> list[str]:
        """Returns the algorithms with one iteration a round, the fastest first."""
        return sorted((name for name in self.last if name != TWICE), key=lambda name: self.last[name].mean())

    def is_slowest(self) -> str:
        """Returns the verdict on whether Thompson Sampling takes longest of those with one iteration a round."""
        return all_hold(ratio.at_least(1) for ratio in self.over_others(SLOWEST))

    def over_others(self, name: str) -> list[Ratio]:
        """Returns an algorithm's CPU seconds over those of each other with one iteration a round."""
        return [compare(self.last[name], self.last[rest]) for rest in self.order() if rest != name]

    def papers_size(self) -> int:
        """Returns the largest size that the paper has."""
        return PAPER_ROUNDS if self.letter == "N" else MOST_ARMS

    def at_papers_size(self) -> str:
        """Returns the CPU seconds of the lines at the paper's largest size, as text."""
        size = self.papers_size()
        return ", ".join(f"{ALGORITHMS[name]} {self._on_line(name, size):,.0f}" for name in self.lines)


class Rewards:
    """Cumulative rewards of runs in the open, against N.

    Attributes:
        budgets: The values of N.
        rewards: Rewards by algorithm and N, ``(seeds,)`` each.
        ratios: Thompson Sampling's rewards over each algorithm's, by N.
        means: Means of the arms, ``(arms,)``.
        independent_sd: Standard deviation that UCB's rewards would have if single rewards were independent, for the
            arms that it pulls.
    """

    def __init__(self, runs: PanelRuns) -> None:
        """Compares Thompson Sampling's rewards with the others'."""
        ucb = runs["ucb"]
        self.budgets, self.means = ucb.noted, np.array(ucb.means)
        self.independent_sd = float(np.sqrt((ucb.pulls @ (self.means * (1 - self.means))).mean()))
        self.rewards = {
            name: dict(zip(self.budgets, runs[name].rewards.T, strict=True)) for name in ALGORITHMS
        }
        best = self.rewards["thompson"]
        self.ratios = {
            name: {budget: compare(best[budget], values) for budget, values in own.items()}
            for name, own in self.rewards.items()
        }

    def table(self) -> Iterator[Row]:
        """Returns the table of rewards by algorithm and N."""
        for name, own in self.rewards.items():
            best = self.ratios[name][self.budgets[-1]]
            yield {
                "reward, mean (sd)": ALGORITHMS[name],
                **{f"N = {budget:,}": _mean_sd(values) for budget, values in own.items()},
                "Thompson / it at the last N": "1" if name == "thompson" else best,
            }

    def curves(self) -> dict[str, dict[int, Any]]:
        """Returns rewards over N by algorithm."""
        return {
            title: {budget: over_seeds(values) for budget, values in self.rewards[name].items()}
            for name, title in ALGORITHMS.items()
        }

    def is_best(self, budgets: Sequence[int]) -> str:
        """Returns the verdict on whether Thompson Sampling earns most at all of some N."""
        rivals = [own for name, own in self.ratios.items() if name != "thompson"]
        return all_hold(own[budget].at_least(1) for own in rivals for budget in budgets)

    def order(self) -> list[str]:
        """Returns the algorithms, most reward at the last N first."""
        return sorted(ALGORITHMS, key=lambda name: -self.rewards[name][self.budgets[-1]].mean())

    def published(self) -> Iterator[Row]:
        """Returns the table that sets the authors' published runs beside ours."""
        for name, (mean, sd) in PUBLISHED.items():
            ours = self.rewards[name][PAPER_ROUNDS]
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


class RoleShares:
    """Shares of the CPU time by role, where each owner is a role of its own.

    Runs are pairs of an algorithm and K.

    Attributes:
        spent: CPU seconds of all roles together by run, ``(seeds,)`` each.
        roles: Shares by run and role, ``(seeds,)`` each.
        owners: Shares of the owners by run, ``(owners, seeds)`` each.
        uneven: The largest owner's share over the smallest's, by run.
        controller: Controller's share over an owner's, by run.
        customer: The data customer's share, by run.
        comp_by_arms: Comp's share at the largest K over that at the smallest, of every algorithm.
    """

    def __init__(self, runs: PanelRuns) -> None:
        """Divides each role's seconds by those of all."""
        results = {(labels["line"], labels["arms"]): result for labels, result in runs.rows}
        self.spent = {run: result.spent for run, result in results.items()}
        self.roles = {
            run: dict(zip(result.roles, result.seconds.T / result.spent, strict=True))
            for run, result in results.items()
        }
        self.owners = {
            run: np.array([share for role, share in roles.items() if role.startswith("owner-")])
            for run, roles in self.roles.items()
        }
        by_owner = {run: owners.mean(axis=1) for run, owners in self.owners.items()}
        self.uneven = {run: float(means.max() / means.min()) for run, means in by_owner.items()}
        self.controller = {
            run: float(roles["controller"].mean() / self.owners[run].mean(axis=0).mean())
            for run, roles in self.roles.items()
        }
        self.customer = {run: float(roles["customer"].mean()) for run, roles in self.roles.items()}
        fewest, most = (choose(runs.values("arms")) for choose in (min, max))
        self.comp_by_arms = [
            compare(self.roles[name, most]["comp"], self.roles[name, fewest]["comp"]) for name in ALGORITHMS
        ]

    def table(self) -> Iterator[Row]:
        """Returns the table of shares by run."""
        heads = {"Comp": "comp", "Controller": "controller", "data customer": "customer"}
        for run, roles in self.roles.items():
            yield {
                "algorithm": _title(run),
                "CPU seconds": over_seeds(self.spent[run], ",.2f"),
                **{head: f"{roles[name].mean():.1%}" for head, name in heads.items()},
                "all owners": f"{self.owners[run].sum(axis=0).mean():.1%}",
                "an owner": f"{self.owners[run].mean(axis=0).mean():.2%}",
                "largest owner / smallest": f"{self.uneven[run]:.2f}",
            }

    def curves(self) -> dict[str, dict[int, Any]]:
        """Returns percentages of an owner, Controller, the data customer and Comp, at 1 to 4, by run."""
        curves = {}
        for run, roles in self.roles.items():
            bars = [self.owners[run].mean(axis=0), roles["controller"], roles["customer"], roles["comp"]]
            curves[_title(run)] = {place: over_seeds(100 * bar) for place, bar in enumerate(bars, start=1)}
        return curves

    def comp_is_largest(self) -> str:
        """Returns the verdict on whether Comp has a larger share than any other role in every run."""
        verdicts = []
        for run, roles in self.roles.items():
            owners = self.owners[run]
            others = (roles["controller"], roles["customer"], owners[owners.mean(axis=1).argmax()])
            verdicts += [compare(roles["comp"], other).at_least(1) for other in others]
        return all_hold(verdicts)

    def comp(self) -> dict[str, dict[int, Ratio]]:
        """Returns Comp's share of the CPU time by K, by the curve's name."""
        found: dict[str, dict[int, Ratio]] = {}
        for (name, arms), roles in self.roles.items():
            share = compare(roles["comp"], np.ones(roles["comp"].size))
            found.setdefault(f"{name}, Comp / all", {})[arms] = share
        return found

    def around_one(self) -> str:
        """Returns, as text, how many intervals of :attr:`comp_by_arms` contain 1, and how many intervals there are."""
        known = [ratio for ratio in self.comp_by_arms if ratio.low <= ratio.high]
        return f"{sum(ratio.low <= 1 <= ratio.high for ratio in known)} of {len(known)}"


def _title(run: tuple[str, int]) -> str:
    name, arms = run
    return f"{ALGORITHMS[name]}, K = {arms}"
