"""Merit functions f: an arm with mean reward mu deserves a share of the pulls in proportion to f(mu).

An arm's deserved share is its merit f(mu) divided by the sum of the merits of all offered arms (Wang, Bai, Sun and
Joachims, ICML 2021). Merits are computed as logarithms, so that shares do not overflow for steep merit functions. The
JSON-able specification of a merit function is a name, ``"exponential"``; a mapping of the name and the arguments,
``{"name": "exponential", "scale": 5}``; or the entry point of a user's own function, ``"module:function"``.

| name | arguments | f(mu) |
|---|---|---|
| `exponential` | `scale` (10) | exp(scale mu) |
| `linear` | `floor` (0.1) | max(mu, floor) |
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.basics.checks import require_number
from fedbandit_envs.basics.compiled import inlined_kernel, kernel
from fedbandit_envs.basics.entry_points import make, resolve
from fedbandit_envs.randomness.draws import threefry, u32, uniform


@runtime_checkable
class Merit(Protocol):
    """A merit function: a function f > 0 of an arm's mean reward mu."""

    def logarithm(self, means: Array) -> Array:
        """Returns ln f(mu) for means of any shape."""

    def slope(self, means: Array) -> Array:
        """Returns the derivative of ln f at means of any shape."""


@dataclass(frozen=True)
class Exponential:
    """The merit function f(mu) = exp(scale mu).

    Attributes:
        scale: The steepness, >= 0. Wang et al. and Solanki's thesis use 10; with 0 all arms deserve the same share.
    """

    scale: float = 10.0

    def __post_init__(self) -> None:
        """Checks the scale.

        Raises:
            TypeError: The scale is no number.
            ValueError: The scale is negative or not finite.
        """
        require_number("scale", self.scale, 0, np.inf)

    def logarithm(self, means: Array) -> Array:
        """Returns ln f(mu) = scale mu."""
        return self.scale * means

    def slope(self, means: Array) -> Array:
        """Returns the derivative of ln f, which is the scale for all means."""
        return np.full(means.shape, float(self.scale))


@dataclass(frozen=True)
class Linear:
    """The merit function f(mu) = max(mu, floor).

    Attributes:
        floor: The smallest merit, > 0.
    """

    floor: float = 0.1

    def __post_init__(self) -> None:
        """Checks the floor.

        Raises:
            TypeError: The floor is no number.
            ValueError: The floor is not positive, or not finite.
        """
        require_number("floor", self.floor, 0, np.inf, open_below=True)

    def logarithm(self, means: Array) -> Array:
        """Returns ln f(mu) = ln max(mu, floor)."""
        return np.log(np.maximum(means, self.floor))

    def slope(self, means: Array) -> Array:
        """Returns the derivative of ln f: 1/mu above the floor and 0 below."""
        return np.where(means > self.floor, 1.0 / np.maximum(means, self.floor), 0.0)


# Step of the central differences of ln f. A smaller step has a larger rounding error, a larger one more error from the
# curvature; with this step both leave about ten correct digits.
_STEP = 1e-5


@dataclass(frozen=True)
class CustomMerit:
    """A merit function that a user has written.

    Attributes:
        function: A function that takes an array of means and returns their merits, positive, in the same shape.
    """

    function: Callable[[Array], Array]

    def logarithm(self, means: Array) -> Array:
        """Returns ln f(mu).

        Raises:
            ValueError: A merit is not a positive finite number, or the array of merits has another shape.
        """
        # The function gets a read-only view, so that it cannot change the means in place.
        means = means.view()
        means.flags.writeable = False
        merits = np.asarray(self.function(means), np.float64)
        if merits.shape != means.shape or not (np.isfinite(merits) & (merits > 0)).all():
            raise ValueError(
                f"merit of means of shape {means.shape} has shape {merits.shape}, and is from {merits.min()} to "
                f"{merits.max()}; the same shape and positive finite numbers are required"
            )
        return np.log(merits)

    def slope(self, means: Array) -> Array:
        """Returns the derivative of ln f, by central differences."""
        return (self.logarithm(means + _STEP) - self.logarithm(means - _STEP)) / (2 * _STEP)


MERITS: dict[str, Callable[..., Merit]] = {"exponential": Exponential, "linear": Linear}
"""Classes of merit functions, by the name that a specification gives them."""


def make_merit(spec: Merit | str | Mapping[str, Any]) -> Merit:
    """Returns the merit function of a specification; a merit function is returned as it is.

    Args:
        spec: A merit function, a name of :data:`MERITS`, an entry point, or a mapping of ``name`` and arguments.

    Raises:
        TypeError: The specification is none of these, or has arguments with unknown names.
        ValueError: The name is unknown, an argument is out of its range, or a user's function returns merits that are
            not positive.
    """
    if isinstance(spec, str) and ":" in spec:
        merit = CustomMerit(resolve(spec))
        merit.logarithm(np.linspace(-1.0, 1.0, 201))
        return merit
    return make("merit", spec, MERITS, Merit, ", or 'module:function',")


