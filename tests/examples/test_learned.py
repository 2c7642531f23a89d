"""The training of learned entries, at toy scale: it repeats, and what it saves plays without torch."""

from pathlib import Path

import numpy as np
import pytest

from fedbandit_envs.baselines.learned import ItemNetwork


@pytest.fixture(autouse=True)
def examples(monkeypatch):
    """Imports networks too, in the processes that run these tests."""
    global torch
    torch, _ = map(pytest.importorskip, ("torch", "stable_baselines3"))
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "examples" / "learned"))


def tiny(seed=0, env_id="FedProcurement-v0", **sizes):
    from train import train

    few = {"num_producers": 4} if env_id == "FedProcurement-v0" else {"num_arms": 4}
    return train(env_id, seed, replicas=1, rollouts=2, horizon=10, num_agents=3, **few, **sizes).policy


@pytest.mark.ci
@pytest.mark.parametrize("env_id", ["FedProcurement-v0", "FedArms-v0", "FedLinear-v0"])
def test_training_repeats(env_id):
    one, again, other = (tiny(seed, env_id).state_dict() for seed in (0, 0, 1))
    assert all(torch.equal(one[name], again[name]) for name in one)
    assert any(not torch.equal(one[name], other[name]) for name in one)


def test_packaged_forward_is_torchs(tmp_path):
    policy = tiny()
    generator = np.random.default_rng(0)
    # Weights of any size: those of a short training are near 0 where it matters.
    with torch.no_grad():
        policy.actor.last.weight.normal_()
    policy.network().save(tmp_path / "net.npz")
    each, once = (generator.uniform(-1, 1, shape).astype(np.float32) for shape in ((6, 4, 4), (6, 2)))
    with torch.no_grad():
        expected = policy.actor.double()(torch.as_tensor(each).double(), torch.as_tensor(once).double())
    np.testing.assert_allclose(
        ItemNetwork.load(tmp_path / "net.npz")(each, once), expected.numpy(), atol=1e-6
    )


def test_density_is_that_of_the_noise():
    """The actions' covariance, against that of draws: 20,000 of them, at five standard errors."""
    policy = tiny()
    generator = np.random.default_rng(1)
    row = torch.as_tensor(generator.uniform(0, 1, (1, 4 * 4 + 2)).astype(np.float32))
    number = 20_000
    policy.reset_noise(number)
    with torch.no_grad():
        actions, _, log_density = policy.forward(row.repeat(number, 1))
        own, common = policy._spread(policy._split(row)[0])
    covariance = (torch.diag(own[0] ** 2) + common[0] @ common[0].T).double()
    error = 5 * np.sqrt(2 / number) * float(covariance.diagonal().max())
    np.testing.assert_allclose(np.cov(actions.numpy().T), covariance.numpy(), atol=error)
    centred = (actions - actions.mean(0)).double()
    law = torch.distributions.MultivariateNormal(torch.zeros(4, dtype=torch.double), covariance)
    np.testing.assert_allclose(log_density.numpy(), law.log_prob(centred).numpy(), atol=0.5)


def test_noise_is_held_for_an_episode():
    policy = tiny()
    row = torch.rand(3, 4 * 4 + 2)
    with torch.no_grad():
        policy.reset_noise(3)
        one, again = (policy.forward(row)[0] for _ in range(2))
        policy.reset_noise(3)
        later = policy.forward(row)[0]
    assert torch.equal(one, again)
    assert not torch.equal(one, later)


def test_one_training_says_nothing_of_others():
    """Its interval is Student's over markets; that of two adds what trainings differ by."""
    from score import over_markets, over_trainings_and_markets, table

    values = np.random.default_rng(3).normal(size=(2, 30))
    assert over_trainings_and_markets(values[:1]) == over_markets(values[0])
    apart = values + np.array([[-5.0], [5.0]])
    assert over_trainings_and_markets(apart).half_width > over_markets(apart[0]).half_width
    assert "nan" not in table({"rival": values[1]}, values[:1], ["one"])
