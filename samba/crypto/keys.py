"""Keyrings: the keys that each role holds. They are dealt once, before a run, and are valid for that run only."""

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, NamedTuple

from fedbandit_envs.basics.checks import require_integer
from fedbandit_envs.samba.crypto.keystreams import KEY_BYTES, OwnerKeys, derive_key, owner_keys


class Certificate(NamedTuple):
    """A role's certificate and key for mutual TLS on links that leave the machine; texts in PEM.

    Attributes:
        authority: The certificate that has signed the certificates of all roles.
        own: The role's certificate, issued to the role's name.
        key: The private key of that certificate.
    """

    authority: str
    own: str
    key: str


@dataclass(frozen=True)
class Keyring:
    """All keys that one role holds.

    Attributes:
        role: The role's name: ``customer``, ``controller``, ``comp``, or ``owner-0``, ``owner-1``, ... for groups of
            owners.
        group_sizes: Number of owners in each group by its name, in the order of the arms.
        links: Keys of the role's links by the peer's name: of frames to the peer, and of frames from the peer.
        secrets: The role's own keys by use. Comp: ``cipher``, ``choice``; Controller: ``permutation``,
            ``common_score``, ``coin``; a group of owners: ``cipher``.
        owners: Keys of each owner in the group.
        certificate: The certificate for links under TLS, or None.

    Example:
        >>> keyrings = deal_keys(seed=0, group_sizes=[1, 2])
        >>> sorted(keyrings)
        ['comp', 'controller', 'customer', 'owner-0', 'owner-1']
        >>> keyrings["controller"].group_arms["owner-1"]
        slice(1, 3, None)
    """

    role: str
    group_sizes: dict[str, int]
    links: dict[str, tuple[bytes, bytes]]
    secrets: dict[str, bytes]
    owners: tuple[OwnerKeys, ...] = ()
    certificate: Certificate | None = None

    @property
    def arms(self) -> int:
        """Number of owners in all groups, K."""
        return sum(self.group_sizes.values())

    @property
    def group_arms(self) -> dict[str, slice]:
        """The arms of each group of owners, as a slice of the list of all arms."""
        bounds = pairwise(accumulate(self.group_sizes.values(), initial=0))
        return {name: slice(*bound) for name, bound in zip(self.group_sizes, bounds, strict=True)}

    def save(self, path: Path) -> None:
        """Writes the keyring to a file that only the user who writes it can read.

        Raises:
            OSError: The file cannot be written, or exists already.
        """
        text = json.dumps(asdict(self), default=bytes.hex, indent=1)
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(text)

    @classmethod
    def load_and_remove(cls, path: Path, role: str) -> "Keyring":
        """Returns the keyring of a role from its file, and removes the file.

        It is removed because keys are valid for one run: in a second run under the same keys, frames of the first
        would be accepted.

        Args:
            path: The file.
            role: Name of the role.

        Raises:
            OSError: The file cannot be read or removed.
            ValueError: It is no key file, or that of another role; the file is kept.
        """
        text = path.read_text()
        try:
            parts: dict[str, Any] = json.loads(text)
            ring = cls(
                role=str(parts["role"]),
                group_sizes={str(name): int(size) for name, size in parts["group_sizes"].items()},
                links={
                    peer: (sending, receiving)
                    for peer, texts in parts["links"].items()
                    for sending, receiving in [_keys(texts, 2)]
                },
                secrets=dict(zip(parts["secrets"], _keys(parts["secrets"].values()), strict=True)),
                owners=tuple(OwnerKeys(*_keys(keys, 4)) for keys in parts["owners"]),
                certificate=parts["certificate"] and Certificate(*parts["certificate"]),
            )
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise ValueError(f"{path} is no key file: {error!r}") from error
        if ring.role != role:
            raise ValueError(f"{path} has the keys of {ring.role!r}; those of {role!r} are required")
        path.unlink()
        return ring


def _keys(texts: Any, number: int | None = None) -> list[bytes]:
    keys = [bytes.fromhex(text) for text in texts]
    if any(len(key) != KEY_BYTES for key in keys) or (number is not None and len(keys) != number):
        raise ValueError(f"keys of {KEY_BYTES} bytes are required")
    return keys


def deal_keys(seed: int, group_sizes: Sequence[int]) -> dict[str, Keyring]:
    """Returns the keyrings of all roles of a new run, by the role's name.

    Keys that decide on rewards (of masks, permutations and random numbers) follow from the seed, so that runs can be
    repeated; the other keys (of links, and of owners and Comp) are drawn by the operating system. Whoever knows or
    finds the seed can undo masks and permutations: for secrecy, pass a seed of 64 bits or more, such as
    ``secrets.randbits(128)``.

    Args:
        seed: A non-negative integer of any size.
        group_sizes: Number of owners in each group, in the order of the arms.

    Raises:
        TypeError: An argument is no integer.
        ValueError: A number is out of its range, or there is no group.
    """
    require_integer("seed", seed, 0)
    require_integer("number of groups", len(group_sizes), 1)
    for place, size in enumerate(group_sizes):
        require_integer(f"group_sizes[{place}]", size, 1)
    sizes = {f"owner-{place}": int(size) for place, size in enumerate(group_sizes)}
    owners = iter(owner_keys(seed, sum(group_sizes)))
    cipher = os.urandom(KEY_BYTES)
    secrets: dict[str, dict[str, bytes]] = {
        "customer": {},
        "comp": {"cipher": cipher, "choice": derive_key(seed, "choice")},
        **{name: {"cipher": cipher} for name in sizes},
    }
    controller_links: dict[str, tuple[bytes, bytes]] = {}
    keyrings = {}
    for name, own in secrets.items():
        sending, receiving = os.urandom(KEY_BYTES), os.urandom(KEY_BYTES)
        controller_links[name] = sending, receiving
        held = tuple(next(owners) for _ in range(sizes.get(name, 0)))
        keyrings[name] = Keyring(name, sizes, {"controller": (receiving, sending)}, own, held)
    permuting = {
        "permutation": derive_key(seed, "permutation"),
        "common_score": derive_key(seed, "common score"),
        "coin": derive_key(seed, "coin"),
    }
    return {**keyrings, "controller": Keyring("controller", sizes, controller_links, permuting)}