@dataclass(frozen=True)
class Merits:
    """The merit functions of a federation: one for all agents, or one for each agent.

    Attributes:
        functions: The merit functions, in the order of the agents; a single one if it is the same for all.
        one_each: Whether each agent has its own merit function.
    """

    functions: tuple[Merit, ...]
    one_each: bool

    def logarithm(self, means: Array, which: Array | None) -> Array:
        """Returns ln f(mu) for each agent's own merit function f, ``(replicas, agents, arms)``.

        Args:
            means: The arms' means mu, ``(replicas, agents, arms)``.
            which: Index of each agent's merit function, int64 ``(replicas, agents, 1)``; None if there is one for all.
        """
        return self._by_row(means, which, lambda merit, some: merit.logarithm(some))

    def slope(self, means: Array, which: Array | None) -> Array:
        """Returns the derivative of ln f at the means; the arguments are those of :meth:`logarithm`."""
        return self._by_row(means, which, lambda merit, some: merit.slope(some))

    def _by_row(self, means: Array, which: Array | None, ask: Callable[[Merit, Array], Array]) -> Array:
        if which is None:
            return ask(self.functions[0], means)
        answers = np.empty_like(means)
        for number, merit in enumerate(self.functions):
            rows = which[..., 0] == number
            answers[rows] = ask(merit, means[rows])
        return answers


@inlined_kernel
def share_row(logarithms, shares):
    """Computes the shares of one row's arms, merit divided by the sum of merits, without overflow.

    Args:
        logarithms: Logarithms of the arms' merits, ``(arms,)``.
        shares: Output: the shares, which sum to 1, same shape.
    """
    largest, total = logarithms[0], 0.0
    for k in range(1, shares.shape[0]):
        largest = max(largest, logarithms[k])
    for k in range(shares.shape[0]):
        shares[k] = np.exp(logarithms[k] - largest)
        total += shares[k]
    for k in range(shares.shape[0]):
        shares[k] /= total


@kernel
def share_out(logarithms, shares):
    """Computes shares from logarithms of merits for all agents; both arrays are ``(replicas, agents, arms)``."""
    for r in range(shares.shape[0]):
        for j in range(shares.shape[1]):
            share_row(logarithms[r, j], shares[r, j])


def shares_of(logarithms: Array) -> Array:
    """Returns shares in proportion to merits, given their logarithms, float64 ``(replicas, agents, arms)``."""
    shares = np.empty_like(logarithms)
    share_out(logarithms, shares)
    return shares


@inlined_kernel
def _arm_at(shares, rest):
    """Returns the first arm at which the cumulative sum of shares exceeds the number ``rest``.

    If no sum exceeds it because of rounding, the last arm with a positive share is returned.
    """
    drawn = 0
    for k in range(shares.shape[0]):
        if shares[k] > 0.0:
            drawn = k
            rest -= shares[k]
            if rest < 0.0:
                break
    return drawn


@kernel
def expose(active, action, logarithms, means, key, round_, deserved, arm, fairness, reward, pulls, due):
    """Draws each agent's arm from its shares and computes regrets; all outputs are 0 for agents that do not act.

    Args:
        active: Whether each agent acts, bool ``(replicas, agents)``.
        action: Each agent's shares of arms, ``(replicas, agents, arms)``, which are divided by their sum.
        logarithms: Logarithms of the arms' true merits, same shape.
        means: Expected rewards, same shape.
        key: Each row's key of the random draws, see :class:`~fedbandit_envs.randomness.draws.Draws`. The arm drawn is
            the first at which the cumulative shares exceed a uniform random number.
        round_: Each row's round, as counted by the draws.
        deserved: Output: the shares that arms deserve, ``(replicas, agents, arms)``.
        arm: Output: the arms drawn, int64 ``(replicas, agents)``.
        fairness: Output: the fairness regret sum_i |deserved_i - share_i|, ``(replicas, agents)``.
        reward: Output: the reward regret sum_i deserved_i mu_i - sum_i share_i mu_i, ``(replicas, agents)``.
        pulls: Numbers of pulls of each arm, to which the arms drawn are added, ``(replicas, agents, arms)``.
        due: Sums of deserved shares, to which those of this round are added, ``(replicas, agents, arms)``.
    """
    arms = means.shape[2]
    for r in range(means.shape[0]):
        for j in range(means.shape[1]):
            arm[r, j] = 0
            fairness[r, j] = 0.0
            reward[r, j] = 0.0
            if not active[r, j]:
                for k in range(arms):
                    deserved[r, j, k] = 0.0
                continue
            share_row(logarithms[r, j], deserved[r, j])
            total = 0.0
            for k in range(arms):
                total += action[r, j, k]
            apart, lost = 0.0, 0.0
            for k in range(arms):
                due[r, j, k] += deserved[r, j, k]
                less = deserved[r, j, k] - action[r, j, k] / total
                apart += abs(less)
                lost += less * means[r, j, k]
            fairness[r, j] = apart
            reward[r, j] = lost
            x, y = threefry(key[r, j, 0], key[r, j, 1], round_[r, j], u32(0))
            drawn = _arm_at(action[r, j], uniform(x, y) * total)
            arm[r, j] = drawn
            pulls[r, j, drawn] += 1.0
