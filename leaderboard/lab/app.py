"""The lab's page, for marimo: menus and what they lead to. All that it knows is in the modules beside it."""

import marimo

app = marimo.App(width="medium", app_title="fedbandit lab", css_file="app.css")

with app.setup:
    from html import escape

    import marimo as mo

    from fedbandit_envs.leaderboard.lab import choices, views
    from fedbandit_envs.leaderboard.lab.federation import Choice, Outcome, outcome_of
    from fedbandit_envs.leaderboard.lab.samba import samba_outcome
    from fedbandit_envs.leaderboard.run import SettingsError
    from fedbandit_envs.wrappers.byzantine import ATTACKS
    from fedbandit_envs.wrappers.participation import LAWS
    from fedbandit_envs.wrappers.privacy.budget import BudgetExhaustedError
    from fedbandit_envs.wrappers.transport.schedule import SCHEDULES
    from fedbandit_envs.wrappers.transport.topology import TOPOLOGIES


@app.function
def menu(label, options, first=None):
    """Returns a menu that begins with an option, the first unless another is named."""
    return mo.ui.dropdown(options, value=first or options[0], label=label, full_width=True)


@app.function
def fields(known):
    """Returns a field for each argument; its hint is what holds if it is left empty."""
    return mo.ui.dictionary(
        {
            name: mo.ui.text(
                value=one.text if one.required else "", placeholder=one.text, label=name, full_width=True
            )
            for name, one in known.items()
        }
    )


@app.function
def grid(*elements):
    """Lays elements out side by side, as many as there is room for."""
    return mo.Html('<div class="lab-grid">' + "".join(f"<div>{one}</div>" for one in elements) + "</div>")


@app.function
def told(**groups):
    """Returns the fields of what was chosen, folded."""
    shown = {
        name.replace("_", " "): grid(*group.elements.values())
        for name, group in groups.items()
        if group.elements
    }
    return mo.accordion(shown, multiple=True)


@app.function
def drawn(figure, words):
    """Returns a figure."""
    return mo.Html(views.drawn(figure, words))


@app.function
def refused(reason):
    """Returns why something cannot be played."""
    return mo.callout(mo.Html(f"<p role='alert'>{escape(reason)}</p>"), kind="danger")


@app.cell
def _():
    tab = mo.ui.tabs({"Federation": "", "SAMBA": ""})
    mo.vstack(
        [mo.Html("<h1 class='lab-title'>fedbandit lab</h1>"), tab],
    )
    return (tab,)


@app.cell
def _():
    problem = menu("Problem", choices.problems())
    rounds = mo.ui.number(1, 100_000, 1, value=1000, label="Rounds", full_width=True)
    seeds = mo.ui.number(1, 200, 1, value=5, label="Seeds", full_width=True)
    transport = menu("Channel", choices.transports())
    schedule = menu("Messages", choices.schedules())
    topology = menu("Graph", choices.topologies())
    loss = mo.ui.number(0, 0.99, 0.01, value=0, label="Share of messages lost", full_width=True)
    duplication = mo.ui.number(0, 0.99, 0.01, value=0, label="Share of messages doubled", full_width=True)
    delay = mo.ui.number(0, 1000, 1, value=0, label="Delay, rounds a hop", full_width=True)
    attack = menu("Liars", choices.attacks())
    liars = mo.ui.number(0, 1, 0.1, value=0.2, label="Share of liars", full_width=True)
    law = menu("Who acts", choices.laws())
    privatizer = menu("Privatizer", choices.privatizers())
    delta = mo.ui.number(0, 0.999, None, value=1e-5, label="Delta of the claims", full_width=True)
    same_arms = mo.ui.switch(label="The same arms in every round")
    run = mo.ui.run_button(label="Run", kind="success")
    clear = mo.ui.run_button(label="Clear")
    log = mo.ui.switch(value=True, label="Logarithmic axes")
    return (
        attack, clear, delay, delta, duplication, law, liars, log, loss, privatizer, problem, rounds, run, same_arms,
        schedule, seeds, topology, transport,
    )  # fmt: skip


