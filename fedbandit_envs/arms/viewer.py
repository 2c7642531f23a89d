"""Rendering of one round of Bernoulli arms, as text and as an RGB array."""

import numpy as np

from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.core.rendering import heatmap_above_bars, pixels


def render_ansi(scene: Arrays) -> str:
    """Renders one replica as text: a line for each arm, a column for each agent.

    Args:
        scene: The replica's observation, info and true ``mean``, arrays that lead with the agents' axis.

    Returns:
        A table of how often each agent has pulled each arm (in brackets where the arm sleeps now), beside each arm's
        true mean (averaged over agents) and its share of successes in all agents' pulls.
    """
    pulls, means = scene["total_pulls"], scene["mean"].mean(axis=0)
    agents, arms = pulls.shape
    awake = scene.get("awake", np.ones(pulls.shape, np.bool_))
    together = pulls.sum(axis=0)
    estimate = scene["total_successes"].sum(axis=0) / np.maximum(together, 1)
    lines = [
        f"round {int(scene['round'][0, 0])}",
        "arm   mean   seen  " + " ".join(f"{f'a{j}':>7}" for j in range(agents)),
    ]
    for k in range(arms):
        seen = f"{estimate[k]:6.3f}" if together[k] else "     -"
        counts = (f"{pulls[j, k]}" if awake[j, k] else f"({pulls[j, k]})" for j in range(agents))
        lines.append(f"{k:>3d} {means[k]:6.3f} {seen}  " + " ".join(f"{count:>7}" for count in counts))
    lines.append(f"{'regret':>17}  " + " ".join(f"{regret:7.3f}" for regret in scene["regret"]))
    return "\n".join(lines) + "\n"


def render_rgb_array(scene: Arrays) -> Array:
    """Renders one replica as an image: each agent's share of pulls by arm, above the true and the observed means.

    Args:
        scene: The replica's observation, info and true ``mean``, arrays that lead with the agents' axis.

    Returns:
        uint8 ``(height, width, 3)``.

    Raises:
        gymnasium.error.DependencyNotInstalled: matplotlib is missing.
    """
    pulls, means = scene["total_pulls"], scene["mean"]
    arms = pulls.shape[1]
    share = pulls / np.maximum(pulls.sum(axis=1, keepdims=True), 1)
    labels = [f"{j}   {regret:.2f}" for j, regret in enumerate(scene["regret"])]
    figure, above, below = heatmap_above_bars(share, labels, "share of pulls", True, vmin=0, vmax=1)
    above.set(ylabel="agent, last regret", title=f"round {int(scene['round'][0, 0])}")

    together = pulls.sum(axis=0)
    estimate = np.where(together > 0, scene["total_successes"].sum(axis=0) / np.maximum(together, 1), np.nan)
    below.bar(range(arms), means.mean(axis=0), color="lightsteelblue", label="true mean")
    below.vlines(range(arms), means.min(axis=0), means.max(axis=0), "steelblue", label="of single agents")
    below.plot(range(arms), estimate, "k.", label="seen by all agents together")
    below.set(ylim=(0, 1), xlabel="arm", ylabel="mean", xlim=(-0.5, arms - 0.5))
    figure.legend(loc="outside lower center", ncols=3)

    return pixels(figure)
