"""The twin behind other functional APIs: Gymnasium's ``FuncEnv``, gymnax's, and mappings by agent as in JaxMARL.

There episodes begin inside of compiled code. So instances come from a pool that the package draws once. Each episode
takes one of them at random, and turns its keys by random words, so that outcomes are new. An observation is one row of
numbers for each agent: all entries of the twin's observation, in the order of their names.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces
from gymnasium.experimental.functional import FuncEnv
from jax import Array, lax

from fedbandit_envs.functional.environment import COMMON, Environment
from fedbandit_envs.functional.federation import Arrays


class Episodes:
    """Episodes of an environment that begin inside of compiled code.

    Attributes:
        env: The environment.
        pool: The instances, ``(instances, agents, ...)`` by name.
        observation_shape: Shape of an agent's observation, ``(numbers,)``.
    """

    def __init__(self, env: Environment, instances: int = 1000, first_seed: int = 0) -> None:
        """Draws the pool.

        Args:
            env: The environment.
            instances: Number of instances, of successive seeds.
            first_seed: The first of these seeds.
        """
        self.env, self.pool = env, env.params(range(first_seed, first_seed + instances))
        key = jax.ShapeDtypeStruct((2,), jnp.uint32)
        self.observation_shape = jax.eval_shape(self.begin, key)["observation"].shape[1:]

    def begin(self, key: Array) -> Arrays:
        """Returns the state of a new episode; its ``observation`` is ``(agents, numbers)``.

        Args:
            key: A key of ``jax.random``.
        """
        place, *turn = jax.random.bits(key, (3,), jnp.uint32)
        drawn = {name: array[place % len(array)] for name, array in self.pool.items()}
        turned = {name: array ^ jnp.stack(turn) for name, array in drawn.items() if "key" in name}
        state, observation = self.env.reset(params := drawn | turned)
        nothing = jnp.zeros(self.env.num_agents, self.env.dtype)
        return self._state(params, state, observation, nothing, {"regret": nothing})

    def advance(self, state: Arrays, action: Array) -> Arrays:
        """Returns the state after a round, with the round's ``reward`` and ``regret``, ``(agents,)`` each.

        Args:
            state: What :meth:`begin` or this method returned.
            action: One action an agent, ``(agents, ...)``.
        """
        return self._state(state["params"], *self.env.step(state["params"], state["state"], action))

    def _state(
        self, params: Arrays, state: Arrays, observation: Arrays, reward: Array, info: Arrays
    ) -> Arrays:
        agents = self.env.num_agents
        rows = [
            jnp.broadcast_to(array, (agents, 1)) if name in COMMON else jnp.reshape(array, (agents, -1))
            for name, array in sorted(observation.items())
        ]
        numbers = jnp.concatenate([row.astype(self.env.dtype) for row in rows], axis=1)
        played = {"reward": reward, "regret": info["regret"], "over": state["round"] >= self.env.max_cycles}
        return {"params": params, "state": state, "observation": numbers, **played}


class ByAgent(Episodes):
    """A federation with JaxMARL's API: mappings by agent, and a new episode when one is over.

    Example:
        >>> import jax
        >>> from fedbandit_envs.functional import make
        >>> from fedbandit_envs.functional.adapters import ByAgent
        >>> env = ByAgent(make("FedArms-v0", num_agents=2, max_cycles=50), instances=10)
        >>> observations, state = env.reset(jax.random.key(0))
        >>> actions = dict.fromkeys(env.agents, 3)
        >>> observations, state, rewards, dones, infos = env.step(jax.random.key(1), state, actions)
        >>> sorted(rewards), bool(dones["__all__"])
        (['agent_0', 'agent_1'], False)
    """

    @property
    def agents(self) -> list[str]:
        """The names of the agents."""
        return self.env.host.possible_agents

    def reset(self, key: Array) -> tuple[Arrays, Arrays]:
        """Returns the observations by agent and the state of a new episode."""
        state = self.begin(key)
        return self._by_agent(state["observation"]), state

    def step(
        self, key: Array, state: Arrays, actions: Arrays
    ) -> tuple[Arrays, Arrays, Arrays, Arrays, Arrays]:
        """Plays a round; where it was the last one, a new episode has begun.

        Args:
            key: A key of ``jax.random`` for the new episode.
            state: The state.
            actions: One action for each agent by name.

        Returns:
            Observations by agent, the state, rewards by agent, whether the episode is over, by agent and for
            ``__all__``, and information by name, with the ``regret`` by agent.
        """
        after = self.advance(state, jnp.stack([actions[agent] for agent in self.agents]))
        over = after["over"]
        shown = lax.cond(over, lambda: self.begin(key), lambda: after)
        dones = {**dict.fromkeys(self.agents, over), "__all__": over}
        info = {"regret": self._by_agent(after["regret"])}
        return self._by_agent(shown["observation"]), shown, self._by_agent(after["reward"]), dones, info

    def _by_agent(self, rows: Array) -> Arrays:
        return dict(zip(self.agents, rows, strict=True))


class EnvParams(NamedTuple):
    """What gymnax calls an environment's parameters.

    Attributes:
        max_steps_in_episode: Number of rounds after which an episode is truncated, at most the horizon.
    """

    max_steps_in_episode: Any

    def replace(self, **changes: Any) -> "EnvParams":
        """Returns the parameters with these changed."""
        return self._replace(**changes)


class Gymnax(Episodes):
    """One agent alone with the API of gymnax 1.0, and a new episode when one is over.

    gymnax itself is imported by the methods that return spaces only.

    Example:
        >>> import jax
        >>> from fedbandit_envs.functional import make
        >>> from fedbandit_envs.functional.adapters import Gymnax
        >>> env = Gymnax(make("FedArms-v0", num_agents=1, max_cycles=50), instances=10)
        >>> observation, state = env.reset(jax.random.key(0), env.default_params)
        >>> observation, state, reward, terminated, truncated, info = env.step(jax.random.key(1), state, 3)
        >>> observation.shape, bool(terminated), bool(truncated)
        ((22,), False, False)
    """

    def __init__(self, env: Environment, instances: int = 1000, first_seed: int = 0) -> None:
        """Draws the pool of instances; see :class:`Episodes`.

        Raises:
            ValueError: There are several agents.
        """
        super().__init__(_alone(env), instances, first_seed)
        self.name = env.host.metadata["name"]

    @property
    def default_params(self) -> EnvParams:
        """The parameters with the environment's own horizon."""
        return EnvParams(self.env.max_cycles)

    @property
    def num_actions(self) -> int:
        """The number of actions, or of the numbers that make up one."""
        space: Any = self.env.host.single_action_space
        return int(space.n) if isinstance(space, spaces.Discrete) else int(np.prod(space.shape))

    def reset_env(self, key: Array, params: EnvParams) -> tuple[Array, Arrays]:
        """Returns the observation and the state of a new episode."""
        state = self.begin(key)
        return state["observation"][0], state

    def step_env(
        self, key: Array, state: Arrays, action: Any, params: EnvParams
    ) -> tuple[Array, Arrays, Array, Array, Arrays]:
        """Plays a round, without a new episode; all random numbers follow from the state.

        Returns:
            The observation, the state, the reward, False (bandits have no terminal state), and the ``regret``.
        """
        state = self.advance(state, jnp.asarray(action)[None])
        never = jnp.zeros((), bool)
        return state["observation"][0], state, state["reward"][0], never, {"regret": state["regret"][0]}

    def is_truncated(self, state: Arrays, params: EnvParams) -> Array:
        """Returns whether an episode has had all its rounds."""
        return state["state"]["round"] >= params.max_steps_in_episode

    @partial(jax.jit, static_argnames=("self",))
    def reset(self, key: Array, params: EnvParams | None = None) -> tuple[Array, Arrays]:
        """Returns the observation and the state of a new episode."""
        return self.reset_env(key, params or self.default_params)

    @partial(jax.jit, static_argnames=("self",))
    def step(
        self, key: Array, state: Arrays, action: Any, params: EnvParams | None = None
    ) -> tuple[Array, Arrays, Array, Array, Array, Arrays]:
        """Plays a round; where it was the last one, a new episode has begun.

        Returns:
            The observation, the state, the reward, whether the episode was terminated or truncated, and information
            by name, with the ``regret`` and the episode's ``final_observation``.
        """
        params = params or self.default_params
        seen, after, reward, terminated, info = self.step_env(key, state, action, params)
        truncated = self.is_truncated(after, params)
        observation, state = lax.cond(truncated, lambda: self.reset_env(key, params), lambda: (seen, after))
        info |= {"terminated": terminated, "truncated": truncated, "final_observation": seen}
        return observation, state, reward, terminated, truncated, info

    def action_space(self, params: EnvParams | None = None) -> Any:
        """Returns gymnax's space of actions."""
        from gymnax.environments import spaces as theirs

        own: Any = self.env.host.single_action_space
        if isinstance(own, spaces.Discrete):
            return theirs.Discrete(int(own.n))
        return theirs.Box(own.low, own.high, own.shape, own.dtype)

    def observation_space(self, params: EnvParams | None = None) -> Any:
        """Returns gymnax's space of observations."""
        from gymnax.environments import spaces as theirs

        return theirs.Box(-jnp.inf, jnp.inf, self.observation_shape, self.env.dtype)


