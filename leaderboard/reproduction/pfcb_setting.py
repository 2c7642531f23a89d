"""What all pages of the P-FCB paper's experiments have in common: the setting beside the paper's, and verdicts."""

import numpy as np

from fedbandit_envs.leaderboard.reproduction.comparison import Statement, instance_ratios
from fedbandit_envs.leaderboard.reproduction.experiment import Scale
from fedbandit_envs.leaderboard.reproduction.page import Section
from fedbandit_envs.leaderboard.reproduction.pfcb import MARKETS
from fedbandit_envs.leaderboard.sweep.runs import Result

PAPER_ROUNDS, PAPER_TRIALS = 100_000, 20

_VERDICTS: dict[Statement, str] = {
    "holds": "agrees",
    "does **not** hold": "**differs**",
    "undecided": "undecided",
}

_PRINTED = (
    "Mode `printed`: P-FCB is Algorithm 2 and FCB Algorithm 1 to the letter, but for the length of exploration. "
    "P-FCB's tau starts at 1 and doubles only when messages are sent, which makes 16 communications by round 40,000, "
    "eight of them in rounds 200 to 207, where there is next to nothing to tell; and nothing guards what arrives: W "
    "may be negative or near 0, Y / W any number. FCB's radius is sqrt(3 ln(n t) / (2 n W)) with W the whole "
    "federation's count, which divides by n twice."
)
_MENDED = (
    "P-FCB communicates in rounds 256, 512, ... as sections 5.1 and 5.2 mean it (Algorithm 2 as printed sends 16 "
    "times, eight of them in rounds 200 to 207), and refuses messages that are impossible: units <= 0, good ones "
    "outside [0, units]. `--mode printed` plays what is printed."
)
_SETTING = """\
The setting, and the paper's where it is another or is not printed:

* Agents: n = 10; EXP3 varies n (the paper prints no list). Producers: m = 30.
* Uniform law: qualities and costs from U[0, 1]. Normal law: from N(alpha, 0.1), clipped to [0, 1], as section 4 has it
  for Figure 2. Section 6.1 prints N(alpha, 0) for the experiments: then every quality and every cost is alpha, every
  procurement has revenue 0, and all regrets are 0.
* Capacities: from 1 to 50, whole numbers. alpha = 0.4, omega1 = 0.1, omega2 = 10, communication between rounds 200 and
  40,000, delta = 0.01 a release and epsilon = 1 (EXP2 varies it), all as in section 6.1. Section 5.4 asks for omega2 in
  [0, 1]. rho = 1; the paper prints no value.
* Shares of epsilon: epsilon / (2 log2 T) + epsilon / 2^(z+1). The paper prints "log"; with the natural one they add up
  to 1.2 epsilon.
* Exploration: one unit of each producer, once. The paper's length, 3 ln(y T) / (2 n zeta^2), has constants that it does
  not print; the longer it is, the more alike are all algorithms.
* Oracle: Greedy SSA, as in the paper. A round that violates the quality constraint costs the largest regret there is.
* Markets ("instances"): the first five whose quality constraint binds for none of 40 agents. Leaving the others out is
  our choice; EXP1 shows them apart. "Silent" is SS-UCB (Deva et al.), the paper's Non-Federated."""
_INTERVALS = """\
All intervals cover 95 %, and there are three kinds, named wherever they stand:

* "± runs": Student's, over runs, these five markets held fixed.
* "± markets": Student's, over the five markets' means: how well they tell the law's mean.
* "[runs]" after a ratio: paired bootstrap over runs (both algorithms meet the same luck), these five markets held
  fixed; "markets a to b" behind it is the range of single markets' ratios, no interval. Without a head that says
  otherwise, brackets after ratios are this kind; the picture's error bars are, on ratios, and "± runs" on regrets.

A number that the paper prints comes from five other markets. "Five other markets" is where the same ratio over five
other markets is predicted, and verdicts on printed numbers go by it alone. Where it is wide, a number within says
little more than that five markets cannot tell."""


def describe(scale: Scale, mode: str) -> str:
    """Describes what all experiments have in common."""
    asked = (scale.rounds, scale.trials)
    paper = f"T = {PAPER_ROUNDS:,}, {MARKETS} instances x {PAPER_TRIALS} runs"
    beside = "as in the paper" if asked == (PAPER_ROUNDS, PAPER_TRIALS) else f"the paper: {paper}"
    return (
        f"T = {scale.rounds:,}, {MARKETS} markets x {scale.trials} runs ({beside}). All algorithms meet the same "
        f"markets and the same luck.\n\n{_PRINTED if mode == 'printed' else _MENDED}\n\n{_SETTING}\n\n{_INTERVALS}"
    )


def verdict(statement: Statement, result: Result) -> str:
    """Says what a statement makes of the paper's; nothing where the horizon is not the paper's."""
    at_its_horizon = result.rounds[-1] == PAPER_ROUNDS
    return _VERDICTS[statement] if at_its_horizon else "not the paper's setting"


def median_market(numerator: Result, denominator: Result) -> str:
    """Writes the median of the markets' ratios, which one market near binding does not move."""
    return f"{np.median(instance_ratios(numerator, denominator)):.3f}"


class Sentences:
    """A table of sentences of the paper, each with what is measured here and a verdict."""

    def __init__(self, section: Section) -> None:
        """Starts the table."""
        section.text += ["", "The paper's sentences:"]
        self._row = section.table("the paper says", "here", "verdict")

    def add(self, sentence: str, here: str, says: str) -> None:
        """Adds a sentence, letter by letter the paper's."""
        self._row(f'"{sentence}"', here, says)
