"""The lab's page, a marimo application: its forms and the display of results. The logic is in the folder's modules."""

import marimo

app = marimo.App(width="medium", app_title="fedbandit lab", css_file="app.css")

with app.setup:
    from html import escape
    from json import dumps
    from typing import get_args

    import marimo as mo

    from fedbandit_envs.arms.ratings import DataName
    from fedbandit_envs.experiments.spec import SettingsError, read_value
    from fedbandit_envs.lab import federation, views
    from fedbandit_envs.lab.samba import samba_outcome
    from fedbandit_envs.registry.registration import REGISTRY
    from fedbandit_envs.samba.messages import KNOWS
    from fedbandit_envs.samba.owners import RULES
    from fedbandit_envs.samba.runs import SambaSettings
    from fedbandit_envs.wrappers.privacy.budget import BudgetExhaustedError


@app.function
def menu(label, options):
    """Returns a drop-down menu in which the first option is selected."""
    return mo.ui.dropdown(options, value=options[0], label=label, full_width=True)


@app.function
def number(label, start, stop, value, step=1):
    """Returns a field for a number.

    Args:
        label: Text beside the field.
        start: Smallest number allowed; None for no bound.
        stop: Largest number allowed; None for no bound.
        value: Initial number; None for an empty field.
        step: Difference between neighbouring numbers that can be chosen.
    """
    return mo.ui.number(start, stop, step, value=value, label=label, full_width=True)


@app.function
def grid(*elements):
    """Returns elements side by side, as many in a row as there is room for."""
    return mo.Html('<div class="lab-grid">' + "".join(f"<div>{one}</div>" for one in elements) + "</div>")


@app.function
def section(title, *parts):
    """Returns the elements of a section of the page: a heading, and below it parts given as HTML."""
    return [mo.md(f"### {title}"), *map(mo.Html, parts)]


@app.function
def error(reason):
    """Returns a red box with the reason why a run could not be played."""
    return mo.callout(mo.Html(f"<p role='alert'>{escape(reason)}</p>"), kind="danger")


@app.cell
def _():
    problem = menu("Problem", list(REGISTRY))
    parts = mo.ui.dictionary({
        part: menu(part.capitalize(), [federation.AS_REGISTERED, *known]) for part, known in federation.PARTS.items()
    })  # fmt: skip
    numbers = mo.ui.dictionary({
        "rounds": number("Rounds", 1, 100_000, 1000),
        "seeds": number("Seeds", 1, 200, 5),
        "epsilon": number("Epsilon, as registered if empty", None, None, None, None),
        "delta": number("Delta of the claims", 0, 0.999, 1e-5, None),
        "liars": number("Share of liars", 0, 1, 0.2, 0.1),
    })  # fmt: skip
    faults = mo.ui.dictionary({
        "loss": number("Share of messages lost", 0, 0.99, 0, 0.01),
        "duplication": number("Share of messages doubled", 0, 0.99, 0, 0.01),
        "delay": number("Delay, rounds a hop", 0, 1000, 0),
    })  # fmt: skip
    run = mo.ui.run_button(label="Run", kind="success")
    clear = mo.ui.run_button(label="Clear")
    log = mo.ui.switch(value=True, label="Logarithmic axes")
    settings = mo.ui.dictionary({
        "algorithm": menu("Algorithm", list(RULES)),
        "ratings": menu("Data", list(get_args(DataName))),
        "arms": number("Arms, an owner each", 1, 100, 10),
        "budget": number("Budget, rounds", 1, 5000, 300),
        "seed": number("Seed, secret if empty", 0, 2**31, 0),
    })  # fmt: skip
    encrypt = mo.ui.run_button(label="Run", kind="success")
    outcomes, set_outcomes = mo.state(list[federation.Outcome]())
    refusal, set_refusal = mo.state("")
    tab = mo.ui.tabs({"Federation": "", "SAMBA": ""})
    mo.vstack([mo.Html("<h1 class='lab-title'>fedbandit lab</h1>"), tab])
    return (
        clear, encrypt, faults, log, numbers, outcomes, parts, problem, refusal, run, set_outcomes, set_refusal,
        settings, tab,
    )  # fmt: skip


@app.cell
def _(problem):
    baseline = menu("Baseline", federation.baselines(problem.value))
    switches = mo.ui.dictionary(
        {label: mo.ui.switch(label=label) for label in REGISTRY[problem.value].problem.lab_choices}
    )
    return baseline, switches


