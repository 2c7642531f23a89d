"""Who holds which keys. They are dealt once, before a run, and are for that run alone."""

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from fedbandit_envs.arms.masks import OwnerKeys, Purpose, derive_key, owner_keys
from fedbandit_envs.checks import require_integer
from fedbandit_envs.wrappers.secure.link import LinkKeys

_KEY_BYTES = 32


class Certificate(NamedTuple):
    """What a role shows, and trusts, on links that leave the machine; texts in PEM.

    Attributes:
        authority: Certificate that all roles' certificates are signed with; its key is thrown away.
        own: The role's certificate, in the role's name.
        key: Its private key.
    """

    authority: str
    own: str
    key: str


@dataclass(frozen=True)
class Keyring:
    """All that one role holds.

    Attributes:
        role: Its name: ``customer``, ``controller``, ``comp``, or ``owner-0``, ``owner-1``, ...
        houses: How many owners each owners' role has, in the order of the arms.
        links: Keys of its links by the peer's name.
        secrets: Keys of its own by purpose. Comp: ``cipher``, ``choice``; Controller: ``permutation``,
            ``common_score``, ``coin``; owners: ``cipher``.
        owners: Keys of its owners.
        certificate: For links under TLS, or None.
    """

    role: str
    houses: dict[str, int]
    links: dict[str, LinkKeys]
    secrets: dict[str, bytes]
    owners: tuple[OwnerKeys, ...] = ()
    certificate: Certificate | None = None

    @property
    def arms(self) -> int:
        """Number of owners in all, K."""
        return sum(self.houses.values())

    def save(self, path: Path) -> None:
        """Writes a file that nobody but its owner can read.

        Raises:
            OSError: It cannot be written, or is there already.
        """
        text = json.dumps(
            {
                "role": self.role,
                "houses": self.houses,
                "links": {peer: [key.hex() for key in keys] for peer, keys in self.links.items()},
                "secrets": {purpose: key.hex() for purpose, key in self.secrets.items()},
                "owners": [[key.hex() for key in keys] for keys in self.owners],
                "certificate": self.certificate,
            },
            indent=1,
        )
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(text)

    @classmethod
    def take(cls, path: Path, role: str) -> "Keyring":
        """Reads a role's file and removes it: keys are for one run, and frames of one must not pass in another.

        Raises:
            OSError: It cannot be read or removed.
            ValueError: It is no key file, or another role's; it stays where it is.
        """
        text = path.read_text()
        try:
            parts: dict[str, Any] = json.loads(text)
            ring = cls(
                role=str(parts["role"]),
                houses={str(name): int(size) for name, size in parts["houses"].items()},
                links={peer: LinkKeys(*_keys(keys, 2)) for peer, keys in parts["links"].items()},
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
    if any(len(key) != _KEY_BYTES for key in keys) or (number is not None and len(keys) != number):
        raise ValueError(f"keys of {_KEY_BYTES} bytes are required")
    return keys


def deal(seed: int, houses: Sequence[int]) -> dict[str, Keyring]:
    """Deals the keys of a run.

    What decides on rewards (masks, permutations, luck) follows from the seed, so that runs repeat; keys of links and of
    owners and Comp are fresh from the operating system. Who knows or finds the seed undoes masks and permutations: a
    secret run takes one of 64 bits or more, such as ``secrets.randbits(128)``.

    Args:
        seed: A non-negative integer of any size.
        houses: How many owners each owners' role has, in the order of the arms.

    Returns:
        A keyring for each role, by name.

    Raises:
        TypeError: A number is none.
        ValueError: A number is out of its range.
    """
    require_integer("seed", seed, 0)
    require_integer("number of houses", len(houses), 1)
    for place, size in enumerate(houses):
        require_integer(f"houses[{place}]", size, 1)
    sizes = {f"owner-{place}": int(size) for place, size in enumerate(houses)}
    owners = iter(owner_keys(seed, sum(houses)))
    cipher = os.urandom(_KEY_BYTES)
    secrets: dict[str, dict[str, bytes]] = {
        "customer": {},
        "comp": {"cipher": cipher, "choice": derive_key(seed, Purpose.CHOICE)},
        **{name: {"cipher": cipher} for name in sizes},
    }
    ends: dict[str, LinkKeys] = {}
    rings = {}
    for name, own in secrets.items():
        there, back = os.urandom(_KEY_BYTES), os.urandom(_KEY_BYTES)
        ends[name] = LinkKeys(there, back)
        held = tuple(next(owners) for _ in range(sizes.get(name, 0)))
        rings[name] = Keyring(name, sizes, {"controller": LinkKeys(back, there)}, own, held)
    permuting = {
        "permutation": derive_key(seed, Purpose.PERMUTATION),
        "common_score": derive_key(seed, Purpose.COMMON_SCORE),
        "coin": derive_key(seed, Purpose.COIN),
    }
    return {**rings, "controller": Keyring("controller", sizes, ends, permuting)}
