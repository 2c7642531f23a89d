"""How quantities are chosen and seen: action formats, features for neural networks, pictures."""

from collections.abc import Mapping

import numpy as np
from gymnasium import spaces

from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.basics.checks import require_valid
from fedbandit_envs.core.actions import OwnActions
from fedbandit_envs.core.policy_spec import Features, PolicySpec, count_names, highest, judged, laplace
from fedbandit_envs.core.rendering import heatmap_above_bars, pixels
from fedbandit_envs.procurement.oracle import procure


class Quantities(OwnActions):
    """Integer units from each producer: the environment's own actions."""

    def __init__(self, num_producers: int, max_capacity: int) -> None:
        """Sets the space ``MultiDiscrete([max_capacity + 1] * num_producers)``."""
        super().__init__(
            spaces.MultiDiscrete(np.full(num_producers, max_capacity + 1, np.int64), dtype=np.int64)
        )
        self._units = np.arange(max_capacity + 1)

    def allowed(self, observation: Mapping[str, Array]) -> Array:
        """Returns which quantities are within capacity, bool ``(replicas, agents, producers * (max_capacity + 1))``."""
        capacity = observation["capacity"]
        within = self._units <= capacity[..., np.newaxis]
        return within.reshape(*capacity.shape[:2], -1)


def quantities_by_portions(choice: Array, observation: Mapping[str, Array]) -> Array:
    """Returns the quantities ``round(portion * capacity)``, int32 ``(replicas, agents, producers)``.

    Args:
        choice: Portions of each producer's capacity, ``(replicas, agents, producers)``.
        observation: The agents' observations.

    Raises:
        ValueError: A portion is outside [0, 1] or NaN.
    """
    _require_unit_interval("portions", choice)
    return np.rint(choice * observation["capacity"]).astype(np.int32)


def quantities_by_quality(choice: Array, observation: Mapping[str, Array]) -> Array:
    """Returns the quantities that Greedy SSA (Deva et al. 2021) would buy if the estimates were the true qualities.

    Args:
        choice: Estimates of each producer's quality, ``(replicas, agents, producers)``.
        observation: The agents' observations.

    Raises:
        ValueError: An estimate is outside [0, 1] or NaN.
    """
    _require_unit_interval("quality estimates", choice)
    return procure(np.asarray(choice, np.float64), observation)


def _require_unit_interval(name: str, choice: Array) -> None:
    require_valid(f"action: {name}", choice, (choice >= 0) & (choice <= 1), "numbers in [0, 1]")


class ProcurementFeatures(Features):
    """Features of each producer (estimates of its quality, cost, capacity) and of the market.

    | of each producer | meaning |
    |---|---|
    | `estimate` | 2 p - 1 with p = (good units + 1) / (units + 2), from the agent's own data |
    | `doubt` | 1 / sqrt(units + 1), from the agent's own data |
    | `cost` | 2 cost / largest cost - 1 |
    | `capacity` | 2 capacity / largest capacity - 1 |
    | `heard_estimate` | as `estimate`, from received data, corrected for noise; only where agents receive messages |
    | `heard_doubt` | as `doubt`, from received data |

    | once for all producers | meaning |
    |---|---|
    | `threshold` | 2 alpha - 1, where alpha is the quality threshold |
    | `time_left` | 1 before the first round, falling to -1 after the last |
    """

    shared = ("threshold", "time_left")

    def __init__(self, spec: PolicySpec) -> None:
        """Sets the features' names, the number of producers and the largest cost and capacity, from the spaces."""
        seen = spec.observation.spaces
        each = seen["cost"].shape or (0,)
        super().__init__(spec, dict.fromkeys(count_names("delivered", "good"), each))
        self.items = each[0]
        self._most_cost, self._most_units = (max(highest(seen[name]), 1e-9) for name in ("cost", "capacity"))
        of_messages = ("heard_estimate", "heard_doubt") if self._inbox.exists else ()
        self.each = ("estimate", "doubt", "cost", "capacity", *of_messages)

    def _write(self, observation: Arrays, each: Array, shared: Array) -> None:
        each[..., 0], each[..., 1] = laplace(observation["total_good"], observation["total_delivered"])
        each[..., 2] = 2.0 * observation["cost"] / self._most_cost - 1.0
        each[..., 3] = 2.0 * observation["capacity"] / self._most_units - 1.0
        if self._inbox.exists:
            each[..., 4], each[..., 5] = judged(*self._inbox.totals.values())
        shared[..., 0] = 2.0 * observation["quality_threshold"][..., 0] - 1.0


def render_ansi(scene: Arrays) -> str:
    """Renders one replica as text: a line for each producer, a column for each agent.

    Args:
        scene: The replica's observation, info and true ``quality``, arrays that lead with the agents' axis.

    Returns:
        A table of the units delivered to each agent (``-`` where it has no access), beside each producer's true quality
        and its share of good units in all agents' purchases.
    """
    agents, producers = scene["delivered"].shape
    quality = scene["quality"][0]
    bought = scene["total_delivered"].sum(axis=0)
    estimate = scene["total_good"].sum(axis=0) / np.maximum(bought, 1)
    lines = [
        f"round {int(scene['round'][0, 0])}, quality threshold {scene['quality_threshold'][0, 0]:g}",
        "producer  quality  seen  " + " ".join(f"a{j:<3d}" for j in range(agents)),
    ]
    for i in range(producers):
        seen = f"{estimate[i]:5.2f}" if bought[i] else "    -"
        units = " ".join(
            f"{scene['delivered'][j, i]:>4d}" if scene["capacity"][j, i] else "   -" for j in range(agents)
        )
        lines.append(f"{i:>8d}  {quality[i]:7.2f} {seen}  {units}")
    lines.append(f"{'regret':>24} " + " ".join(f"{regret:4.0f}" for regret in scene["regret"]))
    violated = " ".join("yes ".rjust(4) if flag else "no ".rjust(4) for flag in scene["violation"])
    lines.append(f"{'quality violated':>24} " + violated)
    return "\n".join(lines) + "\n"


def render_rgb_array(scene: Arrays) -> Array:
    """Renders one replica as an image: each agent's purchases, above each producer's true and observed quality.

    Args:
        scene: The replica's observation, info and true ``quality``, arrays that lead with the agents' axis.

    Returns:
        uint8 ``(height, width, 3)``.

    Raises:
        gymnasium.error.DependencyNotInstalled: matplotlib is missing.
    """
    agents, producers = scene["delivered"].shape
    quality = scene["quality"][0]
    portion = np.where(scene["capacity"] > 0, scene["delivered"] / np.maximum(scene["capacity"], 1), np.nan)
    labels = [f"{j}{' *' if scene['violation'][j] else ''}" for j in range(agents)]
    figure, above, below = heatmap_above_bars(
        portion, labels, "share of capacity bought", True, vmin=0, vmax=1
    )
    above.set_ylabel("agent (* quality violated)")
    above.set_title(f"round {int(scene['round'][0, 0])}")

    bought = scene["total_delivered"].sum(axis=0)
    estimate = np.where(bought > 0, scene["total_good"].sum(axis=0) / np.maximum(bought, 1), np.nan)
    below.bar(range(producers), quality, color="lightsteelblue", label="true quality")
    below.plot(range(producers), estimate, "k.", label="seen by all agents together")
    below.axhline(scene["quality_threshold"][0, 0], color="firebrick", linewidth=1, label="threshold")
    below.set(ylim=(0, 1), xlabel="producer", ylabel="quality", xlim=(-0.5, producers - 0.5))
    figure.legend(loc="outside lower center", ncols=3)

    return pixels(figure)
