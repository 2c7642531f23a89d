"""Policies made of other people's agents: PettingZoo's functions, objects with ``predict``, and bandit learners.

Functions, objects with ``predict`` and networks see the observations that they were trained on, which are made of
batches in one way, and their actions are converted back. Learners of MABWiser and river are one for each agent.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from gymnasium import spaces as gym_spaces

from fedbandit_envs.baselines.policy import UnfitError
from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.basics.checks import require_choice, require_flag
from fedbandit_envs.basics.entry_points import resolve
from fedbandit_envs.core.inbox import concealed
from fedbandit_envs.core.policy_spec import ActionFormat, PolicySpec
from fedbandit_envs.views.control import Observation, flat, row_of


class AgentIO:
    """A converter of observations to the form on which an inner agent was trained, and of its actions to environments'.

    The inner agent is one of another library, or a function. The two arguments, ``action_format`` and ``features``,
    must be those of the environment's view (PettingZoo, Gymnasium) on which it was trained.

    Attributes:
        observation_space: Space of the converted observation of one agent in one replica.
        action_space: Space of the action that the inner agent returns for one agent in one replica.
        rows: Numbers of replicas and agents, ``(replicas, agents)``.
    """

    def __init__(self, action_format: str | None, features: bool) -> None:
        """Sets the form of actions and observations.

        Args:
            action_format: The format of the inner agent's actions, one of the environment's ``action_formats``; None
                for the environment's own actions.
            features: Whether the inner agent sees :class:`~fedbandit_envs.core.policy_spec.Features` in place of raw
                observations.

        Raises:
            TypeError: ``features`` is no bool.
        """
        self._featured = require_flag("features", features)
        self._name = action_format

    def reset(self, spec: PolicySpec, seeds: Array) -> None:
        """Prepares for an episode: finds the format of actions, and resets the features; see :meth:`Policy.reset`.

        Raises:
            UnfitError: The environment does not have the action format, or it has no features though they are wanted.
        """
        formats = spec.action_formats
        name = next(iter(formats)) if self._name is None else self._name
        if name not in formats:
            raise UnfitError(f"action_format is {name!r}; one of {list(formats)} is required here")
        if self._featured and spec.features is None:
            raise UnfitError("features is True, but this environment has none; features=False is required")
        self._format: ActionFormat = formats[name]
        self.rows: tuple[int, int] = seeds.shape
        self._features = spec.features(spec) if self._featured and spec.features else None
        if self._features is not None:
            self._features.reset(self.rows)
        self.observation_space = self._features.space if self._features else spec.observation
        self.action_space = self._format.space

    def shown(self, observation: Arrays) -> Observation:
        """Returns the observation for the inner agent: computed features, or copies of the arrays.

        It must be called exactly once in each round, because features are updated with every call, and because the
        observation is stored for :meth:`allowed` and :meth:`action`.

        Args:
            observation: The environment's observation, with leading axes ``(replicas, agents)``, which the result has,
                too.
        """
        self._observation = observation
        if self._features is not None:
            return self._features.see(observation)
        return {name: array.copy() for name, array in observation.items()} | concealed(observation)

    def allowed(self) -> Array | None:
        """Returns the mask of actions that are allowed in this round, bool ``(replicas, agents, entries)``.

        None means that all actions are allowed.
        """
        masks = getattr(self._format, "allowed", None)
        return None if masks is None else masks(self._observation)

    def action(self, who: str, answers: Any) -> Any:
        """Returns the environment's actions for the actions that the inner agent has returned.

        Args:
            who: Name of the inner agent, for error messages.
            answers: The inner agent's actions, elements of ``action_space``, with one leading axis over the agents of
                all replicas, replica by replica.

        Raises:
            ValueError: The actions have the wrong shape, or a number is NaN; the message names agent and replica.
        """
        return self._format.to_action(self._checked(who, answers, self.action_space), self._observation)

    def _checked(self, who: str, answers: Any, space: gym_spaces.Space[Any]) -> Any:
        """Returns the inner agent's actions, elements of ``space``, as arrays ``(replicas, agents, ...)``."""
        if isinstance(space, gym_spaces.Dict):
            return {
                name: self._checked(f"{who}, {name!r},", answers[name], part) for name, part in space.items()
            }
        array, (replicas, agents), wanted = np.asarray(answers), self.rows, space.shape or ()
        if array.shape != (replicas * agents, *wanted):
            raise ValueError(
                f"{who} answers all rows together with shape {array.shape}; {(replicas * agents, *wanted)} is "
                "required, replica by replica"
            )
        if array.dtype.kind == "f" and np.isnan(array).any():
            row, *entry = (int(i) for i in np.argwhere(np.isnan(array))[0])
            raise ValueError(
                f"{who} answers nan{f', entry {entry[0]},' if entry else ''} for agent_{row % agents} of replica "
                f"{row // agents}; a number is required, an element of {space}"
            )
        return array.reshape(replicas, agents, *wanted)


