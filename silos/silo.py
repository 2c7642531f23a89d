"""One agent of a federation by itself: it acts, observes, releases with noise, and receives, from a store on disk."""

import json
import os
import secrets
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict
from types import SimpleNamespace
from typing import Any

import numpy as np

from fedbandit_envs.baselines.policy import UnfitError
from fedbandit_envs.basics.arrays import Array, Arrays, Buffers, zeros
from fedbandit_envs.basics.checks import require_integer
from fedbandit_envs.core.privacy import Claim
from fedbandit_envs.randomness.streams import noise_names, noise_streams, row_seeds
from fedbandit_envs.silos import noise as secret_noise
from fedbandit_envs.silos.messages import Message, MessageError
from fedbandit_envs.silos.numbers import numbers_of, set_numbers
from fedbandit_envs.silos.plan import SiloPlan
from fedbandit_envs.silos.store import Release, SiloStore, StoreError
from fedbandit_envs.wrappers.privacy.accounting.event import Accountant, Event
from fedbandit_envs.wrappers.privacy.mechanisms.additive import Mechanism
from fedbandit_envs.wrappers.privacy.privatizer import BudgetExhaustedError
from fedbandit_envs.wrappers.privacy.report import FLOATING, PrivacyReport, make_report

_ONE = np.ones((1, 1), np.bool_)


class TurnError(RuntimeError):
    """Raised when a silo is asked for something out of turn; nothing has changed then."""