@app.cell
def _(baseline, parts, problem):
    arguments = mo.ui.dictionary({
        part: mo.ui.text(dumps(federation.suggestion(part, option)), label=f"{part}: arguments", full_width=True)
        for part, option in parts.value.items()
        if option != federation.AS_REGISTERED
    })  # fmt: skip
    known = "\n".join(federation.known_settings(problem.value, baseline.value))
    others = mo.ui.text_area(placeholder=known, rows=4, label="Other settings, one a line", full_width=True)
    return arguments, others


@app.cell
def _(arguments, baseline, clear, faults, log, numbers, others, parts, problem, run, switches, tab):
    mo.stop(tab.value != "Federation")
    mo.vstack([
        grid(problem, baseline, *parts.elements.values(), *arguments.elements.values()),
        grid(*numbers.elements.values(), *faults.elements.values()),
        *switches.elements.values(),
        others,
        mo.hstack([run, clear, log], justify="start", wrap=True),
    ])  # fmt: skip


@app.cell
def _(
    arguments, baseline, clear, faults, numbers, others, parts, problem, run, set_outcomes, set_refusal, switches
):  # fmt: skip
    if clear.value:
        set_outcomes([])
        set_refusal("")
    mo.stop(not run.value)
    try:
        _choice = federation.Choice(
            problem.value, baseline.value,
            parts={part: {"name": parts.value[part], **read_value(given)} for part, given in arguments.value.items()},
            faults=faults.value,
            switches=[label for label, on in switches.value.items() if on],
            assignments=others.value.split("\n") if others.value else [],
            **numbers.value,
        )  # fmt: skip
        with mo.status.progress_bar(total=_choice.rounds or 1, remove_on_exit=True) as _bar:
            _outcome = _choice.play(lambda more: _bar.update(int(more)))
    except (SettingsError, BudgetExhaustedError, TypeError) as _error:
        set_refusal(str(_error))
    else:
        set_refusal("")
        set_outcomes(lambda before: [*before, _outcome][-views.MOST_OUTCOMES :])


@app.cell
def _():
    with mo.status.spinner("Playing an example. The first time on a machine, kernels are compiled"):
        example = federation.example()
    return (example,)


@app.cell
def _(example, log, outcomes, refusal, tab):
    mo.stop(tab.value != "Federation")
    _shown = [error(refusal())] if refusal() else []
    _outcomes = outcomes()
    if not _outcomes and not refusal():
        _outcomes = example
        _shown.append(mo.md(
            "**An example:** ten agents pull arms by UCB1, silent (`UCB1-tuned`), with each other's data "
            "(`UCB1-weighted-true`), and with the same data behind noise, at epsilon 1 (`UCB1-weighted`). Choose above "
            "and press **Run**: your runs take its place, and stay, to be compared, until **Clear**."
        ))  # fmt: skip
    if _outcomes:
        _last = _outcomes[-1]
        _shown += [mo.callout(mo.Html(f"<p>{escape(one)}</p>"), kind="warn") for one in _last.warned]
        _regret = views.regret_svg(_outcomes, log.value), views.regret_table(_outcomes)
        _shown += section("Regret and traffic", *_regret)
        _shown += section("Privacy of the last run", views.claims_table(_last))
        for _panel in REGISTRY[_last.choice.problem].problem.lab_panels:
            _shares = views.panel_svg(_panel, _last), views.panel_table(_panel, _last)
            _shown += section(f"{_panel.title} in the last run", *_shares)
    mo.vstack(_shown)


@app.cell
def _(encrypt, settings, tab):
    mo.stop(tab.value != "SAMBA")
    mo.vstack([
        mo.md(
            "Data owners with an arm each, a customer who learns the cumulative reward, Comp and Controller "
            "between them: every score is encrypted, and the reward is that of the run without encryption."
        ),
        grid(*settings.elements.values()),
        encrypt,
    ])  # fmt: skip


@app.cell
def _(encrypt, settings):
    mo.stop(not encrypt.value)
    encrypted, reason = None, ""
    try:
        with mo.status.progress_bar(total=settings.value["budget"] or 1, remove_on_exit=True) as _bar:
            encrypted = samba_outcome(SambaSettings(**settings.value), _bar.update)
    except SettingsError as _error:
        reason = str(_error)
    role = menu("Role", list(encrypted.transcripts) if encrypted else ["customer"])
    return encrypted, reason, role


@app.cell
def _(encrypted, reason, role, tab):
    mo.stop(tab.value != "SAMBA")
    mo.stop(encrypted is None, error(reason))
    mo.vstack([
        *section("Reward and cost", views.samba_table(encrypted)),
        *section("What each role saw"),
        role,
        mo.md(KNOWS[role.value.partition("-")[0]]),
        mo.Html(views.sightings_table(encrypted, role.value)),
    ])  # fmt: skip


if __name__ == "__main__":
    app.run()