Agent = Callable[[Any], Any]
"""The type of a function that is given one agent's observation and returns its action, as in the PettingZoo API."""


class AgentFunctions:
    """A policy that calls a function for each agent of each replica, in the style of PettingZoo.

    If functions are given by name, agent j plays ``agent_j``'s. So a single agent of a federation can be played by
    itself only if all functions are the same: it would be taken for ``agent_0``.

    Example:
        >>> import numpy as np
        >>> from fedbandit_envs import arms_v0
        >>> from fedbandit_envs.baselines.adapters import AgentFunctions
        >>> env = arms_v0.parallel_env(num_agents=2, num_arms=4)
        >>> policy = AgentFunctions({"agent_0": lambda seen: 0, "agent_1": lambda seen: 3})
        >>> policy.reset(env.policy_spec, np.zeros((1, 2), np.uint64))
        >>> policy.act(env.reset_batch([0]).observation)
        array([[0, 3]])
    """

    def __init__(
        self,
        agents: Mapping[str, Agent] | Callable[[str, int], Agent] | str,
        action_format: str | None = None,
        features: bool = False,
    ) -> None:
        """Sets the functions.

        Args:
            agents: A function for each agent, by name; or a function that makes such a function, given the agent's name
                and a seed, and is called for each agent, replica and episode (for agents with a memory or random
                numbers); or the entry point ``"module:function"`` of such an object.
            action_format: Format of the actions that functions return; None for the environment's own actions.
            features: Whether functions are given features instead of raw observations.
        """
        self._agents = resolve(agents) if isinstance(agents, str) else agents
        self._io = AgentIO(action_format, features)

    def reset(self, spec: PolicySpec, seeds: Array) -> None:
        """Finds or makes the functions of all agents; see :meth:`Policy.reset`.

        Raises:
            UnfitError: There is no function for some agent.
        """
        self._io.reset(spec, seeds)
        given = self._agents
        if isinstance(given, Mapping):
            if missing := [f"agent_{j}" for j in range(spec.agents) if f"agent_{j}" not in given]:
                raise UnfitError(f"agents has no function for {', '.join(missing)}; one an agent is required")
            self._functions = [given[f"agent_{j}"] for _ in seeds for j in range(seeds.shape[1])]
        else:
            self._functions = [given(f"agent_{j}", int(seed)) for row in seeds for j, seed in enumerate(row)]

    def act(self, observation: Arrays) -> Any:
        """Returns the actions that the functions return; see :meth:`Policy.act`.

        Raises:
            ValueError: An action has the wrong shape or is NaN; the message names agent and replica.
        """
        shown = flat(self._io.shown(observation))
        answers = [agent(row_of(shown, row)) for row, agent in enumerate(self._functions)]
        return self._io.action("the function", _stacked(answers, self._io.action_space, self._io.rows[1]))


def _stacked(answers: list[Any], space: gym_spaces.Space[Any], agents: int) -> Any:
    """Returns the actions of all agents, replica by replica, as arrays whose first axis goes over them."""
    parts = dict(space.items()) if isinstance(space, gym_spaces.Dict) else None
    for row, answer in enumerate(answers):
        named = isinstance(answer, Mapping) and answer.keys()
        if named != parts.keys() if parts else np.shape(answer) != (space.shape or ()):
            raise ValueError(
                f"the function of agent_{row % agents} of replica {row // agents} answers {answer!r}; an element of "
                f"{space} is required"
            )
    if parts:
        return {name: _stacked([one[name] for one in answers], part, agents) for name, part in parts.items()}
    return np.array(answers)


