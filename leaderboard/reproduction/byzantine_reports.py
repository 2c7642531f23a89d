"""What the page on liars says."""

from fedbandit_envs.leaderboard.reproduction.byzantine import BY_NUMBER, SILENT, baselines, run_name
from fedbandit_envs.leaderboard.reproduction.comparison import ratio
from fedbandit_envs.leaderboard.reproduction.experiment import Results
from fedbandit_envs.leaderboard.reproduction.page import Section, regret_text

SHARE, BOUND = 0.2, 1.3


def byzantine(section: Section, results: Results) -> None:
    """Honest agents' regret against the share of liars, and what a fifth of them cost."""
    meanings = baselines(section.panel)
    honest = {name: result.of("honest") for name, result in results.items()}
    shares = [float(name.split()[1]) for name in results if name.startswith(f"{SILENT} ")]
    row = section.table(
        "honest agents' regret at T (± 95 %)", "what it does", *(f"{share:.0%} liars" for share in shares)
    )
    for name, meaning in meanings.items():
        runs = {share: honest[run_name(name, share)] for share in shares}
        row(name, meaning, *map(regret_text, runs.values()))
        section.draw_points(name, runs)
        for share, run in runs.items():
            section.add(f"{name} / without liars", share, ratio(run, runs[0.0]))
            section.add(f"{name} / silent", share, ratio(run, honest[run_name(SILENT, share)]))
    section.text += [
        "",
        f"With {SHARE:.0%} liars honest agents have at most {BOUND} times their regret without liars (our own bound):",
    ]
    biased = False
    row = section.table("algorithm", "holds?", "over its own without liars", "over silence")
    for name in meanings:
        if name == SILENT:
            continue
        lied_to = honest[run_name(name, SHARE)]
        grown = ratio(lied_to, honest[run_name(name, 0.0)])
        row(name, grown.at_most(BOUND), grown, ratio(lied_to, honest[run_name(SILENT, SHARE)]))
        biased = biased or (name == BY_NUMBER and grown.at_most(BOUND) != "holds")
    if biased:
        section.text += [
            "",
            f"{BY_NUMBER} trims each number by itself, so that the moments it keeps come from other senders than the "
            "Gram matrix beside them: estimates are biased until there is much data.",
        ]
