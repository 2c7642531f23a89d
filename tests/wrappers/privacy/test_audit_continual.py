"""Continual release attacked through whole sequences of releases, and every mutant of it caught.

Lower bounds are too high with probability 1e-3 each: were their seeds not fixed, one of the 38 audits of
honest mechanisms would raise a false alarm in 1 of 26 runs.
"""

import math
from copy import copy

import numpy as np
import pytest
from pairs import every_pair
from sums_env import SumsEnv

from fedbandit_envs.core.neighbours import History, Neighbours
from fedbandit_envs.core.sensitivity import Change
from fedbandit_envs.linear.env import LinearEnv
from fedbandit_envs.wrappers import ContinualPrivatizer, GaussianPrivatizer
from fedbandit_envs.wrappers.privacy import audit as audit_module
from fedbandit_envs.wrappers.privacy.accounting.calibration import analytic_noise_multiplier, gaussian_epsilon
from fedbandit_envs.wrappers.privacy.audit import Audit
from fedbandit_envs.wrappers.privacy.mechanisms import matrix
from fedbandit_envs.wrappers.privacy.mechanisms.matrix import MatrixMechanism
from fedbandit_envs.wrappers.privacy.mechanisms.prefix_noise import BltNoise, TreeNoise

ADJACENCIES = ("one-observation", "one-observation-added")

# Of all releases, at delta 1e-5: mu is 2.3, where an attack needs the fewest samples to show nine tenths of it.
EPSILON = 12.0


def attack(
    mechanism="sqrt_toeplitz",
    adjacency="one-observation",
    releases=6,
    delta=1e-5,
    composition="exact",
    epsilon=EPSILON,
    promised=1e-5,
    calibrated=None,
    problem=LinearEnv,
    samples=11_000,
    error=1e-3,
    weights=None,
    **kwargs,
) -> Audit:
    evidence = audit_module.attack(
        lambda env: ContinualPrivatizer(
            env, epsilon, promised, mechanism, releases=releases, adjacency=calibrated or adjacency, **kwargs
        ),
        problem, adjacency, releases=releases, altered=1, samples=samples, weights=weights, error=error,
    )  # fmt: skip
    return evidence.against(delta, composition)


def resized(dim: int, bound: float) -> type[LinearEnv]:
    """The linear bandit whose worst histories have so many dimensions and so large an L^2 + B^2."""

    def resize(history: History) -> History:
        settings = dict(history.settings)
        # As it comes L is 1 and B^2 1/3.
        factor = math.sqrt(bound * 3 / 4)
        settings["contexts"] = [
            [factor * x for x in context] + [0.0] * (dim - 2) for context in settings["contexts"]
        ]
        settings["parameter"] = settings["parameter"] + [0.0] * (dim - 2)
        settings |= {"context_bound": factor, "reward_bound": factor * settings["reward_bound"]}
        return history._replace(settings=settings)

    class Resized(LinearEnv, name="resized"):
        @classmethod
        def neighbours(cls, adjacency):
            return [
                Neighbours(resize(before), resize(after), idle)
                for before, after, idle in LinearEnv.neighbours(adjacency)
            ]

    return Resized


def assert_tight(result: Audit) -> None:
    assert result.holds, result
    assert result.tightness >= 0.9, result


@pytest.mark.parametrize(
    ("mechanism", "adjacency", "calibrated"), every_pair(["sqrt_toeplitz", "tree"], ADJACENCIES, ADJACENCIES)
)
def test_exact_noise_is_tight(mechanism, adjacency, calibrated):
    result = attack(mechanism, adjacency, calibrated=calibrated)
    assert_tight(result)
    if adjacency == calibrated:
        assert result.claim.epsilon == pytest.approx(EPSILON)


