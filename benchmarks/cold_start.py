"""Prints how long a first step takes while nothing is compiled, and which kernels are compiled for it.

python -m benchmarks.cold_start                          # all environments, a minute or two
python -m benchmarks.cold_start FedArms-v0 --kernels 20  # one of them, with its slowest kernels

Each environment is made, reset and stepped once in a process of its own, with an empty cache of kernels. Seconds are
CPU time of the whole process, imports included. Seconds of a kernel are its own, without those of the kernels that it
calls.
"""

import argparse
import json
import os
import subprocess
import sys
from tempfile import TemporaryDirectory
from typing import Any

import fedbandit_envs  # noqa: F401 - registers the environments

FIRST_STEP = """
import json
import sys
import time
from collections import Counter
from importlib import import_module

from numba.core import event

seconds, signatures, running = Counter(), [], []


class Stopwatch(event.Listener):
    def on_start(self, started):
        running.append([time.process_time(), 0.0])

    def on_end(self, ended):
        began, called = running.pop()
        took = time.process_time() - began
        function = ended.data["dispatcher"].py_func
        name = f"{function.__module__.removeprefix('fedbandit_envs.')}.{function.__name__}"
        seconds[name] += took - called
        signatures.append([name, str(ended.data["args"])])
        if running:
            running[-1][1] += took


import gymnasium

import_module("fedbandit_envs")
imported = time.process_time()
event.register("numba:compile", Stopwatch())
env = gymnasium.make(sys.argv[1])
env.reset(seed=0)
env.action_space.seed(0)
env.step(env.action_space.sample())
total = time.process_time()
print(json.dumps({"total": total, "imported": imported, "seconds": seconds, "signatures": signatures}))
"""


def first_step(env_id: str, **variables: str) -> dict[str, Any]:
    """Makes, resets and steps an environment in a new process with an empty cache of kernels.

    Args:
        env_id: Id of the environment.
        **variables: Further variables of the process's environment, such as ``NUMBA_OPT="0"``.

    Returns:
        CPU seconds in all (``total``) and when imports were done (``imported``), CPU seconds by kernel (``seconds``),
        and name and argument types of each compiled specialisation (``signatures``).
    """
    with TemporaryDirectory() as cache:
        inherited = {**os.environ, "NUMBA_CACHE_DIR": cache, "OMP_NUM_THREADS": "1", **variables}
        words = [sys.executable, "-c", FIRST_STEP, env_id]
        done = subprocess.run(words, env=inherited, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    import gymnasium

    known = [name for name, spec in gymnasium.registry.items() if "fedbandit_envs" in str(spec.entry_point)]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("ids", nargs="*", help=f"by default all: {', '.join(known)}")
    parser.add_argument("--kernels", type=int, default=0, help="how many of the slowest kernels to print")
    arguments = parser.parse_args()
    print(f"{'environment':28} {'CPU s':>6} {'imports':>8} {'kernels':>8} {'specialisations':>16}")
    for name in arguments.ids or known:
        found = first_step(name)
        kernels, compiled = len(found["seconds"]), len(found["signatures"])
        print(
            f"{name:28} {found['total']:6.2f} {found['imported']:8.2f} {kernels:8} {compiled:16}", flush=True
        )
        slowest = sorted(found["seconds"].items(), key=lambda item: -item[1])
        for kernel, seconds in slowest[: arguments.kernels]:
            print(f"    {seconds:6.2f}  {kernel}")


if __name__ == "__main__":
    main()
