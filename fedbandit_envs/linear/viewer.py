"""Rendering of one round of the linear bandit, as text and as an RGB array."""

import numpy as np

from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.core.rendering import heatmap_above_bars, pixels


def _estimate(statistic: Array) -> Array:
    """Returns the ridge estimate of theta* from all agents' data together."""
    total = statistic.sum(axis=0)
    dim = len(total) - 1
    return np.linalg.solve(total[:dim, :dim] + np.eye(dim), total[:dim, dim])


def render_ansi(scene: Arrays) -> str:
    """Renders one replica as text: a line for each agent, then theta* and its estimate from all agents' data.

    Args:
        scene: The replica's observation and info, the ``means`` of the arms offered now and the ``parameter`` theta*,
            arrays that lead with the agents' axis.

    Returns:
        The text, with line ends.
    """
    means, parameter = scene["means"], scene["parameter"][0]
    lines = [
        f"round {int(scene['round'][0, 0])}",
        "agent  reward  regret  offered now: best mean  others' mean",
    ]
    for j, offered in enumerate(means):
        others = (offered.sum() - offered.max()) / max(offered.size - 1, 1)
        lines.append(
            f"{j:>5d}  {scene['last_reward'][j, 0]:6.3f}  {scene['regret'][j]:6.3f}"
            f"{offered.max():24.3f}  {others:12.3f}"
        )
    for name, vector in (("theta*", parameter), ("estimate", _estimate(scene["total_statistic"]))):
        lines.append(f"{name:>8} " + " ".join(f"{value:6.2f}" for value in vector))
    return "\n".join(lines) + "\n"


def render_rgb_array(scene: Arrays) -> Array:
    """Renders one replica as an image: expected rewards of the offered arms, above theta* and its estimate.

    Args:
        scene: The replica's observation and info, the ``means`` of the arms offered now and the ``parameter`` theta*,
            arrays that lead with the agents' axis.

    Returns:
        uint8 ``(height, width, 3)``.

    Raises:
        gymnasium.error.DependencyNotInstalled: matplotlib is missing.
    """
    means, parameter = scene["means"], scene["parameter"][0]
    labels = [f"{j}   {regret:.2f}" for j, regret in enumerate(scene["regret"])]
    figure, above, below = heatmap_above_bars(means, labels, "expected reward")
    above.set(
        ylabel="agent, last regret", xlabel="arm offered now", title=f"round {int(scene['round'][0, 0])}"
    )

    above.xaxis.get_major_locator().set_params(integer=True)

    place = np.arange(parameter.size)
    below.bar(place, parameter, color="lightsteelblue", label="theta*")
    below.plot(place, _estimate(scene["total_statistic"]), "k.", label="ridge estimate, all agents' data")
    below.set(ylim=(-1, 1), xlabel="dimension", ylabel="value")
    below.set_xticks(place)
    figure.legend(loc="outside lower center", ncols=2)

    return pixels(figure)
