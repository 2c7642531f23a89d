"""The lab: choose a federation, run it, and compare regret, privacy and traffic. Change any cell to your needs."""

import marimo

app = marimo.App(width="medium", app_title="fedbandit lab")

with app.setup:
    from warnings import catch_warnings

    import marimo as mo
    import pandas as pd

    from fedbandit_envs import REGISTRY
    from fedbandit_envs.baselines import BASELINES
    from fedbandit_envs.experiments import RunResult, RunSpec, plot
    from fedbandit_envs.experiments.spec import REFUSALS, SettingsError, read_assignments, read_value
    from fedbandit_envs.samba.messages import KNOWS, Record, SecureError, sightings
    from fedbandit_envs.samba.owners import RULES
    from fedbandit_envs.samba.runs import SambaSettings, run_samba


@app.cell
def _():
    problem = mo.ui.dropdown(list(REGISTRY), value="FedArms-v0", label="Problem")
    run = mo.ui.run_button(label="Run", kind="success")
    clear = mo.ui.run_button(label="Clear")
    get_runs, set_runs = mo.state(list[tuple[str, RunResult, list[str]]]())
    mo.md("# fedbandit lab\n\nChoose, press **Run**, and compare your runs until you press **Clear**.")
    return clear, get_runs, problem, run, set_runs


@app.cell
def _(problem):
    _names = [name for name, one in BASELINES.items() if one.fits(problem.value)]
    baseline = mo.ui.dropdown(_names, value=_names[0], label="Baseline", searchable=True)
    rounds = mo.ui.number(1, 100_000, value=1000, label="Rounds")
    seeds = mo.ui.number(1, 200, value=5, label="Seeds")
    return baseline, rounds, seeds


@app.cell
def _(baseline, problem):
    _known = RunSpec(baseline.value, problem.value, 1, 1).known_settings
    _defaults = [f"{part}.{name}={value}" for part, named in _known.items() for name, value in named.items()]
    settings = mo.ui.text_area(
        placeholder="\n".join(_defaults),
        rows=6,
        full_width=True,
        label="Settings, one a line, as --set takes them",
    )
    stack = mo.ui.text(
        placeholder='[["Byzantine", {"attack": "sign_flip", "agents": 0.2}]]',
        full_width=True,
        label="Wrappers, as JSON",
    )
    switches = mo.ui.dictionary(
        {label: mo.ui.switch(label=label) for label in REGISTRY[problem.value].problem.lab_choices}
    )
    return settings, stack, switches


@app.cell
def _(baseline, clear, problem, rounds, run, seeds, settings, stack, switches):
    mo.vstack(
        [
            mo.hstack([problem, baseline, rounds, seeds], justify="start", wrap=True),
            *switches.elements.values(),
            settings,
            stack,
            mo.hstack([run, clear], justify="start"),
        ]
    )


@app.function
def play(problem, baseline, rounds, seeds, lines, stack, switches):
    """Returns a run's name, its result and the warnings that it raised.

    Args:
        problem: Id of an environment.
        baseline: Name of a baseline.
        rounds: Horizon.
        seeds: Number of seeds.
        lines: Settings, each as ``key=value``.
        stack: Wrappers around the environment, as JSON; may be empty.
        switches: Labels of the problem's switches that are on.
    """
    spec = RunSpec(baseline, problem, rounds, seeds, stack=read_value(stack) if stack else ())
    for label in switches:
        spec = spec.changed(REGISTRY[problem].problem.lab_choices[label])
    with catch_warnings(record=True, action="always") as warned:
        result = spec.changed(read_assignments(lines)).run()
    name = ", ".join([baseline, *lines, stack, *switches]).strip(", ")
    return name, result, [str(one.message) for one in warned]


@app.cell
def _(baseline, clear, problem, rounds, run, seeds, set_runs, settings, stack, switches):
    if clear.value:
        set_runs([])
    mo.stop(not run.value)
    _lines = [line for line in settings.value.splitlines() if line.strip()]
    _on = [label for label, on in switches.value.items() if on]
    try:
        with mo.status.spinner("Playing. The first time on a machine, kernels are compiled."):
            _played = play(problem.value, baseline.value, rounds.value, seeds.value, _lines, stack.value, _on)
        set_runs(lambda before: [*before, _played])
    except REFUSALS as _error:
        mo.output.replace(mo.callout(str(_error), kind="danger"))


