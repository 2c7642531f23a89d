"""`fedbandit sweep` and `fedbandit plot`, as a user types them: stopped, resumed, mistyped."""

import re
import warnings
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from typed import assert_explained
from typed import call as typed

from fedbandit_envs import experiments, make_federation
from fedbandit_envs.baselines.arms import UCB1
from fedbandit_envs.experiments.measures import mean_with_interval
from fedbandit_envs.experiments.spec import RunSpec

pandas = pytest.importorskip("pandas")
pytest.importorskip("matplotlib")

SPEC = """
env_id = "FedArms-v0"
policies = ["MOSS-weighted", {policy = "UCB1", label = "silent"}]
rounds = 9
seeds = 3
settings.arms = 4
grid.epsilon = [0.5, 5]
grid.agents = [2, 3]
"""
SWEEP = ("sweep", "--env", "FedArms-v0", "--policy", "UCB1", "--rounds", 9, "--seeds", 3)


@pytest.fixture
def call(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "spec.toml").write_text(SPEC)
    (tmp_path / "odd.toml").write_text("seeds = 1 2")
    return typed


@pytest.fixture
def frame():
    """A table of two policies, one without epsilon, whose numbers are known."""
    rows = [
        ("noisy", epsilon, agents, 8, seed, played, 100 * agents + 10 * seed + played / epsilon)
        for epsilon in (0.1, 1.0, 10.0) for agents in (2, 5) for seed in range(5) for played in (4, 8)
    ]  # fmt: skip
    rows += [("silent", np.nan, agents, 8, seed, 8, 300.0 + seed) for agents in (2, 5) for seed in range(5)]
    return pandas.DataFrame(
        rows, columns=["baseline", "epsilon", "agents", "rounds", "seed", "round", "regret"]
    )


def test_options_say_what_a_file_says(call, tmp_path):
    first = call("sweep", "spec.toml", "--out", "one", "--workers", 1)
    assert first.exit_code == 0
    words = ("--policy", "MOSS-weighted", "--grid", "epsilon=.5,5", "--grid", "agents=2,3", "--set", "arms=4")
    assert call(*SWEEP[:3], *words, *SWEEP[5:], "--out", "two", "--workers", 1).exit_code == 0
    one, two = (pandas.read_csv(tmp_path / name / "sweep.csv") for name in ("one", "two"))
    pandas.testing.assert_frame_equal(
        one[one.baseline == "MOSS-weighted"], two, check_dtype=False, check_like=True
    )
    assert set(one.baseline) == {"MOSS-weighted", "silent"}
    assert "claimed: epsilon at delta 1e-05 for one-observation\n" in first.stdout
    # What is said twice is as the option says.
    result = call("sweep", "spec.toml", "--grid", "scale=1,2", "--seeds", 2, "--out", "three", "--workers", 1)
    three = pandas.read_csv(tmp_path / "three/sweep.csv")
    assert result.stdout.splitlines()[-1] == "three/sweep.csv"
    assert set(three.seed) == {0, 1}
    assert set(three.scale) == {1, 2}
    # Also where the option says that there is nothing.
    (tmp_path / "wrong.toml").write_text(f'{SPEC}stack = ["Nothing"]\n')
    words = ("sweep", "wrong.toml", "--seeds", 1, "--workers", 1, "--out", "four")
    assert [call(*words).exit_code, call(*words, "--stack", "[]").exit_code] == [2, 0]


