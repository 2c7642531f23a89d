"""Baselines by name: a policy, the wrappers it runs behind, and where it comes from."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from fedbandit_envs.baselines.linear.feducb import FedUCB
from fedbandit_envs.baselines.linear.linucb import LinUCB, UniformArm
from fedbandit_envs.baselines.linear.per_arm import DisjointLinUCB, HybridLinUCB
from fedbandit_envs.baselines.linear.suplinucb import SupLinUCB
from fedbandit_envs.baselines.policy import Policy
from fedbandit_envs.baselines.procurement.pfcb import PFCB
from fedbandit_envs.baselines.procurement.silent import SSUCB, Clairvoyant, OneOfEach, UniformRandom
from fedbandit_envs.federation import FederatedEnv
from fedbandit_envs.linear.env import LinearEnv
from fedbandit_envs.procurement.env import ProcurementEnv
from fedbandit_envs.wrappers.interleaved import Interleaved
from fedbandit_envs.wrappers.placebo import Placebo
from fedbandit_envs.wrappers.privacy.continual import ContinualPrivatizer
from fedbandit_envs.wrappers.privacy.gaussian import GaussianPrivatizer
from fedbandit_envs.wrappers.reveal import Reveal
from fedbandit_envs.wrappers.transport.channel import Channel


class Wrapping(NamedTuple):
    """One wrapper of a baseline.

    Attributes:
        make: Wraps an environment, given keyword arguments.
        kwargs: The arguments that make this baseline.
    """

    make: Callable[..., FederatedEnv]
    kwargs: Mapping[str, Any] = {}


@dataclass(frozen=True)
class Baseline:
    """A reference to compare with.

    Attributes:
        summary: What it does, in a line.
        reference: Where it comes from.
        federation: The environments it plays.
        policy: Makes the policy from keyword arguments.
        policy_kwargs: The arguments that make this baseline.
        wrappers: The wrappers it runs behind, by the part they play, from the inside out.
    """

    summary: str
    reference: str
    federation: type[FederatedEnv]
    policy: Callable[..., Policy]
    policy_kwargs: Mapping[str, Any] = field(default_factory=dict)
    wrappers: Mapping[str, Wrapping] = field(default_factory=dict)

    def wrap(self, env: FederatedEnv, changes: Mapping[str, Mapping[str, Any]] | None = None) -> FederatedEnv:
        """Puts the baseline's wrappers around an environment.

        Args:
            env: The environment.
            changes: Other arguments of the wrappers, by their part.

        Raises:
            ValueError: The baseline does not play this environment.
        """
        if not isinstance(env, self.federation):
            raise ValueError(f"env is a {type(env).__name__}; this baseline plays {self.federation.__name__}")
        for part, (make, kwargs) in self.wrappers.items():
            env = make(env, **{**kwargs, **(changes or {}).get(part, {})})
        return env

    def make_policy(self, **changes: Any) -> Policy:
        """Makes the policy, with other arguments where ``changes`` names them."""
        return self.policy(**{**self.policy_kwargs, **changes})


_DEVA = "Deva, Abhishek, Gujar (AAMAS 2021)"
_SOLANKI = "Solanki, Kanaparthi, Damle, Gujar (ECML PKDD 2022)"

_DOUBLING = Wrapping(Channel, {"schedule": {"name": "doubling"}})
_DOUBLING_PRINTED = Wrapping(Channel, {"schedule": {"name": "doubling", "mode": "printed"}})
_EVERY_ROUND = Wrapping(Channel, {"schedule": "every_round"})
_GAUSSIAN = Wrapping(GaussianPrivatizer, {"epsilon": 1.0})
_POOLED = {"check": False, "omega2": 1.0}


def _procurement(
    summary: str, reference: str, policy: Callable[..., Policy], /, *, wrappers: Mapping[str, Wrapping] = {},
    **policy_kwargs: Any,
) -> Baseline:  # fmt: skip
    return Baseline(summary, reference, ProcurementEnv, policy, policy_kwargs, wrappers)


_LI = "Li, Chu, Langford, Schapire (WWW 2010)"
_DUBEY = "Dubey, Pentland (NeurIPS 2020)"

_FROM_ONE = {"name": "doubling", "start": 1, "stop": None}
_SYNCHRONISED = {"schedule": _FROM_ONE}
_RING = {"topology": "ring", "delay": 1, "time_to_live": 5, "cliques": True}
_AT_ONE = {"epsilon": 1.0, "delta": 0.1}
_SQRT_TOEPLITZ = Wrapping(ContinualPrivatizer, {**_AT_ONE, "releases": _FROM_ONE})
_TREE_PRINTED = {**_AT_ONE, "mechanism": "tree", "sigma": "printed"}
_PRINTED = {"shift": "per_agent", "bias": "printed"}
_FLOOR = {"shift": "floor", "bias": "euclidean"}


def _linear(
    summary: str, reference: str, policy: Callable[..., Policy], /, *, wrappers: Mapping[str, Wrapping] = {},
    **policy_kwargs: Any,
) -> Baseline:  # fmt: skip
    return Baseline(summary, reference, LinearEnv, policy, policy_kwargs, wrappers)


BASELINES: dict[str, Baseline] = {
    "uniform-random": _procurement("each quantity uniform between 0 and capacity", "placebo", UniformRandom),
    "one-of-each": _procurement("one unit of each producer, for ever", "placebo", OneOfEach),
    "clairvoyant": _procurement(
        "the exact oracle on the true qualities",
        "upper bound",
        Clairvoyant,
        wrappers={"reveal": Wrapping(Reveal)},
    ),
    "SS-UCB": _procurement("silent: optimism and Greedy SSA on own data", _DEVA, SSUCB, oracle="greedy"),
    "SS-UCB-exact": _procurement(
        "silent: optimism and the integer optimum on own data (DPSS)", _DEVA, SSUCB, oracle="exact"
    ),
    "SS-UCB-0.8": _procurement("silent, radius times 0.8", "tuned control", SSUCB, radius_scale=0.8),
    "SS-UCB-0.5": _procurement("silent, radius times 0.5", "tuned control", SSUCB, radius_scale=0.5),
    "FCB": _procurement(
        "true data in P-FCB's rounds, weighted by 10, unchecked",
        f"{_SOLANKI}, reading nearest its ratios",
        PFCB,
        wrappers={"channel": _DOUBLING},
        check=False,
    ),
    "FCB-every-round": _procurement(
        "true data every round, pooled",
        f"{_SOLANKI}, Algorithm 1 mended",
        PFCB,
        wrappers={"channel": _EVERY_ROUND},
        radius="federated",
        **_POOLED,
    ),
    "FCB-printed": _procurement(
        "true data every round; radius divided by n twice",
        f"{_SOLANKI}, Algorithm 1 as printed",
        PFCB,
        wrappers={"channel": _EVERY_ROUND},
        radius="printed",
        **_POOLED,
    ),
    "P-FCB": _procurement(
        "noisy data in doubling rounds, checked and guarded",
        f"{_SOLANKI}, Algorithm 2 mended",
        PFCB,
        wrappers={"privatizer": _GAUSSIAN, "channel": _DOUBLING},
    ),
    "P-FCB-printed": _procurement(
        "noisy data, 16 communications, no guards: diverges",
        f"{_SOLANKI}, Algorithm 2 as printed",
        PFCB,
        wrappers={"privatizer": _GAUSSIAN, "channel": _DOUBLING_PRINTED},
        guards=False,
    ),
    "P-FCB-placebo": _procurement(
        "P-FCB on messages that are noise alone",
        "placebo",
        PFCB,
        wrappers={"placebo": Wrapping(Placebo), "privatizer": _GAUSSIAN, "channel": _DOUBLING},
    ),
    "random-arm": _linear("an arm at random", "placebo", UniformArm),
    "LinUCB": _linear("silent: ridge regression and optimism on own data", _LI, LinUCB),
    "LinUCB-0.5": _linear("silent, radius times 0.5", "tuned control", LinUCB, beta_scale=0.5),
    "LinUCB-disjoint": _linear("silent, a parameter for each arm", f"{_LI}, Algorithm 1", DisjointLinUCB),
    "LinUCB-hybrid": _linear(
        "silent, a parameter for each arm and one for all", f"{_LI}, Algorithm 2", HybridLinUCB
    ),
    "SupLinUCB": _linear(
        "silent, observations kept apart by level", "Chu, Li, Reyzin, Schapire (AISTATS 2011)", SupLinUCB
    ),
    "LinUCB-private": _linear(
        "silent, on noisy releases of own data alone, every round",
        "Shariff, Sheffet (NeurIPS 2018), mended",
        FedUCB,
        wrappers={
            "privatizer": Wrapping(ContinualPrivatizer, {**_AT_ONE, "mechanism": "honaker"}),
            "channel": Wrapping(
                Channel, {"topology": {"edges": []}, "schedule": "every_round", "echo": True}
            ),
        },
    ),
    "FedUCB-nonprivate": _linear(
        "true data in doubling rounds",
        f"{_DUBEY}, Algorithm 1 without noise",
        FedUCB,
        wrappers={"channel": Wrapping(Channel, _SYNCHRONISED)},
    ),
    "FedUCB-nonprivate-trigger": _linear(
        "true data once determinants have grown",
        f"{_DUBEY}, Algorithm 1 without noise",
        FedUCB,
        wrappers={"channel": Wrapping(Channel, {"schedule": "synchronise"})},
    ),
    "FedUCB": _linear(
        "noisy data in doubling rounds: exact sigma, square-root factorisation, shift on the sum",
        f"{_DUBEY}, Algorithm 1 mended",
        FedUCB,
        wrappers={"privatizer": _SQRT_TOEPLITZ, "channel": Wrapping(Channel, _SYNCHRONISED)},
    ),
    "FedUCB-floor": _linear(
        "the same noise, eigenvalues lifted, the error's Euclidean bound",
        f"{_DUBEY}, Algorithm 1 mended",
        FedUCB,
        wrappers={"privatizer": _SQRT_TOEPLITZ, "channel": Wrapping(Channel, _SYNCHRONISED)},
        **_FLOOR,
    ),
    "FedUCB-min": _linear(
        "FedUCB-floor, never more optimistic than own data alone",
        f"{_DUBEY}, Algorithm 1 mended",
        FedUCB,
        wrappers={"privatizer": _SQRT_TOEPLITZ, "channel": Wrapping(Channel, _SYNCHRONISED)},
        combine="min",
        **_FLOOR,
    ),
    "FedUCB-printed": _linear(
        "printed noise, shifts and radius, in doubling rounds",
        f"{_DUBEY}, Algorithm 1 as printed but for its trigger",
        FedUCB,
        wrappers={
            "privatizer": Wrapping(ContinualPrivatizer, {**_TREE_PRINTED, "releases": _FROM_ONE}),
            "channel": Wrapping(Channel, {**_SYNCHRONISED, "echo": True}),
        },
        **_PRINTED,
    ),
    "FedUCB-printed-trigger": _linear(
        "printed noise, shifts, radius and trigger, which reads unnoised data",
        f"{_DUBEY}, Algorithm 1 as printed",
        FedUCB,
        wrappers={
            "privatizer": Wrapping(ContinualPrivatizer, _TREE_PRINTED),
            "channel": Wrapping(Channel, {"schedule": "synchronise", "echo": True}),
        },
        **_PRINTED,
    ),
    "FedUCB-placebo": _linear(
        "FedUCB-min on messages that are noise alone",
        "placebo",
        FedUCB,
        wrappers={
            "placebo": Wrapping(Placebo),
            "privatizer": _SQRT_TOEPLITZ,
            "channel": Wrapping(Channel, _SYNCHRONISED),
        },
        combine="min",
        **_FLOOR,
    ),
    "FedUCB-decentralised": _linear(
        "true data over a ring, five hops of a round each, five estimators in turn",
        f"{_DUBEY}, Algorithm 3 without noise",
        FedUCB,
        wrappers={
            "interleaved": Wrapping(Interleaved, {"period": 5}),
            "channel": Wrapping(Channel, {**_RING, "schedule": "every_round"}),
        },
    ),
    "FedUCB-decentralised-private": _linear(
        "the same in doubling rounds, through noise, with lifted eigenvalues",
        f"{_DUBEY}, Algorithm 3 mended",
        FedUCB,
        wrappers={
            "interleaved": Wrapping(Interleaved, {"period": 5}),
            "privatizer": _SQRT_TOEPLITZ,
            "channel": Wrapping(Channel, {**_RING, "schedule": _FROM_ONE}),
        },
        **_FLOOR,
    ),
}
"""Every baseline of this package by name."""