@app.function
def table(runs):
    """Returns regret, messages and bytes per agent of each run, for all agents and for each group such as liars.

    Args:
        runs: What :func:`play` returned, for each run.
    """
    rows = []
    for place, (name, whole, _) in enumerate(runs, 1):
        for group in ("all", *whole.groups):
            result = whole if group == "all" else whole.of(group)
            traffic = {f"{kind} per agent": values.mean() for kind, values in result.traffic.items()}
            row = {"run": f"{place}: {name}", "agents": group, "regret per agent": result.regret[-1].mean()}
            rows.append({**row, **traffic, "CPU seconds": result.cpu_seconds})
    return pd.DataFrame(rows)


@app.function
def shares(panel, result):
    """Returns how often arms were pulled beside what a problem compares that with, arms by rank of the first series.

    Args:
        panel: A panel that the problem declares.
        result: The result of a run.
    """
    totals = {label: result.totals[name].mean(axis=(0, 1)) for label, name in panel.series.items()}
    frame = pd.DataFrame(totals) / result.rounds[-1]
    return frame.sort_values(frame.columns[0], ascending=False, ignore_index=True)


@app.function
def fitted(frame):
    """Returns a data frame as a table that is never wider than the page, where long cells are wrapped.

    Args:
        frame: The data frame.
    """
    html = frame.to_html(index=False, float_format="{:.5g}".format, na_rep="-", border=0)
    return mo.Html(f'<div style="overflow-wrap: anywhere; font-size: min(14px, 2.6vw)">{html}</div>')


@app.cell
def _(get_runs):
    _runs = get_runs()
    mo.stop(not _runs)
    _name, _last, _warned = _runs[-1]
    _frames = [
        result.to_frame().assign(run=f"{place}: {name}") for place, (name, result, _) in enumerate(_runs, 1)
    ]
    _figure = plot(pd.concat(_frames), x="round", y="regret", by="run", log_x=True)
    _claims = pd.DataFrame([claim.as_json() for claim in dict.fromkeys((_last.privacy, *_last.claims))])
    _panels = REGISTRY[_last.labels["env_id"]].problem.lab_panels
    mo.vstack(
        [
            *(mo.callout(text, kind="warn") for text in _warned),
            _figure,
            fitted(table(_runs)),
            mo.md(f"**Privacy of the last run**, {_name}, of the agent that has spent most"),
            fitted(_claims),
            *(
                part
                for panel in _panels
                for part in (mo.md(f"**{panel.title}**"), shares(panel, _last).plot().figure)
            ),
        ]
    )


@app.cell
def _():
    mo.md("""
    ## SAMBA

    Data owners with an arm each, a customer who learns the cumulative reward, Comp and Controller between them. Every
    score is encrypted, and the reward is that of the run without encryption.
    """)


@app.cell
def _():
    samba = mo.ui.dictionary(
        {
            "algorithm": mo.ui.dropdown(list(RULES), value=next(iter(RULES)), label="Algorithm"),
            "ratings": mo.ui.dropdown(["movielens", "jester"], value="movielens", label="Data"),
            "arms": mo.ui.number(1, 100, value=10, label="Arms, an owner each"),
            "budget": mo.ui.number(1, 5000, value=300, label="Budget, rounds"),
            "seed": mo.ui.number(0, 2**31, value=0, label="Seed"),
        }
    )
    encrypt = mo.ui.run_button(label="Run", kind="success")
    mo.hstack([*samba.elements.values(), encrypt], justify="start", wrap=True)
    return encrypt, samba


@app.cell
def _(encrypt, samba):
    mo.stop(not encrypt.value)
    transcripts: dict[str, Record] = {}
    try:
        with mo.status.spinner("Playing with encryption"):
            _secure = run_samba(SambaSettings(**samba.value, owners_per_role=1), transcripts=transcripts)
        _plain = run_samba(SambaSettings(**samba.value, owners_per_role=1, plain=True))
        _shown = {"cumulative reward without encryption": _plain["cumulative_reward"], **_secure}
    except (SettingsError, ValueError, SecureError, ImportError) as _error:
        _shown = {"error": str(_error)}
    _roles = list(transcripts) or ["customer"]
    role = mo.ui.dropdown(_roles, value=_roles[0], label="Role")
    mo.vstack([_shown, role])
    return role, transcripts


@app.cell
def _(role, transcripts):
    mo.stop(role.value not in transcripts)
    mo.vstack(
        [
            mo.md(KNOWS[role.value.partition("-")[0]]),
            fitted(pd.DataFrame(sightings(role.value, transcripts[role.value]))),
        ]
    )


if __name__ == "__main__":
    app.run()
