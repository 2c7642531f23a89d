"""The registration of procurement: ids with their settings, tuning, and the leaderboard's suite."""

from fedbandit_envs.registry.problems import RADII, Preset, RegisteredProblem, SuiteSpec, TuningSpec

PROBLEM = RegisteredProblem(
    federation="fedbandit_envs.procurement.env:ProcurementEnv",
    small={"num_producers": 5},
    presets={
        "FedProcurement-v0": Preset(),
        "FedProcurementNormal-v0": Preset({"market": "normal"}),
        "FedProcurementHomogeneous-v0": Preset({"market": {"name": "uniform", "homogeneous": True}}),
    },
    tuning=TuningSpec(
        env_ids=("FedProcurement-v0", "FedProcurementNormal-v0"),
        rounds=20_000,
        seeds=4,
        grid=tuple({"radius_scale": r, "exploration_rounds": rounds} for rounds in (0, 1) for r in RADII),
        baselines={f"{name}-tuned": name for name in ("SS-UCB", "P-FCB", "P-FCB-weighted")},
    ),
    suite=SuiteSpec(
        tasks={"uniform": ("FedProcurement-v0", {}), "normal": ("FedProcurementNormal-v0", {})},
        reference="uniform-random",
        adjacency="one-quantity",
        full=(100_000, 20),
        quick=(2_000, 10),
    ),
)
