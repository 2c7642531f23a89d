"""Sweeps: runs of policies for all combinations of some settings, and the tidy table of their results."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from itertools import chain, product
from math import nan
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fedbandit_envs.baselines import BASELINES
from fedbandit_envs.baselines.baseline import as_baseline
from fedbandit_envs.basics.arrays import plain
from fedbandit_envs.basics.checks import require_choice
from fedbandit_envs.core.wrapper import Stack, checked
from fedbandit_envs.experiments.execute import play
from fedbandit_envs.experiments.execute import progress as bar
from fedbandit_envs.experiments.measures import mean_with_interval, ratio_with_interval, rounded
from fedbandit_envs.experiments.result import RunResult
from fedbandit_envs.experiments.spec import RunSpec, SettingsError, refusing
from fedbandit_envs.experiments.store import Store, write_whole

if TYPE_CHECKING:
    from pandas import DataFrame


def sweep(
    env_id: str,
    policies: Sequence[Any],
    grid: Mapping[str, Sequence[Any]] = {},
    *,
    folder: str | Path = "fedbandit-sweep",
    workers: int = 1,
    scheduler: str | None = None,
    progress: bool = False,
    **further: Any,
) -> "DataFrame":
    """Plays a sweep and returns its results as a tidy ``pandas.DataFrame``; see :func:`sweep_frame` for its columns.

    :func:`summary` turns the table into one with a row for each run.

    Finished shards (parts of runs) are kept: after an interruption the same call plays only what is missing, and a
    sweep that has runs in common with an earlier one reuses their results. Policies that are objects or functions have
    no name by which their results could be found again: they are played anew each time, in this process.

    Args:
        env_id: Id of the environment; see :func:`sweep_runs`.
        policies: Names of baselines, baselines, policies or functions; see :func:`sweep_runs`.
        grid: Values by key; see :func:`sweep_runs`.
        folder: Folder where finished shards are kept; made if it does not exist.
        workers: Number of processes of this machine; 1 plays in the current process.
        scheduler: Address of a Dask scheduler, ``tcp://host:port``, whose workers play instead.
        progress: Whether a progress bar is shown on the error stream.
        **further: Other arguments of :func:`sweep_runs`: ``rounds``, ``seeds``, ``first_seed``, ``settings`` and
            ``stack``.

    Raises:
        SettingsError: A setting is wrong, or a run cannot be set up.
        BudgetExhaustedError: A privatizer refuses a release.
        BackendError: The processes or the workers of Dask cannot play.
        ImportError: pandas is missing, which comes with the ``[report]`` extra.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     frame = sweep(
        ...         env_id="FedArms-v0",
        ...         policies=["UCB1"],
        ...         grid={"agents": [2, 5]},
        ...         rounds=20,
        ...         seeds=3,
        ...         folder=folder,
        ...     )
        >>> frame[frame["round"] == 20].groupby("agents").seed.count().to_dict()
        {2: 3, 5: 3}
    """
    import pandas  # noqa: F401 - nothing is played without it

    runs = sweep_runs(env_id, policies, grid, **further)
    store = Store(Path(folder) / "shards")
    named = [run for run in runs if isinstance(run.baseline, str)]
    size = sum(run.size for run in (*runs, *store.missing(named))) - sum(run.size for run in named)
    with bar("sweep", size, progress) as update:

        def load(run: RunSpec) -> RunResult:
            own = isinstance(run.baseline, str)
            return store.load(run) if own else run.run(lambda played: update(advance=played))

        play(named, store.folder, workers, scheduler, lambda played: update(advance=played))
        return sweep_frame(runs, load)


def sweep_runs(
    env_id: str,
    policies: Sequence[Any],
    grid: Mapping[str, Sequence[Any]] = {},
    *,
    rounds: int = 10_000,
    seeds: int = 20,
    first_seed: int = 0,
    settings: Mapping[str, Any] | None = None,
    stack: Stack = (),
) -> list[RunSpec]:
    """Returns the runs of a sweep: for each policy one for each combination of the grid's values, on the same seeds.

    Args:
        env_id: Id of a registered environment, or entry point of an environment.
        policies: Names of baselines, or entry points of policies, ``"file.py:Class"`` or ``"module:Class"``; or
            baselines, policies, their classes or functions, as :func:`.simulate` takes them. An entry may also be a
            mapping with ``policy`` (one of these) and what this policy alone has: ``label`` (its name in the table),
            ``settings`` and ``stack``.
        grid: Values by key. A key is ``rounds`` or the name of an argument of the environment, the policy or a
            wrapper, as in :meth:`.RunSpec.changed`. A key that only some of the policies have does not
            multiply the runs of the others: they play once for each combination of the other keys, and their cell in
            the table is empty.
        rounds: Horizon in rounds.
        seeds: Number of seeds, each of which is one replica (episode).
        first_seed: The first seed; the others are the integers after it.
        settings: Arguments that are the same in all runs that have them, by key as in the grid.
        stack: Wrappers closer to the environment than the baselines' own; see :func:`.build`.

    Raises:
        SettingsError: A name is unknown, a key is ambiguous, a list of values is empty or has a value twice, or a run
            cannot be set up; the message names the key, its value and what is allowed.
    """

    def entry(
        policy: Any, label: str = "", settings: Mapping[str, Any] = {}, stack: Stack = ()
    ) -> tuple[RunSpec, Mapping[str, Any]]:
        name, form = as_baseline(policy)
        labels = {"env_id": env_id, "baseline": label or name}
        inner = [*checked(common_stack), *checked(stack)]
        # Results of a registered baseline are kept under its name.
        named = isinstance(policy, str) or BASELINES.get(name) is form
        names = _absolute(name) if named else form, _absolute(env_id)
        return RunSpec(*names, rounds, seeds, first_seed, stack=inner, labels=labels), plain(settings)

    common_stack, fixed = stack, plain(settings or {})
    with refusing():
        if not isinstance(grid, Mapping):
            raise TypeError(f"grid is {grid!r}; a mapping of lists of values by key is required")
        asked = [
            one if isinstance(one, Mapping) else {"policy": one}
            for one in _values("policies", policies, False)
        ]
        for key in chain.from_iterable(asked):
            require_choice("key of policies", key, ("policy", "label", "settings", "stack"))
        entries = [entry(**one) for one in asked]
        _values("labels of policies", [base.labels["baseline"] for base, _ in entries])
        values = {key: _values(f"grid: {key}", given) for key, given in grid.items()}
        for key, given in chain(fixed.items(), *(own.items() for _, own in entries)):
            _values(key, [given])
    for key, given in {**fixed, **values}.items():
        if key in values and (key in fixed or any(key in own for _, own in entries)):
            raise SettingsError(f"{key} is in settings and in the grid; one of them is required")
        if (key != "rounds" or key in fixed) and not any(base.places(key) for base, _ in entries):
            # Raises the error, which lists the keys of the last policy.
            entries[-1][0].changed({key: given})
    runs = []
    for base, its_own in entries:
        varied = [key for key in values if key == "rounds" or base.places(key)]
        common = {key: value for key, value in fixed.items() if base.places(key)}
        for point in product(*(values[key] for key in varied)):
            given = dict(zip(varied, point, strict=True))
            cells = {key: given.get(key) for key in values if key != "rounds"}
            # A column shows lists and mappings as JSON.
            shown = {key: json.dumps(at) if isinstance(at, list | dict) else at for key, at in cells.items()}
            run = replace(base, rounds=given.pop("rounds", rounds), labels={**base.labels, **shown})
            runs.append(run.changed({**common, **its_own, **given}))
            runs[-1].build()
    return runs


def _values(name: str, given: Any, as_json: bool = True) -> list[Any]:
    """Returns different values as a list that can be written as JSON; raises TypeError or ValueError otherwise."""
    listed = isinstance(given, Iterable) and not isinstance(given, str | Mapping)
    found = [plain(one) for one in given] if listed else []
    if not found or any(one in found[:place] for place, one in enumerate(found)):
        raise ValueError(f"{name} is {given!r}; a list of different values is required")
    try:
        for one in found if as_json else ():
            json.dumps(one)
    except TypeError as error:
        raise TypeError(f"{name} is {one!r}; JSON data are required ({error})") from None
    return found


def _absolute(name: Any) -> Any:
    """Returns an entry point in a file with the file's absolute path, for workers in other folders."""
    file, colon, attribute = str(name).rpartition(":")
    return f"{Path(file).resolve()}:{attribute}" if colon and file.endswith(".py") else name


