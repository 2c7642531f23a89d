"""Registered baselines for linear contextual bandits: each a policy with its wrappers, a summary and a reference."""

from functools import partial
from math import sqrt
from typing import Any

from fedbandit_envs import wrappers
from fedbandit_envs.baselines.baseline import Baseline, WrapperSpec, listed, secure_sum
from fedbandit_envs.baselines.gaussian import PlannedPulls
from fedbandit_envs.baselines.learned import PPO, LearnedIndex, LearnedSend
from fedbandit_envs.baselines.learned.rl2 import RL2, SUMMARY
from fedbandit_envs.baselines.linear import batched, feducb, linucb, logistic, served
from fedbandit_envs.baselines.tuned import constants
from fedbandit_envs.core.federated_env import FederatedEnv
from fedbandit_envs.linear.env import LinearEnv
from fedbandit_envs.wrappers.privacy.stage_claims import largest_loss

_LI = "Li, Chu, Langford, Schapire (WWW 2010)"
_DUBEY = "Dubey, Pentland (NeurIPS 2020)"
_ZHOU = "Zhou, Chowdhury (ICLR 2024)"

_FROM_ONE = {"name": "doubling", "start": 1, "stop": None}
# Earlier data are drowned by noise, later ones come when there is little left to learn; and each release costs noise.
_FROM_32 = {"name": "doubling", "start": 32, "stop": 4096}
_DECENTRALISED = {"topology": "ring", "delay": 1, "time_to_live": 5, "cliques": True}
_AT_ONE = {"epsilon": 1.0, "delta": 0.1}
# One mechanism is fixed for all release plans, since the default would depend on the plan: so the noise of different
# baselines differs only by the rounds in which they release.
_BLT = {**_AT_ONE, "mechanism": "blt"}
_IN_DOUBLING_ROUNDS = {**_BLT, "releases": _FROM_ONE}
_FLOOR = {"shift": "floor", "bias": "euclidean"}
_WEIGHTED = {"pool": "precision", **constants("LinUCB-tuned")}

_EVERY_25 = {"name": "fixed_gap", "gap": 25}
_AT_A_FIFTH = {"epsilon": 0.2, "delta": 0.1}
_AT_A_THOUSANDTH = {"epsilon": 0.001, "delta": 0.0001}
_AGENT = {"composition": "exact", "delta": 0.1, "adjacency": "agent"}
# To measure epsilon by exact composition after every release would take ten times as long as the run.
_BINOMIAL = {
    "epsilon": None,
    "epsilon_per_release": 0.2,
    "delta": 0.1,
    "gap": 25,
    "budget": {"composition": "basic", "delta": 0.1},
}
# Zhou and Chowdhury's setting, with the radius of this package's experiments: its factor is that of the authors'
# confidence radius.
_WEIGHED = {"pool": "precision", "beta_scale": 0.03, "ridge": 1.0}


def _released(noise: batched.NoiseName, epsilon: float, delta: float) -> WrapperSpec:
    """Returns the privatizer with the noise of Zhou and Chowdhury's program, which is given epsilon and delta."""

    def deviation(env: FederatedEnv) -> dict[str, Any]:
        dim = (env.single_observation_space["contexts"].shape or (0, 0))[1]
        sizes = {"horizon": env.max_cycles, "agents": env.max_num_agents, "dim": dim}
        found, _ = batched.released_constants(noise, epsilon, delta, **sizes)
        return {"noise_multiplier": found, "delta": delta}

    fixed = {"epsilon": None, "mechanism": "tree", "releases": _EVERY_25}
    return WrapperSpec(wrappers.ContinualPrivatizer, fixed, deviation)


def _observations(env: FederatedEnv) -> wrappers.Messages:
    """Returns an environment whose messages are all that agents observe."""
    dim = (env.single_observation_space["contexts"].shape or (0, 0))[1]
    index: dict[str, Any] = {"shape": [], "dtype": "int32"}
    return wrappers.Messages(
        env, {"context": {"shape": [dim]}, "index": index, "reward": {"shape": []}}, served.TellingReporter()
    )


