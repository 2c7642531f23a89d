"""Rendering of one round of procurement, as text and as an RGB array."""

import numpy as np

from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.core.rendering import heatmap_above_bars, pixels


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
