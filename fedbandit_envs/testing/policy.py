"""Conformance checks of policies and reporters."""

from collections.abc import Callable
from typing import Any

import numpy as np
from gymnasium import spaces

from fedbandit_envs.basics.arrays import Arrays
from fedbandit_envs.core.policy_spec import Reporter
from fedbandit_envs.randomness.streams import row_seeds
from fedbandit_envs.testing.assertions import mapped, require_same, taken
from fedbandit_envs.testing.episodes import SEEDS, Make, Trial, copied, random_choices, require_in_space
from fedbandit_envs.views.control import Peer

HORIZON = 120
"""Number of rounds that a policy plays, or a reporter observes."""

Rows = tuple[slice, slice]
"""Replicas and agents."""

_ALL: Rows = (slice(None), slice(None))


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

    def act(policy: Peer, t: int, observation: Arrays, rows: Rows) -> Any:
        action = policy.act(observation)
        if rows == _ALL:
            require_in_space("action", action, trial.env.single_action_space, trial.rows, any_width=True)
            trial.actions[t] = action
        return copied(action)

    _check_rows("action", make_policy, act, trial)


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
    shapes = {
        name: (*trial.rows, *(part.shape or ())) for name, part in trial.env.policy_spec.release.items()
    }
    questions = None if question is None else random_choices(question, trial.rows, HORIZON)

    def report(reporter: Reporter, t: int, observation: Arrays, rows: Rows) -> Any:
        reporter.observe(observation)
        asked = None if questions is None else taken(questions[t], rows)
        report = copied(reporter.report(None))
        reports = {"report": report, "answer": copied(reporter.report(asked))}
        if rows == _ALL:
            expected = dict.fromkeys(reports, shapes)
            require_same("the shape of a report", mapped(np.shape, reports), expected)
        return reports

    seen, reports = _check_rows("report", make_reporter, report, trial)
    seldom = make_reporter()
    seldom.reset(trial.env.policy_spec, row_seeds(SEEDS, trial.rows[1]))
    for observation in seen[:-1]:
        seldom.observe(observation)
    last = report(seldom, HORIZON - 1, seen[-1], _ALL)
    what, advice = (
        "of reports in all rounds and in the last one alone",
        "report must not change later reports",
    )
    require_same(f"{what}, the last", last, reports[-1], advice)


def _check_rows(
    noun: str, make: Callable[[], Any], answer: Callable[[Any, int, Arrays, Rows], Any], trial: Trial
) -> tuple[list[Arrays], list[Any]]:
    """Checks that repetitions give equal answers: by a fresh object, after another reset, and for single rows.

    Args:
        noun: Name of an answer, for messages.
        make: A function that makes a policy or a reporter.
        answer: Returns its answer in a round, given the observations of some rows.
        trial: The federation and the actions that are played.

    Returns:
        Copies of the observations of all rows, and the answers to them, by round.
    """
    spec, seeds = trial.env.policy_spec, row_seeds(SEEDS, trial.rows[1])
    used, single, seen, expected = make(), make(), [], []
    observation = trial.env.reset_batch(SEEDS).observation
    used.reset(spec, seeds)
    for t in range(HORIZON):
        seen.append(copied(observation))
        expected.append(answer(used, t, observation, _ALL))
        observation = trial.env.step_batch(trial.actions[t]).observation
    replicas, agents = trial.rows
    fresh = "draw from the seeds given to reset only, and copy what is to be kept of an observation"
    alone = "a row may depend on the same row of observations and seeds alone"
    repetitions = [
        ("an episode and its repetition by a fresh object", make(), _ALL, fresh),
        ("an episode and its repetition after reset", used, _ALL, "let reset forget everything"),
    ]
    for r, j in ((0, 0), (1, agents // 2), (replicas - 1, agents - 1)):
        row = slice(r, r + 1), slice(j, j + 1)
        repetitions.append((f"agent {j} of replica {r}, alone and among the others", single, row, alone))
    for what, again, rows, advice in repetitions:
        again.reset(spec, seeds[rows])
        found = [answer(again, t, taken(observation, rows), rows) for t, observation in enumerate(seen)]
        own = [taken(each, rows) for each in expected]
        require_same(f"of {what}, the {noun} in round", found, own, f"equality is required: {advice}")
    return seen, expected