@app.cell
def _(problem):
    policy = menu("Policy", choices.policies(problem.value), choices.to_begin_with(problem.value))
    of_problem = fields(choices.of_problem(problem.value))
    return of_problem, policy


@app.cell
def _(attack, law, policy, privatizer, schedule, topology, transport):
    of_policy = fields(choices.of_policy(policy.value))
    of_transport = fields(choices.of_wrapper(policy.value, "transport", transport.value))
    of_privatizer = fields(choices.of_wrapper(policy.value, "noise", privatizer.value))
    of_schedule = fields(choices.of_named(SCHEDULES, schedule.value))
    of_topology = fields(choices.of_named(TOPOLOGIES, topology.value))
    of_law = fields(choices.of_named(LAWS, law.value))
    of_attack = fields(choices.of_named(ATTACKS, attack.value))
    return of_attack, of_law, of_policy, of_privatizer, of_schedule, of_topology, of_transport


@app.cell
def _(
    attack, clear, delay, delta, duplication, law, liars, log, loss, of_attack, of_law, of_policy, of_privatizer,
    of_problem, of_schedule, of_topology, of_transport, policy, privatizer, problem, rounds, run, same_arms, schedule,
    seeds, tab, topology, transport,
):  # fmt: skip
    mo.stop(tab.value != "Federation")
    mo.vstack(
        [
            grid(problem, policy, rounds, seeds),
            grid(transport, schedule, topology, privatizer),
            grid(loss, duplication, delay, law, attack, liars, delta),
            same_arms if choices.keeps_arms(problem.value) else mo.Html(""),
            told(
                What_the_problem_is_told=of_problem,
                What_the_policy_is_told=of_policy,
                What_the_channel_is_told=of_transport,
                When_messages_are_sent=of_schedule,
                What_the_graph_is_told=of_topology,
                What_the_privatizer_is_told=of_privatizer,
                Who_acts=of_law,
                How_liars_lie=of_attack,
            ),
            mo.hstack([run, clear, log], justify="start", wrap=True),
        ]
    )
    return


@app.cell
def _():
    played, set_played = mo.state(list[Outcome]())
    refusal, set_refusal = mo.state("")
    return played, refusal, set_played, set_refusal


@app.cell
def _(
    attack, delay, delta, duplication, law, liars, loss, of_attack, of_law, of_policy, of_privatizer, of_problem,
    of_schedule, of_topology, of_transport, policy, privatizer, problem, rounds, run, same_arms, schedule, seeds,
    set_played, set_refusal, topology, transport,
):  # fmt: skip
    mo.stop(not run.value)

    def both(one, its_fields):
        return one.value, choices.said(its_fields.value)

    _choice = Choice(
        problem=both(problem, of_problem),
        policy=both(policy, of_policy),
        rounds=rounds.value,
        seeds=seeds.value,
        transport=both(transport, of_transport),
        schedule=both(schedule, of_schedule),
        topology=both(topology, of_topology),
        privatizer=both(privatizer, of_privatizer),
        law=both(law, of_law),
        attack=both(attack, of_attack),
        liars=liars.value,
        faults={"loss": loss.value, "duplication": duplication.value, "delay": delay.value},
        delta=delta.value,
        same_arms=same_arms.value,
    )
    try:
        with mo.status.progress_bar(
            total=rounds.value or 1, title=_choice.label, show_rate=False, remove_on_exit=True
        ) as _bar:
            _outcome = outcome_of(_choice, lambda more: _bar.update(int(more)))
    except (SettingsError, BudgetExhaustedError) as _error:
        set_refusal(str(_error))
    else:
        set_refusal("")
        set_played(lambda before: [*before, _outcome][-views.MOST_OUTCOMES :])
    return


@app.cell
def _(clear, set_played, set_refusal):
    if clear.value:
        set_played([])
        set_refusal("")
    return


