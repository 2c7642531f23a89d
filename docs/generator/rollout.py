"""Short films of a policy that plays well, as animated PNG, drawn by the environments' own viewers."""

import io

import numpy as np
from PIL import Image

from fedbandit_envs import make_federation
from fedbandit_envs.baselines import BASELINES
from fedbandit_envs.randomness.streams import row_seeds

_DRAWN = (1, 4, 16, 64, 256)
_MILLISECONDS = 1200
_SEED = 0


def player(env_id: str) -> str:
    """Returns the baseline that plays an id: silent, and tuned."""
    problem = make_federation(env_id).unwrapped
    return next(
        name
        for name, baseline in BASELINES.own.items()
        if name.endswith("-tuned") and isinstance(problem, baseline.federation) and not baseline.wrappers
    )


def rollout(env_id: str) -> bytes:
    """Plays an id, and draws it after a few rounds and after many.

    Args:
        env_id: Id in ``REGISTRY``.

    Returns:
        An animated PNG that is shown three times.
    """
    env = make_federation(env_id, max_cycles=_DRAWN[-1], render_mode="rgb_array")
    policy = BASELINES[player(env_id)].make_policy()
    observation = env.reset_batch([_SEED]).observation
    policy.reset(env.policy_spec, row_seeds([_SEED], env.max_num_agents))
    frames = []
    for played in range(1, _DRAWN[-1] + 1):
        observation = env.step_batch(policy.act(observation)).observation
        if played in _DRAWN:
            # Few colours: a tenth of the size, and nothing that one would miss.
            frames.append(Image.fromarray(np.asarray(env.render())).quantize(64))
    film = io.BytesIO()
    # The last picture stays.
    lasting = [_MILLISECONDS] * (len(frames) - 1) + [3 * _MILLISECONDS]
    frames[0].save(
        film, "png", save_all=True, append_images=frames[1:], duration=lasting, loop=3, optimize=True
    )
    return film.getvalue()
