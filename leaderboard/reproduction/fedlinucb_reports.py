"""What the page of the experiment of He et al. says."""

import numpy as np

from fedbandit_envs.arrays import Array
from fedbandit_envs.leaderboard.reproduction.comparison import Mean, Ratio, compare, ratio
from fedbandit_envs.leaderboard.reproduction.experiment import Results
from fedbandit_envs.leaderboard.reproduction.fedlinucb import DIM, LOWER_LINE, MEANINGS
from fedbandit_envs.leaderboard.reproduction.page import Section, over_seeds
from fedbandit_envs.leaderboard.statistics import mean_and_half_width
from fedbandit_envs.leaderboard.sweep.runs import Result


def _in_the_end(values: Array) -> Mean:
    """Returns the mean over trials of what agents have together at the horizon."""
    return over_seeds(values[-1].sum(axis=1), ",.0f")


def report(section: Section, results: Results) -> None:
    """Writes a table of regret and messages, what the comparison says, and draws one of the two over rounds."""
    rival = next(name for name in results if name.startswith("Async-LinUCB"))
    row = section.table(
        "algorithm", "what it does", "regret at T (± 95 %)", f"/ {rival}", "messages at T (± 95 %)"
    )
    for name, result in results.items():
        value = ratio(result, results[rival])
        messages = "-" if result.messages is None else _in_the_end(result.messages)
        row(name, MEANINGS[name], _in_the_end(result.regret), "1" if name == rival else value, messages)
        drawn = result.messages if section.panel.startswith("messages") else result.regret
        if drawn is not None:
            section.draw(name, result.rounds, *mean_and_half_width(drawn.sum(axis=2)))
    _compared(section, results, rival)


def _compared(section: Section, results: Results, rival: str) -> None:
    """Says whether FedLinUCB has less regret than Async-LinUCB, and fewer messages, and what of its theory shows."""
    ours = next(name for name in results if name.startswith("FedLinUCB"))
    value, messages = (compared(results[ours], results[rival]) for compared in (ratio, _message_ratio))
    section.text += [
        "",
        f"* {ours} has less regret than {rival}: {value.at_most(1)} ({section.say(f'{ours} / {rival}', value)}).",
        f"* {ours} sends {section.say(f'messages of {ours} / {rival}', messages)} times the messages of {rival}.",
    ]
    if LOWER_LINE not in results:
        return
    shared = ratio(results[ours], results[LOWER_LINE])
    agents = results[ours].regret.shape[2]
    sent, of = results[ours].messages, DIM * agents**2
    assert sent is not None
    early = int(np.searchsorted(results[ours].rounds, results[ours].rounds[-1] / 10))
    total = sent.sum(axis=2).mean(axis=1)
    section.text += [
        "",
        "The paper's abstract says that \"the regret of FedLinUCB is bounded by Õ(d √(Σ_m T_m)) and the communication "
        'complexity is Õ(dM²)", "while achieving the same regret guarantee as in the single-agent setting". Bounds up '
        "to constants and logarithms cannot be refuted by "
        "one horizon; found here:",
        "",
        f"* Regret of {ours} over that of one agent who sees everything at once ({LOWER_LINE}): "
        f"{section.say(f'{ours} / {LOWER_LINE}', shared)}.",
        f"* Messages: {total[-1] / of:.3f} times d M^2 = {of:,}; over the last tenfold of rounds they grow "
        f"{total[-1] / max(total[early], 1):.2f} times.",
    ]


def _message_ratio(above: Result, below: Result) -> Ratio:
    first, second = (
        result.messages[-1].sum(axis=1) for result in (above, below) if result.messages is not None
    )
    return compare(first, second)