def sweep_frame(runs: Sequence[RunSpec], load: Callable[[RunSpec], RunResult]) -> "DataFrame":
    """Returns the results of a sweep as a tidy ``pandas.DataFrame`` with a row for each run, seed and checkpoint.

    Columns that describe the run come first: ``env_id``, ``baseline``, ``epsilon``, those of the grid, ``num_agents``
    and ``rounds`` (the horizon). Then come ``seed``, ``round`` (the checkpoint) and ``regret`` (cumulative, mean over
    agents), with a transport ``messages`` (likewise), and ``claim_epsilon``, ``claim_delta`` and ``claim_adjacency``
    (the privacy claim of the run). Other measures are in the rows of the last round only: means over agents of step
    information (a mean over rounds) and of ``bytes`` sent.

    Args:
        runs: The runs, such as :func:`sweep_runs` returns.
        load: Returns a run's result, such as :meth:`.store.Store.load`.

    Raises:
        ImportError: pandas is missing, which comes with the ``[report]`` extra.
    """
    from pandas import concat

    return concat([_table(run, load(run)) for run in runs], ignore_index=True)


def _table(run: RunSpec, result: RunResult) -> "DataFrame":
    """Returns the part of the table that one run makes."""
    messages = None if result.messages is None else result.messages.mean(axis=2, keepdims=True)
    labels = {name: np.nan if label is None else label for name, label in result.labels.items()}
    regret = result.regret.mean(axis=2, keepdims=True)
    frame = replace(result, regret=regret, messages=messages, labels=labels).to_frame().drop(columns="agent")
    frame["num_agents"] = result.regret.shape[2]
    for name, values in {**result.info, **result.traffic}.items():
        if name not in frame:
            frame.loc[frame["round"] == run.rounds, name] = values.mean(axis=1)
    return frame