def test_a_sweep_that_is_stopped_goes_on_where_it_was(call, monkeypatch, tmp_path):
    played = []
    play = RunSpec.play

    def interrupted(self):
        if len(played) == 2:
            raise KeyboardInterrupt
        played.append(self.env_kwargs)
        return play(self)

    words = ("sweep", "spec.toml", "--workers", 1, "--out", "out")
    monkeypatch.setattr(RunSpec, "play", interrupted)
    stopped = call(*words)
    assert stopped.exit_code not in (0, 2)
    assert "Stopped. out/shards has what is finished; the same command" in stopped.stderr
    assert len(list((tmp_path / "out/shards").glob("*.npz"))) == 2
    assert not (tmp_path / "out/sweep.csv").exists()
    played[:] = [None] * 3
    assert call(*words).exit_code == 0
    assert len(played) == 3 + 4
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    assert call(*words[:-1], "whole").exit_code == 0
    assert (tmp_path / "out/sweep.csv").read_bytes() == (tmp_path / "whole/sweep.csv").read_bytes()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (SWEEP, "--env, --policy and --grid are required"),
        (("sweep", "none.toml"), "No such file or directory: 'none.toml'"),
        (("sweep", "odd.toml"), "at line 1, column 11"),
        ((*SWEEP, "--grid", "agents"), "'agents' is given; key=value"),
        ((*SWEEP, "--grid", "agents="), "num_agents is ''"),
        ((*SWEEP, "--grid", "agents=2", "--grid", "agents=3"), "'agents=3' is given; key=value"),
        ((*SWEEP, "--grid", "agent=2"), "key for UCB1 on FedArms-v0 is 'agent'; one of 'awake', "),
        ((*SWEEP, "--grid", "agents=2", "--stack", "[["), "stack is '[['"),
        ((*SWEEP, "--grid", "agents=2", "--out", "spec.toml"), "Invalid value for '--out'"),
    ],
)
def test_mistakes_are_explained(call, tmp_path, words, message):
    assert_explained(call(*words), message)
    assert not (tmp_path / "fedbandit-sweep" / "shards").exists()


def test_a_figure_has_means_and_intervals(frame):
    figure = experiments.plot(frame, x="epsilon", y="regret", by="baseline", where={"agents": 5}, log_x=True)
    (axes,) = figure.axes
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "linear")
    (line, _, (bars,)), (level, _, _) = (drawn.lines for drawn in axes.containers)
    np.testing.assert_array_equal(line.get_xdata(), [0.1, 1.0, 10.0])
    for epsilon, y, (low, high) in zip((0.1, 1.0, 10.0), line.get_ydata(), bars.get_segments(), strict=True):
        values = np.array([500 + 10 * seed + 8 / epsilon for seed in range(5)])
        np.testing.assert_allclose([y, low[1], high[1]], mean_with_interval(values))
    # A policy without epsilon is a level line.
    assert list(level.get_ydata()) == [302.0] * 3
    assert level.get_color() != line.get_color()
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["noisy", "silent"]
    assert axes.get_title() == "agents = 5"
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["0.1", "1", "10"]


def test_curves_over_rounds_and_over_names(frame):
    noisy = frame[frame.baseline == "noisy"]
    over_rounds = experiments.plot(noisy, "round", "regret", by=["agents", "epsilon"], log_y=True)
    assert len(over_rounds.axes[0].containers) == 6
    (legend,) = over_rounds.legends
    assert {text.get_text() for text in legend.get_texts()} >= {"2, 0.1", "5, 10"}
    over_names = experiments.plot(
        frame, "baseline", "regret", by="agents", where={"round": 8, "epsilon": 1.0}
    )
    assert [tick.get_text() for tick in over_names.axes[0].get_xticklabels()] == ["noisy"]


def test_every_value_has_its_curve_and_texts_are_no_formulas(frame):
    own = frame[(frame.baseline == "noisy") & (frame.agents == 2)].assign(baseline=r"$\bad{$")
    for x in ("round", "baseline"):
        near = own.assign(epsilon=1 + own.epsilon * 1e-9)
        figure = experiments.plot(near, x, "regret", by=["baseline", "epsilon"], where={"agents": 2})
        assert len(figure.axes[0].containers) == 3
        figure.savefig(BytesIO())
    with pytest.raises(ValueError, match="two curves would be named '1'"):
        experiments.plot(own.assign(epsilon=1 + own.epsilon * 1e-15), "round", "regret", by="epsilon")


