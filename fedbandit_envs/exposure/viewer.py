"""Rendering of one round, shares beside deserved shares, as text and as an RGB array."""

import numpy as np

from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.core.rendering import blank_figure, pixels

_BAR = 30


def render_ansi(scene: Arrays) -> str:
    """Renders one replica as text: a line for each agent, then for each arm agent 0's share and the deserved share.

    Args:
        scene: The replica's observation and info, and the ``shares`` and deserved shares (``deserved``) of the last
            round, ``(agents, arms)``; all arrays lead with the agents' axis.

    Returns:
        The text, with line ends.
    """
    shares, deserved = scene["shares"], scene["deserved"]
    lines = [f"round {int(scene['round'][0, 0])}", "agent  arm  reward  fairness regret  reward regret"]
    for j in range(len(shares)):
        lines.append(
            f"{j:>5d}  {int(scene['arm'][j]):>3d}  {scene['last_reward'][j, 0]:6.3f}"
            f"  {scene['regret'][j]:15.3f}  {scene['reward_regret'][j]:13.3f}"
        )
    lines.append("agent 0: share of an arm (#), what it deserved (|)")
    for k, (share, due) in enumerate(zip(shares[0], deserved[0], strict=True)):
        bar = list(("#" * round(share * _BAR)).ljust(_BAR + 1))
        bar[round(due * _BAR)] = "|"
        lines.append(f"{k:>5d}  {share:5.3f}  {due:5.3f}  {''.join(bar).rstrip()}")
    return "\n".join(lines) + "\n"


def render_rgb_array(scene: Arrays) -> Array:
    """Renders one replica as an image: shares and deserved shares of arms, for agent 0 and averaged over agents.

    Arms are sorted by merit, the largest first.

    Args:
        scene: The replica's observation and info, and ``shares`` and ``deserved``, as in :func:`render_ansi`.

    Returns:
        uint8 ``(height, width, 3)``.

    Raises:
        gymnasium.error.DependencyNotInstalled: matplotlib is missing.
    """
    shares, deserved = scene["shares"], scene["deserved"]
    figure = blank_figure()
    left, right = figure.subplots(1, 2, sharey=True)
    by_merit = np.argsort(-deserved, axis=1, kind="stable")
    places = np.arange(1, shares.shape[1] + 1)
    of_all = [np.take_along_axis(array, by_merit, axis=1) for array in (shares, deserved)]
    got, due = ((array[0], array.mean(axis=0)) for array in of_all)
    for axes, title, share, deserves in zip(
        (left, right), ("agent 0", "mean over agents"), got, due, strict=True
    ):
        axes.bar(places, share, color="lightsteelblue", label="share")
        axes.plot(places, deserves, "k_", markersize=14, label="deserved share")
        axes.set(title=title, xlabel="arm, in order of merit", ylim=(0, 1))
        axes.xaxis.get_major_locator().set_params(integer=True)
    left.set(ylabel="share of the round")
    figure.suptitle(
        f"round {int(scene['round'][0, 0])}: fairness regret {scene['regret'].mean():.3f} an agent"
    )
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return pixels(figure)