class Silo(AbstractContextManager["Silo"]):
    """One agent of a federation: what it has observed and spent is on disk after every call.

    A round is :meth:`act`, then :meth:`observe`. After the rounds in which the plan has a release, :attr:`due` is true:
    :meth:`release` then returns a message, which whoever carries messages brings to :meth:`receive` of the others,
    before they act again or later. Each call is one transaction: a process that is killed at any moment opens the store
    again, and :attr:`round`, :attr:`pending` and :attr:`due` say where it was.

    Noise is secret unless asked otherwise: drawn from the operating system's random bits, on a grid
    (:mod:`fedbandit_envs.silos.noise`). With a ``seed`` a silo plays what agent ``agent`` of the simulation with the
    same seed plays, bit for bit; its noise is then ``repeatable``, and claims say so.

    Example:
        >>> from tempfile import mkdtemp
        >>> plan = SiloPlan(
        ...     "fedbandit_envs.baselines.arms:UCB1", "FedArms-v0", 8, {"num_agents": 2, "num_arms": 2},
        ...     stack=[["GaussianPrivatizer", {"epsilon": 1.0, "delta": 1e-5, "releases": 2}],
        ...            ["Channel", {"schedule": {"name": "fixed_gap", "gap": 4}}]],
        ... )
        >>> folder = mkdtemp()
        >>> with Silo(plan, 0, f"{folder}/0.db") as one, Silo(plan, 1, f"{folder}/1.db") as other:
        ...     while not one.due:
        ...         for silo in (one, other):
        ...             action = silo.act({})
        ...             silo.observe(action, outcome=1)
        ...     other.receive([one.release().encode()])
        ...     round(one.privacy().epsilon, 2), one.privacy().noise, other.privacy().epsilon
        (0.68, 'secret', 0.0)
    """

    def __init__(
        self, plan: SiloPlan, agent: int, store: str | os.PathLike[str], seed: int | None = None
    ) -> None:
        """Opens the silo's store, or makes it.

        Args:
            plan: What all silos play.
            agent: The silo's number, from 0.
            store: Path of the store's file, of this silo alone.
            seed: None for secret noise. The seed of a simulation makes noise repeatable; nobody should rely on the
                claims then.

        Raises:
            TypeError: An argument has the wrong type.
            ValueError: An argument is out of its range.
            UnfitError: Silos cannot play the plan, or keep the policy, or there is no secret noise for the mechanism.
            StoreError: The store cannot be used.
        """
        self._seed = None if seed is None else require_integer("seed", seed, 0)
        self.plan, self.layout = plan, plan.layout
        agents = self.layout.agents
        self.agent = require_integer("agent", agent, 0, agents - 1)
        _, self._problem, self._privatizer, transport, self._policy = (parts := plan.make())
        self._mechanism = self._privatizer.mechanism
        if seed is None:
            secret_noise.require_fit(self._mechanism)
        self._seen = self._problem.alone()
        inbox = zeros(transport._inbox_spaces, (1,))
        self._inbox = Buffers(inbox, 1, inbox)
        self._index = np.zeros((1, 1), np.int64)
        own_seed = secrets.randbits(64) if seed is None else seed
        # What is kept of the silo itself; of the policy, and of mechanism and noise, what `numbers_of` finds is kept.
        self._own = SimpleNamespace(
            identity=f"silo {agent} with seed {seed}, plan {plan.identity}",
            policy_seed=row_seeds([own_seed], agents)[:, agent : agent + 1],
            pending=None,
            last=0,
            # The round of the last release that was received, by silo; of this one, that came back in a sum.
            received=np.zeros(agents, np.int64),
            released=self._problem._released,
            seen=self._problem._observation,
            inbox=self._inbox.arrays,
        )
        self._started, self._past = False, Arrays()
        self._noise = [self._mechanism, self._past]
        self._measured: dict[str, Any] = {}
        self._accountant = Accountant(1, 1, adjacencies=tuple(self._problem.sensitivity().changes))
        self._store = SiloStore(store)
        kept: dict[str, dict[str, Any]] | None = None
        try:
            if kept := self._store.state:
                if (found := kept["own"]["identity"]) != self._own.identity:
                    raise StoreError(f"store {store} is of {found}; one of {self._own.identity} is required")
                set_numbers(self._own, kept["own"])
            self._policy.reset(parts.env.policy_spec, self._own.policy_seed)
            if kept:
                self._restore(kept)
            else:
                self._save("policy")
        except BaseException as error:
            self._store.close()
            if kept != {} and isinstance(error, KeyError | TypeError | ValueError):
                raise StoreError(
                    f"store {store} is damaged, or of another version, or the policy has parts that it lacks when it "
                    f"is reset: {error!r}"
                ) from error
            raise

    @property
    def round(self) -> int:
        """How many rounds have been observed."""
        return int(self._seen["round"][0, 0, 0])

    @property
    def pending(self) -> Array | None:
        """The action that waits for its outcome; None between rounds."""
        return None if self._own.pending is None else self._own.pending.copy()

    @property
    def due(self) -> bool:
        """Whether the plan has a release after this round, and it has not been made yet."""
        return (
            self._own.pending is None and self._own.last < (t := self.round) and self.layout.schedule.sends(t)
        )

    def act(self, observation: Mapping[str, Any]) -> Array:
        """Returns the action of the next round.

        Args:
            observation: What the agent is given before it acts, such as contexts or capacities, by the names of the
                environment's observation. What follows from outcomes and messages is the silo's own.

        Returns:
            The action, an element of the environment's action space.

        Raises:
            TurnError: The last action has no outcome yet, or all rounds have been played.
            ValueError: The observation does not fit, or changes what the sensitivity rests on, such as capacities.
        """
        if self._own.pending is not None or self.round >= self.plan.rounds:
            found = f"round {self.round} of {self.plan.rounds} has the action {self._own.pending}"
            raise TurnError(f"{found}; None, and a further round, is required before an action")
        before = {name: self._seen[name][0, 0].copy() for name in observation if name in self._seen}
        self._problem.show(observation)
        scale = self._problem.sensitivity().scale
        if self._started and not all(map(np.array_equal, scale.values(), self._scale.values())):
            self._problem.show(before)
            raise ValueError(
                "observation changes the sensitivity of releases; that of the first round is required"
            )
        with self._changing():
            changed = ["policy"]
            if not self._started:
                self._start()
                changed.append("noise")
            action = self._policy.act({**self._seen, **self._inbox.views})
            if isinstance(action, Mapping):
                raise UnfitError(f"the policy returns {sorted(action)}; an action alone is required of silos")
            self._own.pending = np.array(action[0, 0])
            # The policy has seen them. What is received from here on waits for the next action.
            for array in self._inbox.arrays.values():
                array.fill(0)
            self._save(*changed)
            return self._own.pending.copy()

    def observe(self, action: Any, outcome: Any) -> None:
        """Takes in what came of an action; when this returns, it is kept.

        Args:
            action: The action that was taken, usually the one that :meth:`act` has returned.
            outcome: What came of it: the reward, in arms the success of each slot, in procurement the good units.

        Raises:
            TurnError: No action waits for an outcome.
            TypeError: An argument has the wrong type.
            ValueError: An argument is not possible. The action goes on waiting.
        """
        if self._own.pending is None:
            raise TurnError(f"round {self.round} has no action that waits for an outcome; call act first")
        self._problem.take_in(action, outcome)
        with self._changing():
            self._own.pending = None
            self._mechanism.observe(self._seen)
            # Most mechanisms do nothing with single rounds.
            observes = type(self._mechanism).observe is not Mechanism.observe
            self._save(*["noise"] * observes)

    def release(self) -> Message:
        """Returns what the statistic has grown by since the last release, with noise.

        The privacy that it costs is booked, on disk, before this returns: it is spent even if the message is never
        sent. The message stays in the store (:attr:`messages`) and may be sent again.

        Raises:
            TurnError: No release is due.
            BudgetExhaustedError: The release is not in the mechanism's plan, or would exceed the budget.
        """
        if not self.due:
            raise TurnError(
                f"no release is due after round {self.round}; one that the plan has, not yet made, is required"
            )
        done, most, budget = int(self._index[0, 0]), self._mechanism.max_releases, self._privatizer.budget
        events = self._mechanism.events(_ONE, self._index)
        spent = self._accountant.after(events).epsilon_by_agent(**self._measured)[0, 0]
        if (most is not None and done >= most) or spent > budget.epsilon * (1 + 1e-12):
            raise BudgetExhaustedError(
                f"releases is {most} and the budget {budget}; {done} have been made, and another one would spend "
                f"epsilon {spent:.4g}"
            )
        with self._changing():
            grown = self._privatizer.env._release(_ONE)
            if self._seed is None:
                noisy = secret_noise.randomised(self._mechanism, grown, self._index, self._past)
            else:
                noisy = self._mechanism.randomise(grown, _ONE, self._index)
            self._book(events)
            arrays = {name: np.array(array[0, 0], np.float64) for name, array in noisy.items()}
            self._own.last = self.round
            message = Message(self.plan.identity, ((self.agent, self.round),), arrays)
            self._save("noise", release=(self.round, _written(events), message.encode()))
        return message

    @property
    def messages(self) -> list[Message]:
        """The messages of all releases so far, in order, to be sent again where they were lost."""
        return [Message.decode(packet, self.layout) for *_, packet in self._store.releases]

    @property
    def totals(self) -> Arrays:
        """The silo's own statistics, sums over its rounds by name, without noise: for nobody but itself."""
        return {name: self._seen[f"total_{name}"][0, 0].copy() for name in self._problem.statistics}

    @property
    def received(self) -> dict[int, int]:
        """After which round the last release was made that was received of each silo, by the silo's number."""
        return {j: t for j, t in enumerate(self._own.received.tolist()) if t > 0}

    def receive(self, messages: Iterable[bytes]) -> None:
        """Takes in messages of other silos, or sums of such; the policy sees them when it acts next, added up.

        Where silos receive sums (:attr:`.Layout.sums`), this silo's own releases may be in them; they are subtracted.

        Args:
            messages: Messages as bytes. If one is refused, none is taken in.

        Raises:
            MessageError: A message is malformed, of another plan, not finite, or of this silo alone; or a release in it
                is a repeat, older than one that was received from its sender, or this silo's and not in the store.
        """
        found, received = [], self._own.received.copy()
        own = {one.parts[0]: one for one in self.messages} if self.layout.sums else {}
        for packet in messages:
            one = Message.decode(packet, self.layout)
            if all(sender == self.agent for sender, _ in one.parts):
                raise MessageError(f"a message is of silo {self.agent}, this one; one of others is required")
            for sender, round_ in one.parts:
                last = received[sender]
                if round_ <= last or (sender == self.agent and (sender, round_) not in own):
                    raise MessageError(
                        f"the release of silo {sender} after round {round_} is a repeat, out of turn, or none of this "
                        f"silo's own; one that was made after round {last} is required"
                    )
                received[sender] = round_
            found.append(one)
        with self._changing():
            self._own.received = received
            for one in found:
                place = 0 if self.layout.sums else one.parts[0][0]
                self._inbox.arrays["inbox_mask"][0, place] = True
                for name, array in one.arrays.items():
                    mine = sum(own[part].arrays[name] for part in one.parts if part in own)
                    self._inbox.arrays[f"inbox_{name}"][0, place] += array - mine
            self._save()

    def privacy(self) -> Claim:
        """Returns the privacy guarantee of all releases that this silo has booked."""
        return self._claims()[0]

    def report(self, **measured: float) -> PrivacyReport:
        """Returns a report on the privacy of all releases that this silo has booked.

        Args:
            **measured: What was measured besides and belongs into it, such as ``audited_epsilon`` or ``regret``.
        """
        subject = {
            "kind": "silo",
            "environment": self._problem.metadata["name"],
            "agents": self.layout.agents,
            "silo": self.agent,
            "plan": self.plan.identity,
            "rounds_played": self.round,
            "rounds_planned": self.plan.rounds,
        }
        sampling = secret_noise.SAMPLING if self._seed is None else FLOATING
        books = self._privatizer, self._claims, self._accountant
        return make_report(subject, self._claims(), *books, sampling, measured)

    def _claims(self, **asked: Any) -> list[Claim]:
        return [self._accountant.epsilon(**{**self._measured, **asked})]

    def close(self) -> None:
        """Closes the store."""
        self._store.close()

    def __exit__(self, *error: object) -> None:
        self.close()

    def _start(self) -> None:
        """Starts mechanism and books; what the sensitivity rests on has been shown."""
        self._scale, sensitivity = self._problem.sensitivity().scale, self._privatizer.env.sensitivity()
        generators, names, noise = [], [], "secret"
        if self._seed is None:
            # One event of all releases counts the rounding of one of them; events of single ones count their own.
            windows = self.layout.schedule.count(self.plan.rounds) if self._mechanism.correlated else 1
            sensitivity = secret_noise.rounded(sensitivity, self.plan.rounds, windows)
        else:
            generators = [noise_streams([self._seed], self.layout.agents, None, 0)[0][self.agent]]
            names, noise = noise_names([self._seed], None, 0), "repeatable"
        self._mechanism.start(sensitivity, self.plan.rounds, generators)
        self._measured, as_agent = self._privatizer.measured(sensitivity)
        adjacencies = tuple(sensitivity.changes)
        self._accountant = Accountant(1, 1, None, 0, adjacencies, noise, names, as_agent)
        self._started = True

    def _book(self, events: Mapping[Event, Array]) -> None:
        """Books the next release."""
        for event, times in events.items():
            self._accountant.record(event, times)
        self._index += 1

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """Closes the store if an error leaves the silo and its store apart; opened again, both are as they were."""
        try:
            yield
        except BaseException:
            self._store.close()
            raise

    def _save(self, *parts: str, release: Release | None = None) -> None:
        """Writes the silo's own state and further parts that have changed: ``policy`` or ``noise``."""
        state = {part: numbers_of(getattr(self, f"_{part}")) for part in ("own", *parts)}
        self._store.save(state, release)

    def _restore(self, kept: Mapping[str, Mapping[str, Any]]) -> None:
        """Restores policy and noise, and books all releases anew; what was booked must be the same."""
        # A policy that keeps nothing has no rows in the store.
        set_numbers(self._policy, kept.get("policy", {}))
        if "noise" in kept:
            self._start()
            for round_, event, _ in self._store.releases:
                events = self._mechanism.events(_ONE, self._index)
                if _written(events) != event:
                    raise StoreError(
                        f"store {self._store.path} has the release of round {round_} as {event}; the plan does not"
                    )
                self._book(events)
            set_numbers(self._noise, kept["noise"])


def _written(events: Mapping[Event, Array]) -> str:
    """Returns events as text, for the store."""
    return json.dumps([{**asdict(event), "times": int(times[0, 0])} for event, times in events.items()])
