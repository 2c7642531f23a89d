"""What the plug-in adds: a problem with its suite and tuning, baselines, and a suite of similar agents."""

from fedbandit_envs.baselines.arms import UniformArms
from fedbandit_envs.baselines.baseline import Baseline, WrapperSpec, listed
from fedbandit_envs.registry.problems import Preset, RegisteredProblem, SuiteSpec, TuningSpec
from fedbandit_envs.wrappers import Privatizer
from mybandits.env import PersonalGaussianEnv
from mybandits.policies import PersonalUCB

PROBLEM = RegisteredProblem(
    federation="mybandits.env:PersonalGaussianEnv",
    peers="mybandits.policies:PersonalUCB",
    small={"num_arms": 5},
    presets={"FedPersonal-v0": Preset(), "FedPersonalSimilar-v0": Preset({"spread": 0.02})},
    tuning=TuningSpec({"PersonalUCB": {"scale": (0.1, 0.5, 2.0)}}, seeds=40),
    suite=SuiteSpec(
        tasks={"apart": ("FedPersonal-v0", {})},
        reference="uniform-personal",
        adjacency="one-observation",
        full=(10_000, 20),
        quick=(500, 4),
    ),
)

SIMILAR_AGENTS = SuiteSpec(
    tasks={"similar": ("FedPersonalSimilar-v0", {})},
    reference="uniform-personal",
    adjacency="one-observation",
    full=(10_000, 20),
    quick=(500, 4),
)

_STAIRCASE = {"name": "staircase", "epsilon": 1.0, "releases": 14}

BASELINES: dict[str, Baseline] = {
    "uniform-personal": listed(PersonalGaussianEnv, UniformArms, "arms at random", "control"),
    "PersonalUCB": listed(PersonalGaussianEnv, PersonalUCB, "UCB1 on own pulls", "Auer et al. 2002"),
    "Fed-PersonalUCB": listed(
        PersonalGaussianEnv,
        PersonalUCB,
        "PersonalUCB that counts others' noisy pulls by half",
        "this example",
        privatizer=WrapperSpec(Privatizer, {"mechanism": _STAIRCASE}),
        channel={"schedule": {"name": "doubling", "start": 1, "stop": None}},
    ),
}

PLACEBOS = {"Fed-PersonalUCB": "Fed-PersonalUCB-placebo"}
ON_TRUE_DATA = {"Fed-PersonalUCB": "Fed-PersonalUCB-true"}
