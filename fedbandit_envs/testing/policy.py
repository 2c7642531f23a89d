"""Conformance checks of policies, reporters, server policies and features for neural networks."""

from collections.abc import Callable
from copy import deepcopy
from types import SimpleNamespace
from typing import Any

import numpy as np
from gymnasium import spaces

from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.basics.entry_points import handed_down
from fedbandit_envs.core.inbox import concealed
from fedbandit_envs.core.policy_spec import Features, Policy, Reporter
from fedbandit_envs.randomness.streams import row_seeds
from fedbandit_envs.testing.api import check_seeds
from fedbandit_envs.testing.assertions import mapped, require, require_same, taken
from fedbandit_envs.testing.episodes import SEEDS, Make, Trial, copied, random_choices, require_in_space

HORIZON = 120
"""Number of rounds that a policy plays, or a reporter observes."""

SERVER_HORIZON = 40
"""Number of rounds that a server policy plays."""

Rows = tuple[slice, slice]
"""Replicas and agents."""

ALL: Rows = (slice(None), slice(None))
"""All rows."""


def check_policy(make_policy: Callable[[], Policy], make_env: Make) -> None:
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

    def act(policy: Policy, t: int, observation: Arrays, rows: Rows) -> Any:
        action = policy.act(observation)
        if rows == ALL:
            require_in_space("action", action, trial.env.single_action_space, trial.rows, any_width=True)
            trial.actions[t] = action
        return copied(action)

    require_repeatable("action", make_policy, act, trial)


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
    released = trial.env.policy_spec.release.items()
    shapes = {name: (*trial.rows, *(part.shape or ())) for name, part in released}
    questions = None if question is None else random_choices(question, trial.rows, HORIZON)

    def report(reporter: Reporter, t: int, observation: Arrays, rows: Rows) -> Any:
        reporter.observe(observation)
        asked = None if questions is None else taken(questions[t], rows)
        reports = {"report": copied(reporter.report(None)), "answer": copied(reporter.report(asked))}
        if rows == ALL:
            expected = dict.fromkeys(reports, shapes)
            require_same("the shape of a report", mapped(np.shape, reports), expected)
        return reports

    seen, reports = require_repeatable("report", make_reporter, report, trial)
    seldom = make_reporter()
    seldom.reset(trial.env.policy_spec, row_seeds(SEEDS, trial.rows[1]))
    for observation in seen[:-1]:
        seldom.observe(observation)
    last = report(seldom, HORIZON - 1, seen[-1], ALL)
    what = "of reports in all rounds and in the last one alone, the last"
    require_same(what, last, reports[-1], "report must not change later reports")


