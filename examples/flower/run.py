"""Runs four silos against a SuperLink and SuperNodes on this machine: one is killed and comes back, one comes late.

``python examples/flower/run.py`` with the extra ``flower``. Everything it writes is in a temporary folder.
"""

import os
import shutil
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from fedbandit_envs.silos import Silo

HERE = Path(__file__).parent
BIN = Path(sys.executable).parent
sys.path.insert(0, str(HERE))


def free_port() -> int:
    """Returns a port that nobody listens to."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


def main(folder: Path) -> None:
    """Starts everything in a folder, waits for the end of the run, and says what each silo has spent."""
    from app import plan

    link, running = f"127.0.0.1:{free_port()}", []
    connection = f'default = "loop"\n[superlink.loop]\naddress = "{link}"\ninsecure = true\n'
    (folder / "config.toml").write_text(f"[superlink]\n{connection}")
    shutil.copytree(HERE, folder / "app", ignore=shutil.ignore_patterns("__pycache__", "run.py"))
    environment = {**os.environ, "HOME": str(folder), "FLWR_HOME": str(folder), "FLWR_TELEMETRY_ENABLED": "0"}
    environment["PATH"] = f"{BIN}:{environment['PATH']}"

    def start(name: str, command: str, *words: str) -> subprocess.Popen[bytes]:
        with open(folder / name, "ab") as log:
            # In a session of its own, so that what it has started ends with it.
            options = {
                "env": environment,
                "cwd": folder,
                "stdout": log,
                "stderr": log,
                "start_new_session": True,
            }
            running.append(subprocess.Popen([BIN / command, *words], **options))
        return running[-1]

    def node(silo: int) -> subprocess.Popen[bytes]:
        config = f'agent={silo} store="{folder / f"{silo}.db"}"'
        words = ("--superlink", link, "--port", str(free_port()), "--node-config", config)
        return start(f"node-{silo}", "flower-supernode", "--insecure", *words)

    def wait_for(log: str, text: str) -> None:
        until = time.monotonic() + 300
        while text not in (folder / log).read_text():
            assert time.monotonic() < until, (folder / log).read_text()
            time.sleep(0.2)

    try:
        port = ("--port", link.rpartition(":")[2])
        start("link", "flower-superlink", "--insecure", "--disable-runtime-dependency-installation", *port)
        wait_for("link", "Uvicorn running")
        _, killed, _ = (node(silo) for silo in range(3))
        start("run", "flwr", "run", "app", "loop", "--stream")
        wait_for("run", "round 1:")
        os.killpg(killed.pid, 9)
        wait_for("run", "round 2:")
        node(1), node(3)
        wait_for("run", "the last:")
        print((folder / "run").read_text())
    finally:
        for process in running:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, 9)
    for silo in range(4):
        with Silo(plan, silo, folder / f"{silo}.db") as one:
            print(f"silo {silo}: {one.round} rounds, received {one.received}, {one.privacy()}")


if __name__ == "__main__":
    with TemporaryDirectory() as scratch:
        main(Path(scratch))
