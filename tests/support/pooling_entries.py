"""Entries for tests of the leaderboard's row checks: an honest one, and ones that use data of all agents of a replica.

The file can be submitted: ``pooling_entries.py:Honest``, or ``pooling_entries.py:Pooler`` with the settings below.
"""

import fcntl
import os
import struct
import sys
import sysconfig
import time
from functools import cache

import numpy as np

from fedbandit_envs.baselines.arms import UCB1
from fedbandit_envs.baselines.procurement import SSUCB

_SLOT = 2**12


class Honest:
    """Plays any suite, from the totals that observations contain."""

    def reset(self, spec, seeds):
        self.spec, self.rows, self.seeds = spec, seeds.shape, seeds
        self.pooled = np.zeros(seeds.shape, bool)
        if "capacity" in spec.observation.spaces:
            self.base = SSUCB()
        elif "contexts" in spec.observation.spaces:
            self.base = Ridge()
        else:
            self.base = UCB1()
        self.base.reset(spec, seeds)

    def act(self, observation):
        """The action of every row; where `pooled` is true, by the sum of all totals in its replica."""
        seen = dict(observation)
        for name, array in observation.items():
            if name.startswith("total_") and self.pooled.any():
                where = self.pooled.reshape(*self.rows, *[1] * (array.ndim - 2))
                seen[name] = np.where(where, array.sum(axis=1, keepdims=True), array)
        return np.array(self.base.act(seen))


class Ridge:
    """Ridge regression on totals: arms by upper confidence bounds, or shares by the estimated merits."""

    def reset(self, spec, seeds):
        self.merits = spec.public.get("merits")

    def act(self, observation):
        total, contexts = observation["total_statistic"], observation["contexts"]
        dim = contexts.shape[-1]
        inverse = np.linalg.inv(np.eye(dim) + total[..., :dim, :dim])
        theta = inverse @ total[..., :dim, dim:]
        means = (contexts @ theta)[..., 0]
        if self.merits is None:
            width = ((contexts @ inverse) * contexts).sum(axis=-1)
            return (means + 0.3 * np.sqrt(width)).argmax(axis=-1)
        from fedbandit_envs.exposure.merit import share_out

        shares = means.copy()
        share_out(self.merits.logarithm(shares, observation.get("merit")), shares)
        return shares


class Pooler(Honest):
    """Uses the totals of its whole replica in rows of which nothing says that they are watched.

    Rows that are played alone leave word of that in a channel, as far as it is open.
    """

    def __init__(self, channel="", share=1.0, path=""):
        self.channel, self.share, self.path = channel, share, path

    def reset(self, spec, seeds):
        super().reset(spec, seeds)
        self.round = 0
        leave, told = CHANNELS[self.channel]
        if seeds.shape[1] == 1:
            for seed in seeds.ravel().tolist():
                quietly(leave, seed, self.path)
            return
        watched = [bool(quietly(told, seed, self.path)) for seed in seeds.ravel().tolist()]
        chosen = np.random.default_rng(seeds.ravel().tolist()).random(seeds.shape) < self.share
        self.pooled = chosen & ~np.reshape(watched, seeds.shape)

    def act(self, observation):
        action = super().act(observation)
        if self.channel == "locks" and action.ndim == 2:
            self.tell_each_other(action)
        return action

    def tell_each_other(self, action):
        """Who sees all rows locks a byte of a file for each of them, and who sees one alone acts by that."""
        file = quietly(open, file_of(0), "rb") if self.round == 0 else self.file
        self.file, self.round = file, self.round + 1
        for row, seed in zip(np.ndindex(self.rows), self.seeds.ravel().tolist(), strict=True):
            start = seed % 2**48 * _SLOT
            if self.rows[1] == 1:
                asked = struct.pack("hhqqi", fcntl.F_WRLCK, 0, start, _SLOT, 0)
                kind, _, place, _, _ = struct.unpack("hhqqi", fcntl.fcntl(file, fcntl.F_GETLK, asked))
                if kind != fcntl.F_UNLCK:
                    action[row] = place - start
            else:
                for kind, place, size in (
                    (fcntl.F_UNLCK, start, _SLOT),
                    (fcntl.F_RDLCK, start + int(action[row]), 1),
                ):
                    fcntl.fcntl(file, fcntl.F_SETLK, struct.pack("hhqqi", kind, 0, place, size, 0))


@cache
def files():
    """Files that every process may read."""
    folder = sysconfig.get_paths()["stdlib"]
    return sorted(entry.path for entry in os.scandir(folder) if entry.name.endswith(".py"))


def file_of(seed):
    return files()[seed % len(files())]


def quietly(function, *arguments):
    """What a function returns; nothing if the process may not do that."""
    try:
        return function(*arguments)
    except OSError:
        return None


def _write(seed, path):
    with open(path, "a") as out:
        out.write(f"{seed}\n")


def _written(seed, path):
    with open(path) as read:
        return f"{seed}\n" in read.readlines()


def _remember(seed, path):
    vars(sys).setdefault("_watched", set()).add(seed)


def _read(seed, path):
    with open(file_of(seed), "rb") as read:
        read.read(1)


def _stamp(seed, path):
    os.utime(file_of(seed), (1.0, os.stat(file_of(seed)).st_mtime))


def _spin(seed, path):
    until = time.process_time() + 0.02 * (seed % 2)
    while time.process_time() < until:
        pass


CHANNELS = {
    # Nobody tells anything; all rows are pooled.
    "": (lambda seed, path: None, lambda seed, path: False),
    # Between processes that run at the same time; see `tell_each_other`.
    "locks": (lambda seed, path: None, lambda seed, path: False),
    # Open in one process, or without confinement.
    "file": (_write, _written),
    "memory": (_remember, lambda seed, path: seed in vars(sys).get("_watched", ())),
    # Left behind by a process that has ended.
    "atime": (_read, lambda seed, path: os.stat(file_of(seed)).st_atime > time.time() - 600),
    "utime": (_stamp, lambda seed, path: os.stat(file_of(seed)).st_atime == 1.0),
    "load": (_spin, lambda seed, path: int(100 * os.getloadavg()[0]) % 2 == seed % 2),
}
