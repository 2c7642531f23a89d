"""Privacy of secure sums against the joint covariance of all that an observer sees; agent 0 is the victim."""

from itertools import combinations, product

import numpy as np
import pytest
from prefix_factors import measured_factor

from fedbandit_envs.arms.env import ArmsEnv
from fedbandit_envs.wrappers import Channel, GaussianPrivatizer
from fedbandit_envs.wrappers.privacy.mechanisms.matrix import NOISES
from fedbandit_envs.wrappers.privacy.stage_claims import Shares
from fedbandit_envs.wrappers.transport.schedule import Combined

SIGMA, HONEST, DISTANCE = 1.7, 3, 0.6
ALONE = DISTANCE * np.sqrt(HONEST) / SIGMA


def mu(present: np.ndarray, known: tuple[int, ...], weights: np.ndarray, change: np.ndarray) -> float:
    """The mu of a change of the sums, by the covariance of the noise in them that the observer does not know.

    Each agent has a stream of draws, and its share of the noise in sum t is weights[t] times it, if it is present.
    """
    unknown = np.delete(present, known, axis=1)
    shares = unknown[..., np.newaxis] * weights[:, np.newaxis] * SIGMA / np.sqrt(HONEST)
    flat = shares.reshape(len(present), -1)
    seen = unknown.any(axis=1)
    covariance = (flat @ flat.T)[np.ix_(seen, seen)]
    return float(np.sqrt(change[seen] @ np.linalg.solve(covariance, change[seen])))


def unknown_shares(present: np.ndarray, known: int, every_release: bool = False) -> np.ndarray:
    """How many shares the observer does not know, as claims count them while sums go by, ``(agents,)``."""
    shares = Shares((1, present.shape[1]))
    for arrived in present[:, np.newaxis]:
        went = arrived.any(axis=1)
        shares.pass_on(went, Combined(went, arrived, {}, {}))
    assert shares.complete == present[present.any(axis=1)].all()
    return shares.unknown(known, every_release)[0]


def patterns(count: int, seed: int):
    """Who is present in each sum, the victim at least once, and each set of others who may collude."""
    generator = np.random.default_rng(seed)
    for _ in range(count):
        sums, agents = int(generator.integers(1, 6)), int(generator.integers(2, 6))
        present = generator.random((sums, agents)) < generator.choice([0.5, 0.8, 1.0])
        present[generator.integers(sums), 0] = True
        known = int(generator.integers(0, agents))
        yield present, known, list(combinations(range(1, agents), known))


def test_one_sum_has_the_mu_of_its_worst_observer():
    """Independent noise: the server, a fellow and colluders with drop-outs, to the last digits."""
    for present, known, observers in patterns(200, 1):
        alone = DISTANCE * np.eye(len(present))
        at = np.flatnonzero(present[:, 0])
        worst = max(mu(present, own, np.eye(len(present)), alone[t]) for own in observers for t in at)
        # By the first paragraph of `stage_claims`.
        said = ALONE / np.sqrt(unknown_shares(present, known)[0])
        assert said == pytest.approx(worst, rel=1e-12)


@pytest.mark.parametrize("name", list(NOISES))
def test_all_data_of_an_agent_under_a_matrix_mechanism(name):
    """Every sign of each changed window, against the agents that are present at all of the victim's releases."""
    equal = 0
    for present, known, observers in patterns(80, 4):
        own_sums = np.flatnonzero(present[:, 0])
        last = int(own_sums[-1]) + 1
        present, noise = present[:last], NOISES[name](last)
        weights = np.diff(measured_factor(noise, last), axis=0, prepend=0.0)
        shares = unknown_shares(present, known, every_release=True)[0]
        said = ALONE * np.sqrt(noise.sum_square(last) / shares)
        for own, signs in product(observers, product((1, -1), repeat=len(own_sums) - 1)):
            change = np.zeros(last)
            change[own_sums] = DISTANCE * np.array([1, *signs])
            true = mu(present, own, weights, change)
            assert true <= said * (1 + 1e-10)
            equal += abs(true / said - 1) < 1e-10
    assert equal > 10


def test_a_trusted_server_spends_the_share_of_its_own_release():
    private = GaussianPrivatizer(ArmsEnv(num_agents=5), 0.9, releases=[1, 3])
    env = Channel(private, schedule="every_round", stage="server")
    env.reset_batch([3])
    first, second = (
        env.step_batch(np.zeros((1, 5), np.int64)).observation["inbox_pulls_noise_variance"].max()
        for _ in range(2)
    )
    assert first == pytest.approx(9 * second)
