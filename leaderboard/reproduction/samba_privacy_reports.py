"""What the page says that sets noise beside encryption."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from fedbandit_envs.arrays import Array
from fedbandit_envs.leaderboard.reproduction.comparison import compare
from fedbandit_envs.leaderboard.reproduction.page import Section, over_seeds
from fedbandit_envs.leaderboard.reproduction.samba import (
    AGENTS,
    ENCRYPTED,
    OPEN,
    PLACEBO,
    PRIVATE,
    RANDOM,
    SHARED,
    SILENT,
)
from fedbandit_envs.leaderboard.reproduction.samba_runs import Selected
from fedbandit_envs.leaderboard.sweep.runs import Result

_SEES = {
    RANDOM: "nobody tells anything, or learns",
    SILENT: "nobody tells anything",
    SHARED: "every agent sees every other's true pulls and successes of each arm, in doubling rounds",
    PRIVATE: "the same under noise that each agent adds itself",
    PLACEBO: "noise alone: what messages are worth without data",
    OPEN: "the selector sees every owner's score in every round, and whom it picks",
    ENCRYPTED: "the customer sees the total, exactly; Comp masked and permuted scores; owners their own pulls "
    "and rewards; Controller and the wire ciphertexts",
}


def privacy(section: Section, results: Mapping[str, Any]) -> None:
    """Regret, bytes and CPU time a pull, who sees what, and what is claimed."""
    opened: Selected = results[OPEN]
    pulls, best = opened.budget, float(opened.means.max())
    regrets = {name: _regret(result, opened) / pulls for name, result in results.items()}
    row = section.table(
        "run", "regret a pull (± 95 %)", "reward a pull", "cumulative reward", "/ silent regret", "bytes a pull",
        "CPU µs a pull", "who sees what", "trust", "epsilon claimed",
    )  # fmt: skip
    for name, result in results.items():
        regret = regrets[name]
        over = compare(regret, regrets[SILENT])
        row(
            name, over_seeds(regret, ",.4f"), f"{best - regret.mean():.4f}",
            f"{pulls * (best - regret.mean()):,.0f}",
            "1" if name == SILENT else over, f"{_bytes(result) / pulls:,.2f}",
            f"{_microseconds(result) / pulls:,.2f}", _SEES[_kind(name)], *_claimed(result),
        )  # fmt: skip
    _draw(section, regrets)
    _explain(section, results, regrets)


def _kind(name: str) -> str:
    """Returns the name of a run without its epsilon."""
    return name if name in _SEES else name.rpartition(" ")[0]


def _regret(result: Result | Selected, opened: Selected) -> Array:
    """Returns the whole federation's regret by the means of what was pulled, a value a seed."""
    if isinstance(result, Selected):
        # An encrypted run pulls what the run in the open does.
        return opened.regret
    total: Array = result.regret[-1].sum(axis=1)
    return total


def _bytes(result: Result | Selected) -> float:
    if isinstance(result, Selected):
        return float(result.bytes.mean())
    return float(result.traffic["bytes"].sum(axis=1).mean()) if result.traffic else 0.0


def _microseconds(result: Result | Selected) -> float:
    """Returns CPU time of a run."""
    if isinstance(result, Selected):
        return 1e6 * float(result.spent.mean())
    return 1e6 * result.cpu_seconds / result.regret.shape[1]


def _claimed(result: Result | Selected) -> tuple[str, str]:
    """Returns whom one must trust, and the best epsilon that is claimed, under the adjacency it is claimed for."""
    if isinstance(result, Selected):
        if result.claim is None:
            return "whoever selects", "none"
        return str(result.claim["trust"]), "infinite: the total is exact"
    if not result.claims:
        return ("everybody", "none") if result.traffic else ("nobody", "nothing is told")
    known = [claim for claim in result.claims if claim["epsilon"] is not None]
    texts = []
    for adjacency in dict.fromkeys(claim["adjacency"] for claim in known):
        least = min((c for c in known if c["adjacency"] == adjacency), key=lambda c: float(c["epsilon"]))
        texts.append(f"{least['epsilon']:.3g} ({adjacency}, delta {least['delta']:.0e})")
    return str(result.claims[0]["trust"]), "; ".join(texts) or "none"


def _sweep(values: Mapping[str, Array], name: str) -> dict[float, Array]:
    """Returns a value a seed of the runs of one name, by epsilon."""
    return {
        float(run.rpartition(" ")[2]): found for run, found in values.items() if run.startswith(f"{name} ")
    }


def _draw(section: Section, regrets: Mapping[str, Array]) -> None:
    sweeps = {name: _sweep(regrets, name) for name in (PRIVATE, PLACEBO)}
    epsilons = list(sweeps[PRIVATE])
    flat = {name: dict.fromkeys(epsilons, regrets[name]) for name in (SILENT, SHARED, ENCRYPTED)}
    for name, points in {**sweeps, **flat}.items():
        section.draw_means(name, {epsilon: over_seeds(point) for epsilon, point in points.items()})


def _explain(section: Section, results: Mapping[str, Any], regrets: Mapping[str, Array]) -> None:
    """Says what noise costs, what encryption costs, and what differs between the two federations."""
    encrypted: Selected = results[ENCRYPTED]
    same = bool(np.array_equal(encrypted.reward, results[OPEN].reward[: encrypted.reward.size]))
    section.text += [
        "",
        "What each protection costs, beside the same federation without it:",
        "",
        f"* Encryption: runs of a seed have {'earned' if same else '**not** earned'} exactly what they do in the "
        f"open, at {_bytes(encrypted) / encrypted.budget:,.0f} bytes a pull and "
        f"{compare(encrypted.spent, results[OPEN].spent[: encrypted.spent.size]).value:,.0f} times the CPU time.",
    ]
    placebos = _sweep(regrets, PLACEBO)
    for epsilon, regret in _sweep(regrets, PRIVATE).items():
        over = compare(regret, regrets[SILENT])
        verdict = "pays" if over.high < 1 else "costs" if over.low > 1 else "may do either"
        section.text += [
            f"* Noise at epsilon {epsilon:g}: {compare(regret, regrets[SHARED])} times the regret of true data, "
            f"{compare(regret, placebos[epsilon])} times that of noise alone, {over} times that of silence: "
            f"federating {verdict}.",
        ]
    section.text += [
        "",
        "What differs, so that a column says less than it seems to:",
        "",
        f"* {AGENTS} agents pull {AGENTS} arms before any of them can hear of it, and tell each other in doubling "
        f"rounds only; owners learn from every pull. A silent agent has 1/{AGENTS} of the pulls to learn from.",
        "* Noise guards what an agent pulls and earns from the other agents, who use the sums. Encryption guards what "
        "an owner earns and whether it is picked from the other roles, as the column says, but gives the customer the "
        "exact total, which is no differential privacy.",
        "* Trust `local` asks to trust nobody. Trust `cryptography` asks that no two roles collude, that all keep to "
        "the protocol, and that the ciphers hold; an agent's noise stays what it is if all others collude.",
        "* Messages between agents are counted as numbers and a header, unencrypted; frames of SAMBA as they are "
        "sent, all owners in one house. CPU time of agents is that of a simulation, compiled, all agents and the "
        "environment together, and of loading it; that of owners is of one run after the other.",
        "* Regret is by the means of the arms pulled; rewards a pull are the best mean less that, for both alike. "
        f"SAMBA's are those of the runs in the open, of which {encrypted.reward.size} were played encrypted too, for "
        "bytes and times.",
    ]