@app.cell
def _(log, played, refusal, tab):
    mo.stop(tab.value != "Federation")
    _runs = played()
    _shown = [refused(refusal())] if refusal() else []
    if _runs:
        _last = _runs[-1]
        _shown += [mo.callout(mo.Html(f"<p>{escape(one)}</p>"), kind="warn") for one in _last.warned]
        _shown += [
            mo.md("### Regret"),
            drawn(views.regret_figure(_runs, log.value), "Regret over rounds"),
            mo.Html(views.regret_table(_runs)),
            mo.md("### Spending of the last run"),
            mo.Html(f"<p id='claim'>{escape(views.said_of_privacy(_last))}</p>"),
            mo.Html(views.spending_table(_last)),
            mo.md("### Traffic"),
        ]
        if any(one.traffic for one in _runs):
            _shown.append(drawn(views.messages_figure(_runs, log.value), "Messages over rounds"))
        _shown += [mo.Html(views.traffic_table(_runs)), mo.md("### Shares of the last run")]
        _shares = views.shares_figure(_last)
        if _shares is None:
            _shown.append(mo.md("This problem does not say what arms deserve; `FedExposure-v0` does."))
        else:
            if not _last.choice.same_arms:
                _shown.append(
                    mo.md("Arms are others in every round, so that in the end all deserve about the same.")
                )
            _shown += [
                drawn(_shares, "Shares of pulls, deserved and got"),
                mo.Html(views.shares_table(_last) or ""),
            ]
    elif not refusal():
        _shown.append(mo.md("Choose, and press **Run**. Runs stay, to compare, until **Clear**."))
    mo.vstack(_shown)
    return


@app.cell
def _():
    algorithm = menu("Algorithm", choices.algorithms())
    ratings = menu("Data", choices.data())
    arms = mo.ui.number(1, 100, 1, value=10, label="Arms, an owner each", full_width=True)
    budget = mo.ui.number(1, 5000, 1, value=300, label="Budget, rounds", full_width=True)
    seed = mo.ui.number(0, 2**31, 1, value=0, label="Seed, secret if empty", full_width=True)
    encrypt = mo.ui.run_button(label="Run", kind="success")
    return algorithm, arms, budget, encrypt, ratings, seed


@app.cell
def _(algorithm, arms, budget, encrypt, ratings, seed, tab):
    mo.stop(tab.value != "SAMBA")
    mo.vstack(
        [
            mo.md(
                "Data owners with an arm each, a customer who learns the cumulative reward, Comp and Controller "
                "between them; every score is encrypted, and the reward is that of the run in the open."
            ),
            grid(algorithm, ratings, arms, budget, seed),
            encrypt,
        ]
    )
    return


@app.cell
def _():
    encrypted, set_encrypted = mo.state(None)
    stopped, set_stopped = mo.state("")
    return encrypted, set_encrypted, set_stopped, stopped


@app.cell
def _(algorithm, arms, budget, encrypt, ratings, seed, set_encrypted, set_stopped):
    mo.stop(not encrypt.value)
    try:
        with mo.status.progress_bar(
            total=max(1, (budget.value or 0) - (arms.value or 0)),
            title=algorithm.value,
            show_rate=False,
            remove_on_exit=True,
        ) as _bar:
            _outcome = samba_outcome(
                algorithm.value, ratings.value, arms.value, budget.value, seed.value, _bar.update
            )
    except SettingsError as _error:
        set_stopped(str(_error))
    else:
        set_stopped("")
        set_encrypted(_outcome)
    return


@app.cell
def _(encrypted):
    role = menu("Role", list(encrypted().transcripts) if encrypted() else ["customer"])
    return (role,)


@app.cell
def _(encrypted, role, stopped, tab):
    mo.stop(tab.value != "SAMBA")
    _shown = [refused(stopped())] if stopped() else []
    if encrypted():
        _shown += [
            mo.md("### Reward"),
            mo.Html(views.samba_table(encrypted())),
            mo.md("### Time by role"),
            drawn(views.time_figure(encrypted()), "CPU seconds by role"),
            mo.Html(views.time_table(encrypted())),
            mo.md("### What each role saw"),
            role,
            mo.Html(f"<p>{escape(views.said_of_role(role.value))}</p>"),
            mo.Html(views.sightings_table(encrypted(), role.value)),
        ]
    mo.vstack(_shown)
    return


if __name__ == "__main__":
    app.run()