def told_everything(policy: str) -> dict[str, Any]:
    """Returns the wrappers in which agents tell a server policy every observation, and it answers in every round."""
    every_round = {"schedule": "every_round", "answers": "every_round", "policy": policy}
    return {"messages": WrapperSpec(_observations), "server": every_round}


_baseline = partial(listed, LinearEnv)
_fed_ucb = partial(_baseline, feducb.FedUCB)
_private = partial(_fed_ucb, privatizer=_IN_DOUBLING_ROUNDS, channel={"schedule": _FROM_ONE})
_batched = partial(_baseline, batched.BatchedLinUCB, channel={"schedule": _EVERY_25, "echo": True})
_every_25 = partial(
    _fed_ucb,
    privatizer={**_AT_A_FIFTH, "mechanism": "sqrt_toeplitz", "releases": _EVERY_25},
    channel={"schedule": _EVERY_25},
    **_WEIGHED,
)
_in_sum = WrapperSpec(wrappers.Channel, {"schedule": _EVERY_25}, secure_sum)

BASELINES: dict[str, Baseline] = {
    "random-arm": _baseline(linucb.UniformArm, "pulls an arm uniformly at random"),
    "LinUCB": _baseline(
        linucb.LinUCB, "pulls the arm with the largest upper confidence bound from ridge regression", _LI
    ),
    "LinUCB-disjoint": _baseline(
        linucb.disjoint_linucb, "LinUCB with a regression for each arm", f"{_LI}, Algorithm 1"
    ),
    "LinUCB-hybrid": _baseline(
        linucb.HybridLinUCB, "LinUCB with a regression for each arm and a shared one", f"{_LI}, Algorithm 2"
    ),
    "SupLinUCB": _baseline(
        linucb.SupLinUCB,
        "LinUCB with several regressions, each on independent observations",
        "Chu, Li, Reyzin, Schapire (AISTATS 2011)",
    ),
    "LinUCB-private": _fed_ucb(
        "no communication; LinUCB on noisy releases of its own data, one in every round",
        "Shariff, Sheffet (NeurIPS 2018), corrected",
        privatizer=_BLT,
        channel={"topology": {"edges": []}, "schedule": "every_round", "echo": True},
    ),
    "FedUCB-nonprivate": _fed_ucb(
        "LinUCB on the data of all agents, sent without noise in rounds 1, 2, 4, 8, ...",
        f"{_DUBEY}, Algorithm 1 without noise",
        channel={"schedule": _FROM_ONE},
    ),
    "FedUCB": _private(
        "LinUCB on own data and noisy data of others, sent in rounds 1, 2, 4, 8, ...; a larger ridge keeps the noisy "
        "Gram matrix positive definite",
        f"{_DUBEY}, Algorithm 1 corrected",
    ),
    "FedUCB-min": _private(
        "FedUCB with small eigenvalues raised to the ridge; the smaller of two bounds, from own data and from all data",
        f"{_DUBEY}, Algorithm 1 corrected",
        combine="min",
        **_FLOOR,
    ),
    "FedUCB-printed": _fed_ucb(
        "FedUCB with noise, ridge and confidence radius as printed",
        f"{_DUBEY}, Algorithm 1 as printed but for its trigger",
        privatizer={**_AT_ONE, "mechanism": "tree", "sigma": "printed", "releases": _FROM_ONE},
        channel={"schedule": _FROM_ONE, "echo": True},
        shift="per_agent",
        bias="printed",
    ),
    "FedUCB-weighted": _fed_ucb(
        "LinUCB-tuned that also uses noisy data of others, sent in rounds 32, 64, ..., 4,096 and weighted by precision",
        "this project",
        privatizer={**_BLT, "releases": _FROM_32},
        channel={"schedule": _FROM_32},
        **_WEIGHTED,
    ),
    "OFUL-shared": _fed_ucb(
        "LinUCB on the data of all agents, which a server passes on in every round without noise",
        "comparison of He et al. (NeurIPS 2022)",
        server={"schedule": "on_request", "answers": "every_round"},
        threshold=0.0,
        alpha=0.5,
    ),
    "FedLinUCB": _baseline(
        feducb.FedLinUCB,
        "LinUCB on data downloaded from a server; an agent uploads its own and downloads when its determinant doubles",
        "He, Wang, Min, Gu (NeurIPS 2022)",
        server={"schedule": "on_request"},
        alpha=1.0,
        beta=0.5,
    ),
    "Async-LinUCB": _baseline(
        feducb.AsyncLinUCB,
        "LinUCB on own data and a server's; they are exchanged when a determinant has grown by the factor 6",
        "Li, Wang (AISTATS 2022)",
        server={"schedule": "on_request", "answers": {"name": "determinant", "growth": 6.0}, "echo": False},
        growth=6.0,
        beta=0.5,
    ),
    "FedUCB-decentralised": _fed_ucb(
        "LinUCB on data that agents pass on along a ring, one edge a round and at most five; five regressions in turn",
        f"{_DUBEY}, Algorithm 3 without noise",
        interleaved={"period": 5},
        channel={**_DECENTRALISED, "schedule": "every_round"},
    ),
    "FedUCB-decentralised-private": _private(
        "FedUCB-decentralised with noisy data, sent in rounds 1, 2, 4, 8, ...; small eigenvalues are raised",
        f"{_DUBEY}, Algorithm 3 corrected",
        interleaved={"period": 5},
        channel={**_DECENTRALISED, "schedule": _FROM_ONE},
        **_FLOOR,
    ),
    # The names of Zhou and Chowdhury's algorithms, whose FedLinUCB is not that of He et al. above.
    "Batched-FedLinUCB": _batched(
        "LinUCB on the data of all agents, sent without noise every 25 rounds; constants of the released program",
        f"{_ZHOU}, without noise",
    ),
    "LDP-FedLinUCB-printed": _batched(
        "Batched-FedLinUCB with the noise and ridge of the released program: each agent adds noise to its data",
        f"{_ZHOU}, Algorithm 1",
        noise="local",
        privatizer=_released("local", **_AT_A_FIFTH),
    ),
    "SDP-FedLinUCB-amplified-printed": _batched(
        "LDP-FedLinUCB-printed with less noise, in the expectation that a shuffler amplifies privacy",
        f"{_ZHOU}, Algorithm 1 with a shuffler",
        noise="amplified",
        **_AT_A_THOUSANDTH,
        privatizer=_released("amplified", **_AT_A_THOUSANDTH),
    ),
    "SDP-FedLinUCB-vector-sum-printed": _batched(
        "Batched-FedLinUCB with the binomial noise and ridge of the released program, on a secure sum of all data",
        f"{_ZHOU}, Algorithm 1 with vector sums",
        noise="vector_sum",
        privatizer=WrapperSpec(wrappers.VectorSumPrivatizer, {**_BINOMIAL, "draw": "printed"}),
        channel=WrapperSpec(
            wrappers.Channel, {"schedule": _EVERY_25, "echo": True}, partial(secure_sum, missing=0)
        ),
    ),
    "LDP-FedLinUCB": _every_25(
        "LinUCB on own data and noisy data of others, sent every 25 rounds and weighted by their precision",
        f"{_ZHOU}, corrected",
    ),
    "SecureSum-FedLinUCB": _every_25(
        "LDP-FedLinUCB with the noise divided among all agents, whose messages only a secure sum sees",
        f"{_ZHOU}, corrected, with a secure sum",
        channel=_in_sum,
    ),
    "SDP-FedLinUCB-vector-sum": _every_25(
        "SecureSum-FedLinUCB with binomial noise, as sums of messages of one bit have it",
        f"{_ZHOU}, corrected, with vector sums",
        # With this argument the exact claim is just below epsilon 0.2 for rewards in [-1.5, 1.5] and 100 agents.
        privatizer=WrapperSpec(
            wrappers.VectorSumPrivatizer, {**_BINOMIAL, "epsilon_per_release": 0.216, "bound": 1.5}
        ),
        channel=_in_sum,
    ),
    "Central-FedLinUCB": _every_25(
        "LDP-FedLinUCB with noise that a trusted server adds, once, to the sum of all agents' data",
        f"{_ZHOU}, corrected, with a trusted server",
        channel={"schedule": _EVERY_25, "stage": {"name": "server"}},
    ),
    "SDP-FedLinUCB-amplified": _every_25(
        "LDP-FedLinUCB with clipped, independently noisy data that a shuffler mixes; it protects all data of an agent",
        f"{_ZHOU}, corrected, with a shuffler",
        privatizer=WrapperSpec(
            wrappers.GaussianPrivatizer,
            {"delta": 0.1 / 3, "releases": 3, "clip": 20.0, "budget": _AGENT},
            # With this noise three clipped releases are (0.2, 0.1) private together behind a shuffler: a change of all
            # data of an agent moves each by two clips at most, and a fellow agent sees all other releases.
            lambda env: {
                "noise_multiplier": 2 / largest_loss(0.2, 0.1, [max(env.max_num_agents - 1, 1)] * 3)
            },
        ),
        channel={"schedule": {"name": "doubling", "start": 64, "stop": 256}, "stage": {"name": "shuffler"}},
    ),
    "DisLinUCB": _fed_ucb(
        "LinUCB on the data of all agents, sent without noise when the determinant has grown enough",
        "Wang, Hu, Chen, Wang (ICLR 2020)",
        server={"schedule": "synchronise", "echo": False},
        threshold="wang",
    ),
    "PPO-linear": _baseline(LearnedIndex, *PPO, weights="PPO-linear"),
    "RL2-linear": _baseline(RL2, *SUMMARY, weights="RL2-linear"),
    "ES-send": _baseline(
        LearnedSend,
        "FedUCB-weighted, sending when a neural network decides so by the data, for which no epsilon is claimed",
        "`examples/learned`, seed 1",
        privatizer={**_AT_ONE, "releases": 8, "on_exhausted": "silence"},
        channel={"schedule": "on_request"},
        weights="ES-send",
        **_WEIGHTED,
    ),
}


