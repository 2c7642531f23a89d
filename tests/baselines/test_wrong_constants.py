"""Constants of policies, servers and aggregators that are out of range are refused by name, with their value.

Values are at the ends of the ranges. A list of values refuses each of them.
"""

import re
from functools import partial
from math import inf, nan

import pytest
from refusals import refusals

from fedbandit_envs.baselines import arms, gaussian, procurement
from fedbandit_envs.baselines.aggregators import AGGREGATORS
from fedbandit_envs.baselines.exposure import FairX
from fedbandit_envs.baselines.linear import FedUCB, linucb, served
from fedbandit_envs.baselines.linear.batched import BatchedLinUCB
from fedbandit_envs.baselines.linear.logistic import FedGLB, GradientReporter
from fedbandit_envs.baselines.servers import SERVERS

WRONG = [
    (arms.EpsilonGreedy, {"epsilon": [1.5, -0.1]}),
    (arms.UCB1, {"scale": [0], "logarithm": ["rounds"]}),
    (arms.Softmax, {"temperature": [0.001]}),
    (arms.Pursuit, {"rate": [0]}),
    (arms.FairLearn, {"shares": [1.5], "tolerance": [-1], "learner": [7]}),
    (FairX, {"solver": ["newton"], "steps": [-1, 1.5], "ridge_each": [1], "shift": ["weigh"]}),
    (FairX, {"prior_variance": [0, inf]}),
    (FedUCB, {"shift": ["none"], "bias": ["sqrt"], "combine": ["max"], "threshold": [-1, "wong"]}),
    (FedUCB, {"ridge": [0], "failure": [2], "alpha": ["much"], "noise_sd": [nan]}),
    (BatchedLinUCB, {"noise": ["global"]}),
    (partial(BatchedLinUCB, "local"), {"epsilon": [0.0], "delta": [1.0], "gap": [0]}),
    (linucb.HybridLinUCB, {"alpha": [nan, -1.0, "1"], "ridge": [-0.5, 0], "shared": [-1, 1.5]}),
    (linucb.SupLinUCB, {"alpha": [inf], "failure": [0.0, 1.5]}),
    (served.ServedLinUCB, {"beta": [-1.0], "ridge": [0]}),
    (FedGLB, {"slope": [0.0, 0.3], "threshold": [-1.0], "released": [1]}),
    (GradientReporter, {"gradient_weight": [0.0, inf]}),
    (procurement.SSUCB, {"exploration_rounds": [-1], "radius_scale": [-0.5], "margin": [-0.5]}),
    (procurement.SSUCB, {"oracle": ["lp"]}),
    (procurement.LaplaceIndex, {"width": [-1.0, "wide"]}),
    (gaussian.GaussianUCB, {"radius_scale": [-1.0]}),
    (SERVERS["elimination"], {"pulls": [0], "joins": [0], "c1": [-1.0]}),
    (SERVERS["epochs"], {"shortest": [0], "radius_scale": [-1.0]}),
    (SERVERS["personal"], {"growth": [1.0], "c": [-1.0]}),
    (SERVERS["leader"], {"radius_scale": [-1.0]}),
    (SERVERS["phases"], {"failure": [0.0, 1.0]}),
    (SERVERS["logistic"], {"ridge": [0.0], "slope": [0.3], "solver": ["guess"], "failure": [0.0]}),
    (SERVERS["logistic"], {"gradient_rounds": [0], "gradient_weight": [0.0]}),
    (AGGREGATORS["precision"], {"reward_variance": [0, inf, "1"]}),
    (AGGREGATORS["trimmed_mean"], {"share": [0.5, -1]}),
    (AGGREGATORS["trimmed_senders"], {"share": [0.5]}),
    (AGGREGATORS["median_of_means"], {"groups": [0]}),
]


@pytest.mark.parametrize(("make", "constants"), WRONG)
def test_wrong_constants_are_named(make, constants):
    for name, values in constants.items():
        for value in values:
            with pytest.raises((TypeError, ValueError), match=f"{name} is {re.escape(repr(value))}"):
                make(**{name: value})


test_constants_that_do_not_go_together_are_named = refusals(
    lambda make, constants: make(**constants),
    (arms.UCB1, {"pool": "mean"}, "pool name is 'mean'"),
    (arms.UCB1, {"pool": {"name": "trimmed_mean"}}, "trimmed_mean"),
    (arms.CUCB, {"oracle": "best"}, "oracle is 'best'"),
    (arms.FairLearn, {"shares": [-0.1, 0.6]}, r"shares\[0\] is -0.1"),
    (arms.FairLearn, {"learner": "LinUCB"}, "learner name is 'LinUCB'"),
    (FedUCB, {"shift": "floor"}, "bias is 'root_m'; 'euclidean' is required with shift='floor'"),
    (FedUCB, {"shift": "lift"}, "bias is 'root_m' and shift 'lift'; bias='none' is required"),
    (FedUCB, {"bias": "none"}, "bias is 'none' and shift 'on_sum'"),
    (FairX, {"combine": "min"}, "FairX takes no combine"),
    error=(TypeError, ValueError),
)  # fmt: skip