@pytest.mark.parametrize(
    ("mechanism", "size"), every_pair(["sqrt_toeplitz", "tree"], [(1, 2, 1.0), (8, 2, 3.0), (4, 4, 0.5)])
)
def test_exact_noise_is_tight_for_any_number_size_and_scale(mechanism, size):
    releases, dim, bound = size
    assert_tight(attack(mechanism, releases=releases, problem=resized(dim, bound)))


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_exact_noise_of_a_few_buffers_is_tight(adjacency):
    """6 is no power of two: the last claim is for what was planned, not for the 8 that it would be rounded up to."""
    result = attack("blt", adjacency)
    assert_tight(result)
    assert result.claim.epsilon == pytest.approx(EPSILON)


@pytest.mark.parametrize(("mechanism", "adjacency"), every_pair(["tree", "honaker"], ADJACENCIES))
def test_printed_noise(mechanism, adjacency):
    """Promised at delta 0.1, where the truth is too small to be seen; attacked at a smaller one."""
    result = attack(mechanism, adjacency, 4, epsilon=30.0, promised=0.1, sigma="printed")
    # 3 levels and m = 3: one draw has the standard deviation sqrt(2) 4 sqrt(3) ln(20)/30.
    norm = {"one-observation": math.sqrt(2), "one-observation-added": 1.0}[adjacency]
    mu = norm * math.sqrt(3) / (math.sqrt(2) * 4 * math.sqrt(3) * math.log(20) / 30)
    assert result.claim.epsilon == pytest.approx(gaussian_epsilon(1e-5, mu))
    if mechanism == "tree":
        assert_tight(result)
    assert result.holds


@pytest.mark.ci
@pytest.mark.parametrize("adjacency", [ADJACENCIES[0], pytest.param(ADJACENCIES[1], marks=pytest.mark.slow)])
def test_honakers_estimates_tell_a_little_less_than_their_tree(adjacency):
    results = {releases: attack("honaker", adjacency, releases) for releases in (2, 4, 8)}
    for result in results.values():
        assert result.holds, result
        assert result.tightness >= 0.75, result
    # Of two releases: a, and (2 c + a + b)/3 for the draws a, b of the windows and c of both. A window's two nodes
    # have mu^2 = 2, of which these show 1 + 4/5.
    mu = math.sqrt(1.8 / 2) / analytic_noise_multiplier(EPSILON, 1e-5)
    shown = gaussian_epsilon(1e-5, mu)
    assert 0.9 * shown <= results[2].lower_bound <= shown


@pytest.mark.parametrize("composition", ["basic", "zcdp"])
def test_loose_compositions_hold(composition):
    result = attack("tree", delta=0.01, promised=0.01, composition=composition, samples=3_000)
    assert result.holds
    assert 0 < result.tightness < 1


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_independent_noise_on_all_entries_is_tight(adjacency):
    evidence = audit_module.attack(
        lambda env: GaussianPrivatizer(env, 6.0, calibration="analytic", releases=2),
        LinearEnv, adjacency, releases=2, samples=9_000, error=1e-3,
    )  # fmt: skip
    assert_tight(evidence.against(1e-5))


# Mutants: each is made from the real class by one patch, and must break its claim.


def halve_sensitivity(patch):
    honest = MatrixMechanism.start

    def start(self, sensitivity, *rest):
        scale = {name: a / 2 for name, a in sensitivity.scale.items()}
        honest(self, sensitivity._replace(scale=scale), *rest)

    patch.setattr(MatrixMechanism, "start", start)


def take_a_replacement_for_an_addition(patch):
    honest = MatrixMechanism._calibrate
    changes = {"one-observation": Change(4, 1.0), "one-observation-added": Change(4, 1.0)}
    patch.setattr(
        MatrixMechanism,
        "_calibrate",
        lambda self, s, horizon: honest(self, s._replace(changes=changes), horizon),
    )


def give_the_diagonal_what_the_rest_has(patch):
    honest = matrix._layout

    def layout(sensitivity):
        drawn, share = honest(sensitivity)
        return drawn, np.full_like(share, 1 / math.sqrt(2))

    patch.setattr(matrix, "_layout", layout)