_HUANG = "Huang, Wu, Yang, Shen (NeurIPS 2021)"


def _fed_pe_messages(env: FederatedEnv, lengths: bool = False) -> wrappers.Messages:
    """Returns an environment with Fed-PE's messages, which hold the norms of features if ``lengths`` is true."""
    arms, dim = env.single_observation_space["contexts"].shape or (0, 0)
    arrays: dict[str, dict[str, Any]] = {
        "rewards": {"shape": [arms, dim]},
        "shortest": {"shape": []},
        **({"lengths": {"shape": [arms]}} if lengths else {}),
        "left": {"shape": [arms], "dtype": "bool", "asked": True},
        "best": {"shape": [], "dtype": "int16", "asked": True},
    }
    return wrappers.Messages(env, arrays, served.PhasedReporter())


def _fed_pe(summary: str, lengths: bool = False, **server: Any) -> Baseline:
    """Returns Fed-PE with these arguments of its server policy."""
    messages = WrapperSpec(_fed_pe_messages, {"lengths": lengths})
    server = {"schedule": "announced", "answers": "every_round", "policy": {"name": "phases", **server}}
    return _fixed(PlannedPulls, summary, _HUANG, messages=messages, server=server)


_fixed = partial(listed, LinearEnv, only="FedFixed-v0")

