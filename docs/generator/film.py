"""Films of federations that learn, as GIF, drawn by the viewer that all problems share, and of one that is silent.

``PYTHONPATH=docs python docs/generator/film.py docs/static/federation.gif`` makes the one on the first page.
"""

import io
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageColor

from fedbandit_envs import make_federation
from fedbandit_envs.baselines import BASELINES
from fedbandit_envs.baselines.baseline import Baseline
from fedbandit_envs.baselines.comparison_lines import BASELINE_OF, OURS_TUNED, TUNED
from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.core.federated_env import FederatedEnv
from fedbandit_envs.core.wrapper import find_layer
from fedbandit_envs.randomness.streams import row_seeds
from fedbandit_envs.wrappers.transport.viewer import COLOURS, render_federation
from generator.markup import problem_of

_SEED = 0
_MILLISECONDS = 120
_LEVELS = 7
_MOST_AGENTS = 10
_DRAWN = (1, 4, 16, 64, 256)
# Problems without lines in the comparison pages.
_CAST = {"gaussian": ("Gaussian-UCB-shared", "Gaussian-UCB-tuned")}
# Agents of the first pull one arm together, so that they begin slowly; those of the second send from round 512 on.
_ROUNDS = {"gaussian": 8000, "exposure": 2000}


def play(
    baseline: Baseline, env: FederatedEnv, changes: Mapping[str, Mapping[str, Any]] | None = None
) -> Iterator[tuple[FederatedEnv, Array]]:
    """Plays an episode, and yields the wrapped environment and the regret of each round, ``(agents,)``.

    Args:
        baseline: Who plays.
        env: The environment, without the baseline's wrappers.
        changes: Arguments of the baseline's wrappers, by role.
    """
    env = baseline.wrap(env, changes)
    policy = baseline.make_policy()
    observation = env.reset_batch([_SEED]).observation
    policy.reset(env.policy_spec, row_seeds([_SEED], env.max_num_agents))
    for _ in range(env.max_cycles):
        observation, _, _, info = env.step_batch(policy.act(observation))
        yield env, info["regret"][0].copy()


def film(
    together: str,
    alone: str,
    settings: Mapping[str, Any],
    size: tuple[int, int],
    changes: Mapping[str, Mapping[str, Any]] | None = None,
    beats: int = 42,
) -> bytes:
    """Plays two baselines with common random numbers, and draws the first beside the second's regret.

    Rounds that are drawn lie equally far apart. Beside them rounds in which messages are sent are drawn, further and
    further apart, and each of these three times, so that messages are seen to move.

    Args:
        together: Name of a baseline with a transport.
        alone: Name of one without.
        settings: Arguments of ``make_federation``.
        size: Width and height in pixels.
        changes: Arguments of the first baseline's wrappers, by role.
        beats: How many rounds are drawn, besides those with messages.

    Returns:
        A GIF that is repeated three times.
    """
    bare = make_federation(**settings)
    silent = np.array([regret for _, regret in play(BASELINES[alone], bare)])
    env = make_federation(**settings, render_mode="rgb_array")
    frames, lasting, next_message = [], [], 1
    for t, (stack, _) in enumerate(play(BASELINES[together], env, changes), 1):
        transport: Any = find_layer(stack, "transport")
        stages: tuple[float, ...] = (
            (0.5,) if t * beats // len(silent) > (t - 1) * beats // len(silent) else ()
        )
        if transport.sent.any() and t >= next_message:
            stages, next_message = (0.1, 0.5, 0.9), int(1.6 * t) + 1
        for progress in stages:
            picture = Image.fromarray(render_federation(stack, 0, progress, silent))
            frames.append(picture.resize(size, Image.Resampling.LANCZOS))
            lasting.append(_MILLISECONDS + 60 * (len(stages) > 1))
    lasting[-1] = 20 * _MILLISECONDS
    palette = _palette()
    few = [frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames]
    made = io.BytesIO()
    few[0].save(made, "gif", save_all=True, append_images=few[1:], duration=lasting, loop=3, optimize=True)
    return made.getvalue()


def _palette() -> Image.Image:
    """Returns the colours of the viewer and what they look like where they fade into white, or meet ink."""
    white, ink, learned = (
        np.array(ImageColor.getrgb(of)) for of in ("white", COLOURS["ink"], COLOURS["learned"])
    )
    shades = [white, *(ink + (learned - ink) * share for share in (0.25, 0.5, 0.75))]
    for colour in COLOURS.values():
        shades += [
            white + (ImageColor.getrgb(colour) - white) * level / _LEVELS for level in range(1, _LEVELS + 1)
        ]
    palette = Image.new("P", (1, 1))
    palette.putpalette(np.array(shades).astype(np.uint8).ravel().tolist())
    return palette


def cast(problem: str) -> tuple[str, str]:
    """Returns the names of a baseline that plays a problem with messages, tuned if it can be, and of one without.

    Args:
        problem: Name of the problem, such as ``"linear"``.
    """
    lines = BASELINE_OF.get(problem)
    return (lines[OURS_TUNED], lines[TUNED]) if lines else _CAST[problem]


def thumbnail(env_id: str) -> bytes:
    """Returns the film of an id, small, and with ten agents where there are more.

    Args:
        env_id: Id in ``REGISTRY``.
    """
    env = make_federation(env_id)
    problem = problem_of(type(env.unwrapped))
    agents = min(env.max_num_agents, _MOST_AGENTS)
    settings = {"env_id": env_id, "num_agents": agents, "max_cycles": _ROUNDS.get(problem, 400)}
    return film(*cast(problem), settings, (360, 450))


def rollout(env_id: str) -> bytes:
    """Plays an id by a tuned baseline that sends nothing, and has the id's own viewer draw it in some rounds.

    Args:
        env_id: Id in ``REGISTRY``.

    Returns:
        An animated PNG that is shown three times.
    """
    env = make_federation(env_id, max_cycles=_DRAWN[-1], render_mode="rgb_array")
    _, alone = cast(problem_of(type(env.unwrapped)))
    # Few colours: a tenth of the size, and nothing that one would miss.
    frames = [
        Image.fromarray(np.asarray(stack.render())).quantize(64)
        for played, (stack, _) in enumerate(play(BASELINES[alone], env), 1)
        if played in _DRAWN
    ]
    # The last picture stays.
    lasting = [10 * _MILLISECONDS] * (len(frames) - 1) + [30 * _MILLISECONDS]
    made = io.BytesIO()
    frames[0].save(
        made, "png", save_all=True, append_images=frames[1:], duration=lasting, loop=3, optimize=True
    )
    return made.getvalue()


def main(out: str) -> None:
    """Writes the film of the first page: eight agents in a ring, with noise, beside eight that send nothing."""
    settings = {"env_id": "FedLinear-v0", "num_agents": 8, "max_cycles": 400}
    changes = {"privatizer": {"epsilon": 2.0, "delta": 1e-5}, "channel": {"topology": "ring"}}
    Path(out).write_bytes(film("FedUCB-weighted-tuned", "LinUCB-tuned", settings, (480, 600), changes))


if __name__ == "__main__":
    main(*sys.argv[1:])