def forget_to_symmetrise(patch):
    honest = matrix._layout

    def layout(sensitivity):
        drawn, share = honest(sensitivity._replace(symmetric=False))
        return drawn, share / math.sqrt(2)

    patch.setattr(matrix, "_layout", layout)


def drop_a_level(patch):
    honest = TreeNoise.column_square
    patch.setattr(TreeNoise, "column_square", lambda self, z: max(honest(self, z) - 1, 1.0))


def draw_nothing_for_the_last_level(patch):
    honest = TreeNoise.advance

    def advance(self, rows, z, draws):
        top = self.releases.bit_length() - 1
        return honest(self, rows, z, draws * (z & -z != 1 << top))

    patch.setattr(TreeNoise, "advance", advance)


def weigh_the_slowest_buffer_twice(patch):
    """After its weight has been counted once. Of six releases mu is then 1.39 times what was promised."""
    honest = BltNoise.start

    def start(self, rows, values):
        self._toeplitz = copy(self._toeplitz)
        self._toeplitz.weights = self._toeplitz.weights * [2, 1]
        honest(self, rows, values)

    patch.setattr(BltNoise, "start", start)


def lose_count(patch):
    honest = MatrixMechanism.events
    patch.setattr(
        MatrixMechanism, "events", lambda self, s, index: {} if index.any() else honest(self, s, index)
    )


# With 2,500 samples of each history an audit shows some 0.87 of an epsilon; all mutants (of trees with 5,000 samples)
# were refuted under each of five seeds.
CAUGHT = 2_500

SYMMETRIC = [
    halve_sensitivity,
    take_a_replacement_for_an_addition,
    give_the_diagonal_what_the_rest_has,
    forget_to_symmetrise,
]


@pytest.mark.parametrize(("mutate", "mechanism"), every_pair(SYMMETRIC, ["sqrt_toeplitz", "tree"]))
def test_mutants_are_caught(monkeypatch, mutate, mechanism):
    mutate(monkeypatch)
    assert not attack(mechanism, samples=CAUGHT).holds


def test_a_mutant_of_a_coefficient_is_caught(monkeypatch):
    weigh_the_slowest_buffer_twice(monkeypatch)
    assert not attack("blt", samples=CAUGHT).holds


@pytest.mark.parametrize("mechanism", ["sqrt_toeplitz", "tree"])
def test_a_mutant_that_loses_count_claims_nothing(monkeypatch, mechanism):
    """The door counts what leaves, whatever the books say."""
    lose_count(monkeypatch)
    claim = attack(mechanism, releases=2, samples=10).claim
    assert (claim.epsilon, claim.reason) == (math.inf, "more has been released than is in the books")


@pytest.mark.parametrize(
    ("mechanism", "mutate"), every_pair(["tree", "honaker"], [drop_a_level, draw_nothing_for_the_last_level])
)
def test_mutants_of_trees_are_caught(monkeypatch, mutate, mechanism):
    mutate(monkeypatch)
    assert not attack(mechanism, releases=4, samples=5_000).holds


@pytest.mark.parametrize("mutate", [halve_sensitivity, forget_to_symmetrise, draw_nothing_for_the_last_level])
def test_mutants_of_printed_noise_are_caught(monkeypatch, mutate):
    mutate(monkeypatch)
    result = attack("tree", releases=4, epsilon=30.0, promised=0.1, sigma="printed", samples=CAUGHT)
    assert not result.holds