BASELINES |= {
    "Local-UCB": _fixed(
        served.LocalUCB,
        "no communication; pulls the arm with the largest upper confidence bound of its own mean",
    ),
    # The radius of Abbasi-Yadkori et al. (2011) for 10^7 observations that fail with probability 0.1.
    "OFUL-disjoint-shared": _fixed(
        served.ServedLinUCB,
        "LinUCB with a regression for each arm on the data of all agents, which a server is told in every round",
        beta=8.5,
        **told_everything("disjoint"),
    ),
    "Fed-PE": _fed_pe(
        "phases of doubled length, in which a server divides agents' pulls by an optimal design and agents drop arms"
    ),
    "Fed-PE-enhanced": _fed_pe(
        "Fed-PE with confidence bounds from all phases, as the figures of the paper have them", enhanced=True
    ),
    "Fed-PE-collaborative": _fed_pe(
        "Fed-PE whose server knows the norms of features", lengths=True, collaborative=True
    ),
}


_LI_WANG = "Li, Wang (NeurIPS 2022)"
# The slope at 1, as in the experiment of Li and Wang, although their contexts have norm sqrt(2).
_SLOPE = 0.1966
_PER_AGENT = {"composition": "exact", "delta": 1e-5, "adjacency": "agent"}
_WEIGHT = {"gradient_weight": 7.0}