class PredictPolicy:
    """A policy that calls ``predict(observations) -> actions`` of an object once in each round, for all agents.

    Scikit-learn's estimators have this method, as have the agents of many libraries. Each action must depend on the
    observation in the same row alone, so that agents do not see each other's observations; this is not checked.

    Example:
        >>> import numpy as np
        >>> from fedbandit_envs import arms_v0
        >>> from fedbandit_envs.baselines.adapters import PredictPolicy
        >>> class First:
        ...     def predict(self, rows):
        ...         return np.zeros(len(rows), int)
        >>> env = arms_v0.parallel_env(num_agents=3, num_arms=4)
        >>> policy = PredictPolicy(First())
        >>> policy.reset(env.policy_spec, np.zeros((1, 3), np.uint64))
        >>> policy.act(env.reset_batch([0]).observation)
        array([[0, 0, 0]])
    """

    def __init__(self, agent: Any, action_format: str | None = None, features: bool = True) -> None:
        """Sets the agent.

        Args:
            agent: An object whose ``predict`` takes one array of features, or arrays of observations by name, whose
                first axis goes over the agents of all replicas, and returns actions with the same first axis; of a
                tuple the first entry is used. Or the entry point ``"module:Class"`` of its class.
            action_format: Format of the returned actions; None for the environment's own actions.
            features: Whether ``predict`` is given features instead of raw observations.

        Raises:
            TypeError: The agent has no ``predict``.
        """
        self._agent = resolve(agent)() if isinstance(agent, str) else agent
        if not callable(getattr(self._agent, "predict", None)):
            raise TypeError(f"agent is {self._agent!r}; an object with predict(observations) is required")
        self._io = AgentIO(action_format, features)

    def reset(self, spec: PolicySpec, seeds: Array) -> None:
        """Prepares for an episode; the agent is not called. See :meth:`Policy.reset`."""
        self._io.reset(spec, seeds)

    def act(self, observation: Arrays) -> Any:
        """Returns the agent's actions; see :meth:`Policy.act`.

        Raises:
            ValueError: An action has the wrong shape or is NaN.
        """
        answers = self._agent.predict(flat(self._io.shown(observation)))
        actions = answers[0] if isinstance(answers, tuple) else answers
        return self._io.action(type(self._agent).__name__, actions)


class _RowLearners:
    """The base class of policies in which one bandit learner for each agent chooses one arm in each round.

    A learner has the methods ``pull``, which is given a list of the available arms and returns one of them, and
    ``update``, which is given an arm that was pulled and its reward. Learners do not get the messages that agents
    receive. A learner does not choose in rounds in which all its arms sleep or its agent does not act.
    """

    def __init__(self, who: str, make: Callable[[int, int], Any]) -> None:
        """Sets the library's name and the function that makes learners from a number of arms and a seed below 2^32."""
        self._who = who
        self._make = make

    def reset(self, spec: PolicySpec, seeds: Array) -> None:
        """Makes a new learner for each agent of each replica; see :meth:`Policy.reset`.

        Raises:
            UnfitError: The environment is not one of Bernoulli arms, or several arms are pulled in a round.
        """
        arms = spec.action
        if not isinstance(arms, gym_spaces.Discrete) or "total_successes" not in spec.observation.spaces:
            raise UnfitError(
                f"{self._who} pulls one arm a round of FedArms and its like; actions here are {arms}"
            )
        number = int(arms.n)
        self._learners = [self._make(number, int(seed) % 2**32) for seed in seeds.flat]
        self._known = np.zeros((2, seeds.size, number), np.int64)
        self._arms: Array = np.zeros(seeds.shape, np.int64)

    def act(self, observation: Arrays) -> Array:
        """Returns the arms that the learners choose, int64 ``(replicas, agents)``; see :meth:`Policy.act`.

        Raises:
            ValueError: A learner chose an arm that is not available; the message names agent and replica.
        """
        shape = self._known.shape[1:]
        counts = np.stack([observation[f"total_{name}"].reshape(shape) for name in ("pulls", "successes")])
        pulls, successes = counts - self._known
        self._known = counts
        for row, arm in np.argwhere(pulls):
            self._learners[row].update(int(arm), float(successes[row, arm]))
        active = observation.get("active", np.ones(self._arms.shape, np.bool_)).reshape(-1)
        awake = observation.get("awake", np.ones(shape, np.bool_)).reshape(shape)
        for row in np.flatnonzero(active & awake.any(axis=1)).tolist():
            arms = np.flatnonzero(awake[row]).tolist()
            arm = self._learners[row].pull(arms)
            if arm not in arms:
                replica, agent = divmod(row, self._arms.shape[1])
                raise ValueError(
                    f"{self._who} answers {arm!r} for agent_{agent} of replica {replica}; one of the arms {arms} is "
                    "required"
                )
            self._arms.flat[row] = arm
        return self._arms


