"""Conformance checks of policies and reporters."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from gymnasium import spaces

from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.core.policy_spec import PolicySpec, Reporter
from fedbandit_envs.randomness.streams import row_seeds
from fedbandit_envs.testing.assertions import require, require_same, taken
from fedbandit_envs.testing.episodes import SEEDS, Make, Trial, copied, random_choices, require_in_space
from fedbandit_envs.views.control import Peer

HORIZON = 120
"""Number of rounds that a policy plays, or a reporter observes."""


def check_policy(make_policy: Callable[[], Peer], make_env: Make) -> None:
    """Checks that each row of a policy's actions follows from that row's observations and seeds alone.

    The protocol is :class:`fedbandit_envs.baselines.policy.Policy`. One episode is played; its observations are then
    given to the policy again, after another reset and agent by agent.

    Args:
        make_policy: A function that makes the policy: the class ``MyPolicy`` itself, or a function that adds arguments.
        make_env: A function that makes the federation that the policy plays, with the wrappers that it needs. It should
            be small; each call must make a new one.

    Raises:
        AssertionError: A requirement does not hold; the message has what was found, what is required and where to
            correct it.
    """
    trial = Trial(make_env, rounds=HORIZON)
    env = trial.env
    spec, seeds = env.policy_spec, row_seeds(SEEDS, env.max_num_agents)
    policy = make_policy()
    observations, actions = [], []
    observation = env.reset_batch(SEEDS).observation
    policy.reset(spec, seeds)
    for _ in range(HORIZON):
        observations.append(_kept(observation))
        action = _given("act", policy.act, observation)
        require_in_space("action", action, env.single_action_space, trial.rows, any_width=True)
        actions.append(copied(action))
        observation = env.step_batch(action).observation

    def replay(again: Peer, rows: tuple[slice, slice]) -> Iterable[Any]:
        return [_given("act", again.act, taken(observation, rows)) for observation in observations]

    _check_rows("action", policy, make_policy, replay, actions, spec, seeds)


def check_reporter(
    make_reporter: Callable[[], Reporter], make_env: Make, question: spaces.Dict | None = None
) -> None:
    """Checks that each row of a reporter's reports follows from that row's observations, question and seed alone.

    The protocol is :class:`fedbandit_envs.core.policy_spec.Reporter`. One episode of random actions is played; its
    observations are then given to the reporter again, after another reset, agent by agent, and with fewer reports.

    Args:
        make_reporter: A function that makes the reporter: the class ``MyReporter`` itself, or a function that adds
            arguments.
        make_env: A function that makes the federation that the reporter observes, with
            :class:`fedbandit_envs.wrappers.Messages` around it, which declares the arrays of a report. It should be
            small; each call must make a new one.
        question: Space of what a server asks one agent; questions are drawn from it. None for no questions.

    Raises:
        AssertionError: A requirement does not hold; the message has what was found, what is required and where to
            correct it.

    Example:
        >>> import numpy as np
        >>> from fedbandit_envs import arms_v0
        >>> from fedbandit_envs.wrappers import Messages
        >>> class Pulls:
        ...     def reset(self, spec, seeds):
        ...         pass
        ...     def observe(self, observation):
        ...         self.pulls = observation["total_pulls"].astype(np.float64)
        ...     def report(self, question):
        ...         return {"pulls": self.pulls}
        >>> arms = lambda: arms_v0.parallel_env(num_agents=2, num_arms=3)
        >>> check_reporter(Pulls, lambda: Messages(arms(), {"pulls": {"shape": [3]}}))
    """
    trial = Trial(make_env, rounds=HORIZON)
    spec, seeds = trial.env.policy_spec, row_seeds(SEEDS, trial.env.max_num_agents)
    questions = [None] * (HORIZON + 1)
    if question is not None:
        questions = random_choices(question, trial.rows, HORIZON + 1)
    observations: list[Arrays] = []
    shapes = {name: (*trial.rows, *(part.shape or ())) for name, part in spec.release.items()}

    def played() -> Iterable[Arrays]:
        for t in range(HORIZON + 1):
            observation = (
                trial.env.step_batch(trial.actions[t - 1]) if t else trial.env.reset_batch(SEEDS)
            ).observation
            observations.append(_kept(observation))
            yield observation

    def replay(
        again: Reporter, rows: tuple[slice, slice], first: int = 0, seen: Iterable[Arrays] = observations
    ) -> Iterable[Any]:
        for t, (observation, ask) in enumerate(zip(seen, questions, strict=True)):
            _given("observe", again.observe, taken(observation, rows))
            if t >= first:
                own = None if ask is None else taken(ask, rows)
                yield {
                    name: _given("report", again.report, each)
                    for name, each in (("report", None), ("answer", own))
                }

    everyone = slice(None), slice(None)
    reporter = make_reporter()
    reporter.reset(spec, seeds)
    reports = list(replay(reporter, everyone, seen=played()))
    for report in reports:
        for kind, arrays in report.items():
            found = {name: np.shape(array) for name, array in arrays.items()}
            require(found == shapes, f"{kind} has arrays of the shapes {found}; {shapes} is required")
    _check_rows("report", reporter, make_reporter, replay, reports, spec, seeds)
    seldom = make_reporter()
    seldom.reset(spec, seeds)
    require_same(
        "of reports in all rounds and in the last one alone, the last",
        reports[-1:],
        list(replay(seldom, everyone, HORIZON)),
        "equality is required: report must not change what later reports are",
    )


def _check_rows(
    noun: str,
    used: Any,
    make: Callable[[], Any],
    replay: Callable[[Any, tuple[slice, slice]], Iterable[Any]],
    expected: list[Any],
    spec: PolicySpec,
    seeds: Array,
) -> None:
    """Checks that repetitions give equal answers: by a fresh object, after another reset, and for single rows.

    Args:
        noun: Name of an answer, for messages.
        used: The policy or reporter that has given the expected answers.
        make: A function that makes another one.
        replay: Gives the episode's observations of some rows to an object, and returns its answers by round.
        expected: The answers for all rows, by round.
        spec: The argument of ``reset``.
        seeds: The seeds of all rows.
    """

    def require_equal(what: str, repeated_by: Any, rows: tuple[slice, slice], required: str) -> None:
        repeated_by.reset(spec, seeds[rows])
        require_same(
            f"of {what}, the {noun} in round",
            [copied(answer) for answer in replay(repeated_by, rows)],
            [taken(answer, rows) for answer in expected],
            f"equality is required: {required}",
        )

    all_rows, alone = (slice(None), slice(None)), make()
    require_equal(
        "an episode and its repetition by a fresh object, on copies of the observations",
        make(),
        all_rows,
        "draw from the seeds given to reset only, and copy what is to be kept of an observation, which holds until "
        "the next round",
    )
    require_equal("an episode and its repetition after reset", used, all_rows, "let reset forget everything")
    replicas, agents = seeds.shape
    for r, j in ((0, 0), (1, agents // 2), (replicas - 1, agents - 1)):
        require_equal(
            f"agent {j} of replica {r}, alone and among the others",
            alone,
            (slice(r, r + 1), slice(j, j + 1)),
            "a row may depend on the same row of observations and seeds alone",
        )


def _given(name: str, method: Callable[..., Any], argument: Any) -> Any:
    """Calls a method with observations, or ``report`` with a question, and returns a copy of its answer."""
    try:
        return copied(method(argument))
    except ValueError as error:
        if "read-only" not in str(error):
            raise
        raise AssertionError(
            f"{name} writes into its {'question' if name == 'report' else 'observation'} ({error}); observations are "
            "the environment's: copy what is to change"
        ) from error


def _kept(observation: Any) -> Any:
    """Returns read-only copies of observations."""
    kept = copied(observation)
    for array in kept.values():
        array.flags.writeable = False
    return kept