def _fed_glb_messages(env: FederatedEnv, gradient_weight: float = 1.0) -> wrappers.Messages:
    """Returns an environment with FedGLB-UCB's messages."""
    dim = (env.single_observation_space["contexts"].shape or (0, 0))[1]
    gram: dict[str, Any] = {"shape": [dim, dim]}
    arrays = {"gram": gram, "count": {"shape": []}, "gradient": {"shape": [dim], "asked": True}}
    return wrappers.Messages(env, arrays, logistic.GradientReporter(gradient_weight))


def _once(env: FederatedEnv) -> dict[str, Any]:
    """Returns the one synchronisation of the private form, in round sqrt(T), behind a secure sum."""
    return {"schedule": {"name": "geometric", "count": 1, "horizon": env.max_cycles}, **secure_sum(env)}


def _server(**solver: Any) -> dict[str, Any]:
    policy = {"name": "logistic", **solver}
    return {"schedule": "synchronise", "answers": "every_round", "policy": policy}


_logistic = partial(listed, LinearEnv, only="FedLogistic-v0")
_fed_glb = partial(_logistic, logistic.FedGLB, messages=WrapperSpec(_fed_glb_messages))

BASELINES |= {
    "UCB-GLM": _logistic(
        logistic.UCBGLM,
        "pulls the arm with the largest upper confidence bound around the likeliest model",
        "Li, Lu, Zhou (ICML 2017)",
        slope=_SLOPE,
    ),
    "UCB-GLM-shared": _logistic(
        logistic.UCBGLM,
        "UCB-GLM on the data of all agents, which a server is told in every round",
        f"comparison of {_LI_WANG}",
        slope=_SLOPE,
        **told_everything("glm"),
    ),
    "N-ONS": _logistic(
        logistic.FedGLB, "FedGLB-UCB on own data: online Newton steps", f"comparison of {_LI_WANG}"
    ),
    "FedGLB-UCB": _fed_glb(
        "online Newton steps on own data; now and then a server asks all agents for gradients and sends a model",
        _LI_WANG,
        server=_server(),
    ),
    "FedGLB-UCB-released": _fed_glb(
        "FedGLB-UCB as its authors' program has it: models on a simplex, small steps from 0, a larger radius",
        f"{_LI_WANG}, the released program",
        server=_server(released=True),
        released=True,
    ),
    "FedGLB-UCB-private": _fed_glb(
        "FedGLB-UCB with a quasi-Newton server, asked once through clips and noise that protect all data of an agent",
        "this project",
        messages=WrapperSpec(_fed_glb_messages, _WEIGHT),
        privatizer=WrapperSpec(
            wrappers.ContinualPrivatizer,
            {"epsilon": 10.0, "delta": 1e-5, "mechanism": "independent", "releases": 4, "budget": _PER_AGENT},
            # Few Gram matrices of sqrt(T) contexts of norm sqrt(2) are longer.
            lambda env: {"clip": 1.5 * sqrt(env.max_cycles)},
        ),
        server=WrapperSpec(
            wrappers.Server, _server(solver="quasi_newton", gradient_rounds=3, **_WEIGHT), _once
        ),
        alpha=0.3,
    ),
}

# The names of derived forms begin with these.
_STEMS = {of: of for of in ("FedUCB-weighted", "LDP-FedLinUCB")} | {"FedGLB-UCB-private": "FedGLB-UCB"}
PLACEBOS = {"FedUCB-min": "FedUCB-placebo"} | {of: f"{stem}-placebo" for of, stem in _STEMS.items()}
ON_TRUE_DATA = {of: f"{stem}-true" for of, stem in _STEMS.items()}
COMPARISON = {"silent": "LinUCB", "paper": "FedUCB-min", "ours": "FedUCB-weighted"}
