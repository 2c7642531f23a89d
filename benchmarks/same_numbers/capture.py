"""Writes down what every baseline does in every environment, to the last bit.

OMP_NUM_THREADS=1 python capture.py OUT.json [--rounds 1000] [--seeds 3] [--only PART_OF_A_NAME]
"""

import argparse
import hashlib
import json
import time
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

import numpy as np

from fedbandit_envs import REGISTRY, make_federation
from fedbandit_envs.baselines import BASELINES
from fedbandit_envs.experiments import simulate

# Environments of the suites come in these forms, which differ from their presets.
CHANGED: dict[str, dict[str, Any]] = {f"FedArmsMovieLens-v{v}": {"num_arms": 10} for v in (0, 1)}
# Named here, since the names are what users write: one that is refused is written down as refused.
ADJACENCIES = ("one-quantity", "one-round", "one-observation", "one-observation-added", "one-outcome")
COMPOSITIONS = ("basic", "zcdp", "exact", "parallel")
DELTA = 1e-5
# Numbers follow from them, too: exact claims of mixtures from the last, which is optional.
LIBRARIES = ("numpy", "scipy", "numba", "dp-accounting")
FIELDS = ("rounds", "messages", "info", "totals")
"""What a simulation holds besides regret."""


def digest(values: Any) -> dict[str, Any]:
    """Returns shape, type and SHA-256 of an array, and its sum and last number, to read and as bits."""
    array = np.ascontiguousarray(values)
    found: dict[str, Any] = {
        "shape": list(array.shape),
        "dtype": array.dtype.str,
        "sha256": hashlib.sha256(array.tobytes()).hexdigest(),
    }
    if array.size:
        found |= {"sum": float(array.sum()), "last": float(array.flat[-1]).hex()}
    return found


def machine() -> str:
    """Returns the processor, as far as NumPy's choice of instructions follows from it: the last bit does, too."""
    known = Path("/proc/cpuinfo")
    lines = known.read_text().splitlines() if known.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    found = np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])
    return ", ".join([*names[:1], *found])


def of_stack(env: Any, name: str) -> Any:
    """Returns an attribute of the outermost layer that has it, or None."""
    while env is not None and not hasattr(env, name):
        env = getattr(env, "env", None)
    return getattr(env, name, None)


def digests(values: Any) -> Any:
    """Returns the digest of an array, or those of a mapping of arrays; None for nothing."""
    if hasattr(values, "items"):
        return {kind: digest(array) for kind, array in sorted(values.items())}
    return None if values is None else digest(values)


def claims(env: Any) -> dict[str, Any]:
    """Returns what the accountant claims, by adjacency and composition; empty where there is none."""
    accountant = of_stack(env, "accountant")
    if accountant is None:
        return {}
    found = {}
    for adjacency in ADJACENCIES:
        for composition in COMPOSITIONS:
            try:
                claim = accountant.epsilon(
                    None if composition == "basic" else DELTA, composition=composition, adjacency=adjacency
                ).as_json()
            except ValueError as error:
                claim = {"refused": type(error).__name__}
            found[f"{adjacency}, {composition}"] = claim
    return found


def play(name: str, env_id: str, changes: dict[str, Any], rounds: int, seeds: int) -> dict[str, Any]:
    """Plays one baseline and returns its numbers; or, of one that does not play there, what it raises."""
    env = make_federation(env_id, max_cycles=rounds, **changes)
    baseline = BASELINES[name]
    try:
        env = baseline.wrap(env)
        run = simulate(env, baseline.make_policy(), range(seeds))
    # Its kind is part of what must stay; its words may become better.
    except Exception as error:
        return {"refused": type(error).__name__}
    return {
        "regret": digest(run.regret),
        **{name: digests(getattr(run, name)) for name in FIELDS},
        "traffic": digests(of_stack(env, "traffic")),  # messages and bytes of each agent
        "privacy": env.privacy().as_json(),
        "claims": claims(env),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", default="", help="pairs whose name has this in it")
    options = parser.parse_args()
    start = time.time()
    environments = {env_id: CHANGED.get(env_id, {}) for env_id in REGISTRY}
    pairs = {}
    for env_id, changes in sorted(environments.items()):
        for name in sorted(BASELINES):
            pair = f"{name} on {env_id}"
            if options.only in pair:
                pairs[pair] = play(name, env_id, changes, options.rounds, options.seeds)
        print(f"{time.time() - start:5.0f} s: {env_id}", flush=True)
    found = {
        "rounds": options.rounds,
        "seeds": options.seeds,
        "libraries": {one.name: one.version for one in distributions() if one.name in LIBRARIES},
        "machine": machine(),
        "environments": environments,
        "baselines": sorted(BASELINES),
        "pairs": pairs,
    }
    options.out.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")
    played = [pair for pair in pairs.values() if "refused" not in pair]
    print(f"{len(played)} pairs played, {len(pairs) - len(played)} refused: {options.out}")


if __name__ == "__main__":
    main()