def summary(frame: "DataFrame") -> "DataFrame":
    """Returns a table to be printed, with one row for each run: regret, its ratio to that of silence, and the claim.

    Its columns are those that describe the run, and then:

    * ``seeds``: the number of seeds;
    * ``regret``: mean regret per agent at the horizon and its 95 % interval over seeds, as text, ``16 [14, 20]``;
    * ``ratio``: the ratio of expected regrets to silence, likewise, or a dash. Silence is that run of the table without
      any release which has the least mean regret, under the same settings and seeds;
    * ``claim_epsilon``, ``claim_delta`` and ``claim_adjacency``: what the run may claim.

    The methods ``to_latex`` and ``to_markdown`` of the returned table write it for a paper or a page. For intervals as
    numbers see :mod:`.measures`.

    Args:
        frame: A table such as :func:`sweep` and :meth:`.RunResult.to_frame` return; ``pandas.concat`` joins several.

    Example:
        >>> from pandas import concat
        >>> from fedbandit_envs.experiments import simulate, summary
        >>> runs = [simulate("FedArms-v0", name, seeds=5) for name in ("UCB1", "UCB1-tuned")]
        >>> table = summary(concat([run.to_frame() for run in runs]))
        >>> print(table[["baseline", "seeds", "ratio"]].to_string(index=False))
          baseline  seeds             ratio
              UCB1      5    4.5 [3.5, 6.1]
        UCB1-tuned      5 1.00 [1.00, 1.00]
    """
    from pandas import DataFrame, isna

    about = list(frame.columns[: frame.columns.get_loc("seed")])
    claim = [name for name in frame if name.startswith("claim_")]
    last = frame[frame["round"] == frame["rounds"]].groupby([*about, *claim], dropna=False, sort=False)
    runs = [
        (dict(zip([*about, *claim], key, strict=True)), run.groupby("seed").regret.mean())
        for key, run in last
    ]
    rows = []
    for told, regret in runs:
        silent = [
            other
            for its, other in runs
            if its["claim_epsilon"] == 0
            and other.index.equals(regret.index)
            and all(its[name] == told[name] or isna(its[name]) for name in about if name != "baseline")
        ]
        least = min(silent, key=lambda other: other.mean(), default=regret * nan)
        measured = {
            "seeds": regret.size,
            "regret": rounded(mean_with_interval(regret.to_numpy())),
            "ratio": rounded(ratio_with_interval(regret.to_numpy(), least.to_numpy())),
        }
        rows.append({name: told[name] for name in about} | measured | {name: told[name] for name in claim})
    return DataFrame(rows)


def write_tables(frame: "DataFrame", folder: Path) -> list[Path]:
    """Writes a table as ``sweep.csv``, and where ``pyarrow`` is installed as ``sweep.parquet``; returns the paths.

    Args:
        frame: The table.
        folder: The folder, which must exist.

    Raises:
        OSError: A file cannot be written.
    """
    written = {folder / "sweep.parquet": frame.to_parquet(index=False)} if find_spec("pyarrow") else {}
    written[folder / "sweep.csv"] = frame.to_csv(index=False).encode()
    for path, content in written.items():
        write_whole(path, content)
    return list(written)