def test_agents_of_a_run_are_averaged_first(call):
    env = make_federation("FedArms-v0", num_agents=3, max_cycles=8)
    result = experiments.simulate(env, UCB1(), seeds=range(5))
    mean, _, upper = mean_with_interval(result.regret.mean(axis=2))
    figure = result.to_frame().pipe(experiments.plot, x="round", y="regret")
    ((line, _, (bars,)),) = (drawn.lines for drawn in figure.axes[0].containers)
    np.testing.assert_allclose([float(y) for y in line.get_ydata()], mean)
    np.testing.assert_allclose([high[1] for _, high in bars.get_segments()], upper)
    alone = experiments.plot(result.to_frame(), x="round", y="regret", by="agent")
    assert len(alone.axes[0].containers) == 3
    # The index is a column of the file.
    result.to_frame().to_csv("run.csv")
    assert call("plot", "run.csv", "--x", "round", "--by", "baseline").exit_code == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--x", "epsilom"), "column is 'epsilom'; one of 'baseline', 'epsilon'"),
        (("--x", "epsilon", "--where", "agents=3"), "agents is 3; one of 2, 5 is required"),
        (("--x", "epsilon", "--by", "baseline"), "rows of one seed differ in agents; name it in by"),
        (("--x", "round", "--where", "baseline=noisy"), "rows of one seed differ in epsilon, agents;"),
        (("--x", "epsilon", "--y", "baseline"), "baseline is no number"),
        (("--x", "baseline", "--where", "agents=2", "--log-x"), "baseline has values that are not > 0"),
        (
            ("--x", "epsilon", "--by", "baseline", "--by", "agents", "--out", "x.txt"),
            "'txt' is not supported",
        ),
    ],
)
def test_mistakes_of_plots_are_explained(call, frame, tmp_path, words, message):
    frame.to_csv("table.csv", index=False)
    assert_explained(call("plot", "table.csv", *words), message)
    assert not (tmp_path / "plot.png").exists()


def test_without_noise_is_a_level_line(frame):
    """Epsilon is infinite there, on both kinds of axes; a policy that also has finite ones keeps its curve."""
    frame = frame[(frame.baseline == "noisy") & (frame.agents == 2)]
    mixed = frame.assign(epsilon=frame.epsilon.replace(10.0, np.inf))
    for log_x in (True, False):
        (axes,) = experiments.plot(mixed, "epsilon", "regret", log_x=log_x).axes
        curve, level = (drawn.lines[0] for drawn in axes.containers)
        np.testing.assert_allclose([*map(float, curve.get_ydata())], [300.0, 228.0])
        np.testing.assert_allclose([*map(float, level.get_ydata())], [220.8] * 2)
        assert [*map(float, level.get_xdata())] == [0.1, 1.0]
    for name, message in ("epsilon", "has no finite value"), ("regret", "has infinite values"):
        with pytest.raises(ValueError, match=f"{name} {message}"):
            experiments.plot(frame.assign(**{name: np.inf}), "epsilon", "regret")


@pytest.mark.parametrize(
    ("cut", "message"),
    [
        (lambda lines: lines[:-1], "epsilon = 10.0 has 4 seeds, others up to 5"),
        (lambda lines: lines[:-1], "1 runs have no row of their last round"),
        (lambda lines: [*lines[:-1], lines[-1][:-3]], "cut.csv ends within a line"),
        (lambda lines: lines, ""),
    ],
)
def test_a_table_that_was_cut_is_not_drawn_without_a_word(call, frame, cut, message):
    text = frame[(frame.baseline == "noisy") & (frame.agents == 2)].to_csv(index=False)
    Path("cut.csv").write_text("".join(cut(text.splitlines(keepends=True))))
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always", UserWarning)
        result = call("plot", "cut.csv", "--x", "epsilon")
    assert result.exit_code == 0, result.output
    said = result.output + "".join(str(one.message) for one in found)
    assert message in said if message else "cut" not in said


def test_what_has_no_mean_is_not_averaged(call):
    words = ("--env", "FedExposure-v0", "--policy", "Priv-FairX-LinUCB", "--grid", "agents=2", "--rounds", 9)
    assert call("sweep", *words, "--seeds", 2, "--workers", 1, "--out", "one").exit_code == 0
    columns = {*pandas.read_csv("one/sweep.csv").columns}
    assert {"reward_regret", "messages"} <= columns
    assert not {"arm", "epsilon_spent"} & columns
    out = call("run", "Priv-FairX-LinUCB", "FedExposure-v0", "--rounds", 9, "--seeds", 2).output
    means = out.partition("means over rounds and agents: ")[2]
    assert {"reward_regret", "messages"} <= {*re.findall(r"(\w+) [-\d.e]+", means)} <= columns
