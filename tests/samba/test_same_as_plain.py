"""SAMBA earns what the same run in the open earns, bit for bit, however owners are spread."""

from math import inf

import pytest
from samba_runs import ALGORITHMS, DATA, assert_same, make_roles, means_of, plain, play

from fedbandit_envs.samba.messages import Record
from fedbandit_envs.samba.owners import Algorithm
from fedbandit_envs.samba.runs import SecureRun, run_secure


@pytest.mark.parametrize("groups", [[4], [1, 1, 1, 1], [1, 3]], ids=str)
@pytest.mark.parametrize("name", ALGORITHMS)
def test_secure_is_plain_and_its_operations_are_those_of_theorem_4(name, groups):
    """However owners are spread."""
    arms, budget, own = 4, 64, len(groups)
    for seed, data in enumerate(DATA):
        means = means_of(data, arms)
        expected, noted = plain(Algorithm(name), means, budget, seed)
        roles = make_roles(Algorithm(name), means, budget, seed, groups)
        assert_same(play(roles), expected)
        submitted = sum(one.scores is not None for one in noted)
        explored = len(noted) - submitted
        counts = SecureRun(0, {name: role.report() for name, role in roles.items()}, None).counts
        # 2K encryptions an iteration; K where a round explores, since owners then send nothing.
        assert counts.aes_encryptions == counts.aes_decryptions == arms * (2 * submitted + explored)
        assert counts.paillier_encryptions + counts.paillier_decryptions == arms + 1
        assert counts.paillier_multiplications == arms - 1
        # Plans; scores, permuted scores, marks, inverted marks; sums and total.
        assert counts.frames == 2 + own + submitted * (2 * own + 2) + explored * (own + 2) + own + 1
        comp, controller = roles["comp"].record.counts, roles["controller"].record.counts
        assert comp.aes_encryptions == arms * len(noted)
        assert (
            controller.aes_encryptions == controller.aes_decryptions == controller.paillier_encryptions == 0
        )


def test_parameters_reach_all_roles():
    means = means_of("movielens", 4)
    algorithm = Algorithm("epsilon-greedy", {"epsilon": 0.9})
    expected, noted = plain(algorithm, means, 80, 0)
    assert sum(one.scores is None for one in noted) > 50
    assert_same(play(make_roles(algorithm, means, 80, 0, [2, 2])), expected)


def test_a_run_by_its_one_function():
    means = means_of("jester", 4)
    transcripts: dict[str, Record] = {}
    played = []
    run = run_secure(means, Algorithm("pursuit"), 200, 1, advance=played.append, transcripts=transcripts)
    assert run.reward == plain(Algorithm("pursuit"), means, 200, 1)[0].reward
    assert run.reports.keys() == transcripts.keys() == {"customer", "controller", "comp", "owner-0"}
    assert [name for name, report in run.reports.items() if report.reward is not None] == ["customer"]
    assert all(transcript.received for transcript in transcripts.values())
    assert sorted({*played}) == [64, 128, 192]
    assert (run.claim.trust, run.claim.epsilon, run.claim.noise) == ("cryptography", inf, "repeatable")
    for role in ("Owners", "Comp", "Controller", "customer"):
        assert role in run.claim.reason
    assert run_secure(means, Algorithm("ucb"), 20, 1 << 64).claim.noise == "secret"


def test_sockets_alone_have_tls():
    with pytest.raises(ValueError, match="tls is True"):
        run_secure([0.5], Algorithm("ucb"), 9, 0, tls=True)


def test_a_budget_of_one_pull_each_needs_no_selection():
    means = means_of("movielens", 3)
    roles = make_roles(Algorithm("ucb"), means, 3, 0)
    result = play(roles)
    assert result.pulls.tolist() == [1, 1, 1]
    assert_same(result, plain(Algorithm("ucb"), means, 3, 0)[0])
    assert not any(role.record.counts.aes_encryptions for role in roles.values())
