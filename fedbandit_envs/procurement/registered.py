"""What is registered of procurement."""

from fedbandit_envs.registered import Preset, RegisteredProblem

PROBLEM = RegisteredProblem(
    federation="fedbandit_envs.procurement.env:ProcurementEnv",
    peers="fedbandit_envs.baselines.procurement:SSUCB",
    listener="fedbandit_envs.baselines.procurement:PFCB",
    small={"num_producers": 5},
    presets={
        "FedProcurement-v0": Preset(),
        "FedProcurementNormal-v0": Preset({"market": "normal"}),
        "FedProcurementHomogeneous-v0": Preset({"market": {"name": "uniform", "homogeneous": True}}),
    },
)