def require_repeatable(
    noun: str,
    make: Callable[[], Any],
    answer: Callable[[Any, int, Arrays, Rows], Any],
    trial: Trial,
    reset: Callable[[Any, Array], None] | None = None,
) -> tuple[list[Arrays], list[Any]]:
    """Requires that repetitions give equal answers: by a fresh object, after another reset, and for single rows.

    Args:
        noun: Name of an answer, for messages.
        make: A function that makes the object that answers, such as a policy.
        answer: Returns an object's answer in a round, given the observations of some rows.
        trial: The federation and the actions that are played.
        reset: Resets such an object, given the seeds of some rows; None for the ``reset`` of policies.

    Returns:
        Copies of the observations of all rows, and of the answers to them, by round.
    """
    seeds, (replicas, agents) = row_seeds(SEEDS, trial.rows[1]), trial.rows
    used, single, seen, expected = make(), make(), [], []
    observation = trial.env.reset_batch(SEEDS).observation
    reset = reset or (lambda each, seeds: each.reset(trial.env.policy_spec, seeds))
    reset(used, seeds)
    for t in range(len(trial.actions)):
        seen.append(copied(observation))
        expected.append(copied(answer(used, t, observation, ALL)))
        observation = trial.env.step_batch(trial.actions[t]).observation
    fresh = "draw from the seeds given to reset only, and copy what is to be kept of what is seen or returned"
    alone = "a row may depend on the same row of observations and seeds alone, and of inboxes on what inbox_mask shows"
    repetitions = [
        ("an episode and its repetition by a fresh object", make(), ALL, fresh),
        ("an episode and its repetition after reset", used, ALL, "let reset forget everything"),
    ]
    for r, j in ((0, 0), (1, agents // 2), (replicas - 1, agents - 1)):
        row = slice(r, r + 1), slice(j, j + 1)
        repetitions.append((f"agent {j} of replica {r}, alone and among the others", single, row, alone))
    for what, again, rows, advice in repetitions:
        reset(again, seeds[rows])
        shown = [each if rows == ALL else each | concealed(each) for each in seen]
        found = [answer(again, t, taken(observation, rows), rows) for t, observation in enumerate(shown)]
        own = [taken(each, rows) for each in expected]
        require_same(f"of {what}, the {noun} in round", found, own, f"equality is required: {advice}")
    return seen, expected


def check_features(trial: Trial) -> None:
    """Checks an environment's features for neural networks; environments without features pass.

    Features must lie in their space and be arrays of the caller's own. Those of one agent must follow from its own
    observations alone, and a reset must forget earlier episodes.
    """
    env = trial.env
    kind: type[Features] | None = getattr(env, "features", None)
    if kind is None:
        return

    def reset(features: Features, seeds: Array) -> None:
        features.reset(seeds.shape[:2])

    def see(features: Features, t: int, observation: Arrays, rows: Rows) -> Array:
        shown = features.see(observation)
        if rows == ALL:
            require_in_space(f"{kind.__name__}.see: features", shown, features.space, trial.rows)
        return shown

    require_repeatable(f"features {kind.__name__}", lambda: kind(env.policy_spec), see, trial, reset)


def check_server_policy(policy: Any, make_env: Make) -> None:
    """Checks that a server's answers and questions to a replica follow from that replica's uploads and seed alone.

    The protocol is :class:`~fedbandit_envs.wrappers.transport.server_policy.ServerPolicy`. An episode is played, in
    which agents act and upload at random. It is repeated after another reset, by a new server, and replica by replica.
    What agents receive must be the same. Names, shapes, dtypes and bounds of answers must be as declared, and all
    numbers finite. The policy must not write into what it is given.

    Args:
        policy: The policy, as :class:`~fedbandit_envs.wrappers.Server` accepts it; it is copied.
        make_env: A function that makes the federation inside of the server. It should be small; each call must make a
            new one.

    Raises:
        AssertionError: A requirement does not hold; the message has what was found, what is required and where to
            correct it.
    """

    def served(overwrites: bool = False) -> Any:
        # Wrappers are a higher layer of the package.
        server = handed_down("wrappers")["Server"](make_env(), "on_request", policy=policy)
        own = server._policy

        def answer(uploads: Arrays, mask: Array) -> Any:
            given = {"uploads": uploads, "mask": mask}
            if overwrites:
                given = copied(given)
            reply = deepcopy(own.answer(**given))
            if not isinstance(reply, tuple):
                for name, box in server._downloads.items():
                    found = np.asarray(reply[name])
                    fits = found.dtype == box.dtype and ((found >= box.low) & (found <= box.high)).all()
                    what = f"answer {name!r} is {found.dtype} from {found.min()} to {found.max()}"
                    require(fits, f"{what}; an element of {box}, as declared in downloads, is required")
            if overwrites:
                mapped(lambda array: array.fill(1), given)
            return reply

        server._policy = SimpleNamespace(reset=own.reset, answer=answer)
        return server

    trial = Trial(served, rounds=SERVER_HORIZON)
    try:
        plain, overwritten = trial.episode(), Trial(lambda: served(True), rounds=SERVER_HORIZON).episode()
        what = "of two episodes, one with uploads and mask that are overwritten after each call, round"
        require_same(what, overwritten, plain, "copy what is to be kept of uploads and mask")
        check_seeds(trial)
    except (KeyError, TypeError, ValueError) as error:
        raise AssertionError(f"the server refuses a reply, or the policy fails: {error!r}") from error