class _Wiser:
    """A ``MAB`` of MABWiser that learns from one agent's pulls; every arm is pulled once before it predicts."""

    def __init__(self, bandit: Any, arms: int) -> None:
        self._bandit, self._arms = bandit, arms
        self._first: dict[int, float] = {}

    def pull(self, arms: list[int]) -> Any:
        return len(self._first) if len(self._first) < self._arms else self._bandit.predict()

    def update(self, arm: int, reward: float) -> None:
        if len(self._first) == self._arms:
            self._bandit.partial_fit([arm], [reward])
            return
        self._first[arm] = reward
        if len(self._first) == self._arms:
            self._bandit.fit(list(self._first), list(self._first.values()))


class MABWiserPolicy(_RowLearners):
    """Pulls the arms that the library MABWiser chooses, after one pull of each arm; arms may not sleep.

    Example:
        >>> from fedbandit_envs.baselines.adapters import MABWiserPolicy
        >>> policy = MABWiserPolicy("EpsilonGreedy", {"epsilon": 0.2})  # doctest: +SKIP
    """

    def __init__(self, learning_policy: str = "UCB1", parameters: Mapping[str, Any] | None = None) -> None:
        """Sets MABWiser's learning policy.

        Args:
            learning_policy: Name of a learning policy in ``mabwiser.mab.LearningPolicy`` that uses no contexts.
            parameters: Keyword arguments of the learning policy.

        Raises:
            ImportError: MABWiser is not installed.
            ValueError: MABWiser has no such learning policy.
        """
        from mabwiser.mab import MAB, LearningPolicy  # an optional library

        known = [name for name in vars(LearningPolicy) if not name.startswith(("_", "Lin"))]
        require_choice("learning_policy", learning_policy, known)
        chosen = getattr(LearningPolicy, learning_policy)(**(parameters or {}))
        super().__init__(
            "MABWiser", lambda arms, seed: _Wiser(MAB(list(range(arms)), chosen, seed=seed), arms)
        )

    def reset(self, spec: PolicySpec, seeds: Array) -> None:
        """Makes a new learner for each agent; see :meth:`RiverPolicy.reset`.

        Raises:
            UnfitError: Arms of the environment may sleep, which MABWiser does not support.
        """
        if "awake" in spec.observation.spaces:
            raise UnfitError("MABWiser does not support sleeping arms; awake=1.0 or RiverPolicy is required")
        super().reset(spec, seeds)


class RiverPolicy(_RowLearners):
    """Pulls the arms that a bandit policy of ``river.bandit`` chooses; arms may sleep.

    Example:
        >>> from fedbandit_envs.baselines.adapters import RiverPolicy
        >>> policy = RiverPolicy("UCB", {"delta": 1.0})  # doctest: +SKIP
    """

    def __init__(
        self,
        policy: str | Callable[[int], Any] = "ThompsonSampling",
        parameters: Mapping[str, Any] | None = None,
    ) -> None:
        """Sets river's bandit policy.

        Args:
            policy: Name of a class of bandit policies in ``river.bandit`` that use no contexts; or a function that
                makes a bandit policy, given a seed (for classes that need arguments other than numbers and text).
            parameters: Keyword arguments of the class, besides its seed. Thompson sampling has a Beta distribution of
                rewards by default.

        Raises:
            ImportError: river is not installed.
            TypeError: The class does not take these arguments, or needs others.
            ValueError: river has no such class.
        """
        from river import bandit, proba  # an optional library

        kinds: dict[str, Callable[..., Any]] = {
            name: kind
            for name, kind in vars(bandit).items()
            if isinstance(kind, type) and not issubclass(kind, bandit.base.ContextualPolicy)
        }
        arguments = dict(parameters or {})
        if isinstance(policy, str):
            require_choice("policy", policy, kinds)
            if policy == "ThompsonSampling" and "reward_obj" not in arguments:
                arguments["reward_obj"] = proba.Beta()

        def make(arms: int, seed: int) -> Any:
            return kinds[policy](**arguments, seed=seed) if isinstance(policy, str) else policy(seed)

        make(1, 0)
        super().__init__("river", make)