def known_filter(factor: np.ndarray, adjacency: str) -> dict[str, np.ndarray]:
    """Weights that are best against prefix noise of this factor B, from the increments' covariance."""
    n = len(factor)
    increments = np.diff(factor, axis=0, prepend=np.zeros((1, n)))
    first = np.zeros(n)
    first[0] = 1.0
    over_time = np.linalg.solve(increments @ increments.T, first)
    observed = np.array(
        [1 / math.sqrt(6) - 1 / math.sqrt(3), 1 / math.sqrt(6) + 1 / math.sqrt(3), math.sqrt(1 / 3)]
    )
    change = np.outer(observed, observed)
    if adjacency == "one-observation":
        replaced = observed[[1, 0, 2]]
        change -= np.outer(replaced, replaced)
    # Both halves have the same draw, half as large in variance: their weights are those of the change itself.
    return {"statistic": over_time[:, np.newaxis, np.newaxis] * change}


def square_root(n: int) -> np.ndarray:
    f = np.cumprod([1.0, *((2 * k - 1) / (2 * k) for k in range(1, n))])
    return np.array([[f[z - i] if z >= i else 0.0 for i in range(n)] for z in range(n)])


def dyadic(n: int) -> np.ndarray:
    nodes = np.zeros((n, n))
    for z in range(1, n + 1):
        left = z
        while left:
            nodes[z - 1, left - 1] = 1.0
            left &= left - 1
    return nodes


@pytest.mark.ci
@pytest.mark.parametrize("adjacency", [ADJACENCIES[0], pytest.param(ADJACENCIES[1], marks=pytest.mark.slow)])
def test_the_square_root_needs_a_twentieth_of_the_printed_trees_noise(adjacency):
    """1000 releases, epsilon 1 and delta 0.1 for all of them: the standard deviation of the last sum's noise."""
    n = 1000
    deviation = {}
    for mechanism, sigma in (("sqrt_toeplitz", "exact"), ("tree", "printed")):
        env = ContinualPrivatizer(
            SumsEnv(1, 2, max_cycles=n), 1.0, 0.1, mechanism, sigma, adjacency=adjacency
        )
        env.reset_batch([0])
        announced = (env.release(np.ones((1, 1), np.bool_))["statistic_noise_variance"] for _ in range(n))
        variance = sum(array[0, 0, 0, 0] for array in announced)
        deviation[mechanism] = math.sqrt(variance)
        claim = env.accountant.epsilon(0.1, composition="basic", adjacency=adjacency)
        assert (claim.epsilon, claim.delta) == (1.0, 0.1)
    assert deviation["sqrt_toeplitz"] <= deviation["tree"] / 20


MANY = pytest.mark.parametrize("n", [40, pytest.param(400, marks=pytest.mark.slow)])


# mu is 0.9. Rates from 3,000 samples a side leave 0.19 less, with a standard deviation of 0.03: 0.8 of the epsilon.
@MANY
def test_many_releases_of_the_square_root(n):
    adjacency = "one-observation"
    weights = known_filter(square_root(n), adjacency)
    settings = {"epsilon": 1.0, "promised": 0.1, "samples": 3000, "weights": weights}
    result = attack("sqrt_toeplitz", adjacency, n, 1e-5, **settings)
    mu = 1 / analytic_noise_multiplier(1.0, 0.1)
    assert result.claim.epsilon == pytest.approx(gaussian_epsilon(1e-5, mu))
    assert result.holds, result
    assert result.tightness >= 0.7, result


@MANY
@pytest.mark.ci
def test_many_releases_of_the_printed_tree(n):
    adjacency = "one-observation-added"
    weights = known_filter(dyadic(n), adjacency)
    # At epsilon 1 no attack sees anything; at 30 the same formula has a thirtieth of the noise.
    for epsilon, delta, samples, seen in ((1.0, 0.1, 300, 0.0), (30.0, 1e-5, 3000, 0.8)):
        settings = {"epsilon": epsilon, "promised": 0.1, "samples": samples, "weights": weights}
        result = attack("tree", adjacency, n, delta, sigma="printed", **settings)
        assert result.holds, result
        assert result.lower_bound >= seen * result.claim.epsilon, result