def _alone(env: Environment) -> Environment:
    """Returns the environment if it has one agent.

    Raises:
        ValueError: There are several.
    """
    if env.num_agents != 1:
        raise ValueError(f"env has num_agents={env.num_agents}; 1 is required")
    return env


class OneAgent(FuncEnv):
    """One agent alone with Gymnasium's functional API; a state is one row of 32-bit words, as its vector view needs it.

    Episodes have no end; ``FunctionalJaxVectorEnv(env, max_episode_steps=...)`` sets one.

    Example:
        >>> import jax
        >>> from fedbandit_envs.functional import make
        >>> from fedbandit_envs.functional.adapters import OneAgent
        >>> env = OneAgent(make("FedArms-v0", num_agents=1), instances=10)
        >>> state = env.initial(jax.random.key(0))
        >>> after = env.transition(state, 3, None)
        >>> env.observation(after, None).shape, float(env.reward(state, 3, after, None)) in (0.0, 1.0)
        ((22,), True)
    """

    def __init__(self, env: Environment, instances: int = 1000, first_seed: int = 0) -> None:
        """Draws the pool of instances; see :class:`Episodes`.

        Raises:
            ValueError: There are several agents.
        """
        super().__init__()
        self.episodes = Episodes(_alone(env), instances, first_seed)
        self._like = jax.eval_shape(self.episodes.begin, jax.ShapeDtypeStruct((2,), jnp.uint32))
        shape = self.episodes.observation_shape
        self.observation_space = spaces.Box(-np.inf, np.inf, shape, env.dtype.type)
        self.action_space = env.host.single_action_space

    def _words(self, state: Arrays) -> Array:
        numbers = [leaf.astype(jnp.uint32) if leaf.dtype == bool else leaf for leaf in jax.tree.leaves(state)]
        return jnp.concatenate([lax.bitcast_convert_type(each, jnp.uint32).ravel() for each in numbers])

    def _state(self, words: Array) -> Arrays:
        leaves, place = [], 0
        for like in jax.tree.leaves(self._like):
            shape = (*like.shape, 2) if like.dtype.itemsize == 8 else like.shape
            part = words[place : place + (size := int(np.prod(shape)))].reshape(shape)
            place += size
            leaves.append(part != 0 if like.dtype == bool else lax.bitcast_convert_type(part, like.dtype))
        return jax.tree.unflatten(jax.tree.structure(self._like), leaves)

    def initial(self, rng: Any, params: Any = None) -> Array:
        """Returns the state of a new episode, drawn with a key of ``jax.random``."""
        return self._words(self.episodes.begin(rng))

    def transition(self, state: Array, action: Any, rng: Any, params: Any = None) -> Array:
        """Returns the state after a round; all random numbers follow from the state."""
        return self._words(self.episodes.advance(self._state(state), jnp.asarray(action)[None]))

    def observation(self, state: Array, rng: Any, params: Any = None) -> Array:
        """Returns the observation, ``(numbers,)``."""
        return self._state(state)["observation"][0]

    def reward(self, state: Array, action: Any, next_state: Array, rng: Any, params: Any = None) -> Array:
        """Returns the reward of the round that led to ``next_state``."""
        return self._state(next_state)["reward"][0]

    def terminal(self, state: Array, rng: Any, params: Any = None) -> Array:
        """Returns False: bandits have no terminal state."""
        return jnp.zeros((), bool)

    def transition_info(self, state: Array, action: Any, next_state: Array, params: Any = None) -> Arrays:
        """Returns the ``regret`` of the round; of each environment where states are several, as in vector loops."""
        # Gymnasium's vector loop maps all other functions over environments, and calls this one as it is.
        one = jax.vmap(self._state) if next_state.ndim > 1 else self._state
        return {"regret": one(next_state)["regret"][..., 0]}
