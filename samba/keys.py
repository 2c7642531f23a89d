"""Keys of one run: pseudorandom streams and their keys, keyrings of roles, and certificates.

The keys of streams follow from the run's seed, one key for each purpose, so that a run can be repeated wherever its
roles are. A role is given only the keys that it needs, from which the other keys cannot be computed. A stream is
SHAKE-256 of its key and a position: without the key it is indistinguishable from random numbers, and any position can
be computed without those before it. Keyrings are made and handed out before a run, and used in it only.
"""

import json
import os
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from hashlib import blake2b, shake_256
from itertools import accumulate, islice, pairwise
from pathlib import Path
from re import fullmatch
from tempfile import TemporaryDirectory
from typing import Any, Literal, NamedTuple

import numpy as np

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.basics.checks import require_choice, require_integer

KEY_BYTES = 32

KeyPurpose = Literal["mask", "permutation", "choice", "common score", "coin", "policy", "reward"]
"""The purpose of a key. Keys are computed from these names, which must never change, or runs could not be repeated."""


def derive_key(seed: int, purpose: KeyPurpose, *numbers: int) -> bytes:
    """Returns the key of 32 bytes that follows from a run's seed for one purpose.

    Args:
        seed: The run's seed, a non-negative integer of any size.
        purpose: The purpose of the key.
        *numbers: Non-negative integers below 2^64 that tell keys of the same purpose apart, such as the number of the
            owner.

    Raises:
        TypeError: ``seed`` is no integer.
        ValueError: ``seed`` is negative.
    """
    seed = require_integer("seed", seed, 0)
    secret = seed.to_bytes(max(1, (seed.bit_length() + 7) // 8), "little")
    if len(secret) > KEY_BYTES:
        secret = blake2b(secret, digest_size=KEY_BYTES).digest()
    place = b"".join(number.to_bytes(8, "little") for number in numbers)
    return blake2b(place, digest_size=KEY_BYTES, key=secret, person=purpose.encode()).digest()


class Keystream:
    """A pseudorandom stream: 64-bit words that depend only on the key, the round and the iteration.

    Words are computed for a block of rounds at once.

    Example:
        >>> stream = Keystream(bytes(32))
        >>> stream.uniform(7) == Keystream(bytes(32)).uniform(7)
        True
    """

    def __init__(self, key: bytes, width: int = 1) -> None:
        """Makes the stream of a key.

        Args:
            key: The key, 32 bytes.
            width: Number of words for each round and iteration.
        """
        self._key = key
        self._width = width
        self._rounds = max(1, (1 << 16) // (8 * width))
        self._blocks: dict[int, tuple[int, Array]] = {}

    def words(self, round_: int, iteration: int = 0) -> Array:
        """Returns the pseudorandom words of one round and iteration, uint64 ``(width,)``, read-only."""
        number, place = divmod(round_, self._rounds)
        held, block = self._blocks.get(iteration, (-1, None))
        if block is None or held != number:
            place_of_block = iteration.to_bytes(8, "little") + number.to_bytes(8, "little")
            drawn = shake_256(self._key + place_of_block).digest(8 * self._width * self._rounds)
            words = np.frombuffer(drawn, "<u8").reshape(self._rounds, self._width)
            block = self._prepare(words.astype(np.uint64, copy=False))
            block.flags.writeable = False
            self._blocks[iteration] = (number, block)
        return block[place]

    def uniform(self, round_: int, iteration: int = 0) -> float:
        """Returns the random number of one round and iteration, uniform on (0, 1) without the ends, with 52 bits."""
        return (int(self.words(round_, iteration)[0] >> np.uint64(12)) + 0.5) * 2.0**-52

    def _prepare(self, block: Array) -> Array:
        """Returns the values that :meth:`words` gives for a block of random words ``(rounds, width)``.

        Here these are the words themselves; a subclass may compute others from them.
        """
        return block


class Permutations(Keystream):
    """A pseudorandom stream of permutations of the owners, one for every round and iteration.

    The stream's ``width`` is the number of owners. The words of a round and iteration are the permutation, int64
    ``(owners,)``: place p of the permuted list holds the item of ``words[p]``.

    Example:
        >>> sorted(Permutations(bytes(32), width=4).words(round_=1).tolist())
        [0, 1, 2, 3]
    """

    def _prepare(self, block: Array) -> Array:
        # The last bits of each random word are replaced by an owner's number. Sorting the words, which differ in their
        # random first bits, then puts the owners' numbers into a random order.
        owners = block.shape[1]
        places = np.uint64((1 << owners.bit_length()) - 1)
        own = (block & ~places) | np.arange(owners, dtype=np.uint64)
        own.sort(axis=1)
        return (own & places).astype(np.int64)


class OwnerKeys(NamedTuple):
    """The keys of one owner's streams, 32 bytes each.

    Attributes:
        mask: The key of the masks by which scores are multiplied, the same for all owners.
        coin: The key of the random numbers that decide in which rounds to explore, the same for all owners and
            Controller.
        policy: The key of the random numbers in the owner's scores.
        reward: The key of the rewards of the owner's arm.
    """

    mask: bytes
    coin: bytes
    policy: bytes
    reward: bytes


def owner_keys(seed: int, owners: int) -> list[OwnerKeys]:
    """Returns the keys of every owner, in the order of arms; an owner's keys do not depend on the number of owners.

    Args:
        seed: The run's seed.
        owners: Number of owners, K.
    """
    mask, coin = derive_key(seed, "mask"), derive_key(seed, "coin")
    return [
        OwnerKeys(mask, coin, derive_key(seed, "policy", i), derive_key(seed, "reward", i))
        for i in range(owners)
    ]


MOST_OWNERS = 1 << 16
"""Largest number of owners in a run.

One key encrypts at most 2^32 items, of which there are two or more a round for every owner, so that a run with more
owners would have fewer than 2^15 rounds after the first pulls.
"""


class Certificate(NamedTuple):
    """A role's certificate and private key for mutual TLS on links that leave the machine, as texts in PEM.

    Attributes:
        trusted: The certificates of the role's peers.
        own: The role's certificate, issued to the role's name.
        key: The private key of that certificate.
    """

    trusted: str
    own: str
    key: str


@dataclass(frozen=True)
class Keyring:
    """All keys that one role holds.

    Attributes:
        role: The role's name: ``customer``, ``controller``, ``comp``, or ``owner-0``, ``owner-1``, ... for groups of
            owners.
        group_sizes: Number of owners in each group by the group's name, in the order of the arms.
        links: Two keys for each link of the role, by the peer's name: the key of frames to the peer, and the key of
            frames from the peer.
        secrets: The role's other keys by purpose. Comp has ``cipher`` and ``choice``; Controller has ``permutation``,
            ``common score`` and ``coin``; a group of owners has ``cipher``.
        owners: Keys of each owner in the group; empty for roles other than groups of owners.
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
    links: Mapping[str, tuple[bytes, ...]]
    secrets: Mapping[str, bytes]
    owners: tuple[OwnerKeys, ...] = ()
    certificate: Certificate | None = None

    @property
    def group_arms(self) -> dict[str, slice]:
        """The arms of each group of owners, as a slice of the list of all arms."""
        bounds = pairwise(accumulate(self.group_sizes.values(), initial=0))
        return {name: slice(*bound) for name, bound in zip(self.group_sizes, bounds, strict=True)}

    def save(self, path: Path) -> None:
        """Writes the keyring to a new file that only the current user can read.

        Raises:
            OSError: The file cannot be written, or exists already.
        """
        path.touch(mode=0o600, exist_ok=False)
        path.write_text(json.dumps(asdict(self), default=bytes.hex, indent=1))

    @classmethod
    def load(cls, path: Path, role: str) -> "Keyring":
        """Returns the keyring of a role from a file that :meth:`save` wrote.

        Whoever plays with the keys must remove the file as soon as a peer has accepted them, since keys must be used in
        one run only: in a second run under the same keys, recorded frames of the first run would be accepted.

        Args:
            path: Path of the file.
            role: Name of the role.

        Raises:
            OSError: The file cannot be read.
            ValueError: The file holds no keyring, or the keyring of another role; the message has the path and
                the entry that is missing, unknown or of another form.
        """
        try:
            parts = json.loads(path.read_bytes())
            require_choice("role", parts.get("role"), [role])
            groups = parts.get("group_sizes")
            size = len(groups) if isinstance(groups, dict) else 0
            rings = deal_keys(0, [groups.get(f"owner-{place}", 1) for place in range(size)] or [1])
            # New keys of the same role have the form that these must have.
            texts = None if parts.get("certificate") is None else Certificate("", "", "")
            ring = cls(**_like("the keyring", parts, vars(rings[role]) | {"certificate": texts}))
            if ring.certificate:
                tls_context(ring.certificate, server=False)
        except ssl.SSLError as error:
            raise ValueError(f"{path} is no key file of {role}: its certificate is wrong: {error}") from error
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise ValueError(f"{path} is no key file of {role}: {error}") from error
        return ring


def _like(name: str, found: Any, form: Any) -> Any:
    """Returns a part of a key file as it was before it was written, after a check that it has the form of another one.

    The message of an error names the part and shows nothing of it, since it is secret.
    """
    if isinstance(form, dict) and isinstance(found, dict):
        return {one: _like(f"{name}.{one}", found.get(one, ...), form.get(one, ...)) for one in form | found}
    if isinstance(form, tuple) and isinstance(found, list) and len(found) == len(form):
        held = [_like(f"{name}[{place}]", found[place], one) for place, one in enumerate(form)]
        return tuple(held) if type(form) is tuple else type(form)(*held)
    if isinstance(form, bytes) and isinstance(found, str) and fullmatch("[0-9a-f]{64}", found):
        return bytes.fromhex(found)
    if type(found) is not type(form):
        raise ValueError(f"{name} is missing, unknown, or of another form than samba-keys writes")
    return found


def deal_keys(seed: int, group_sizes: Sequence[int]) -> dict[str, Keyring]:
    """Returns new keyrings for all roles of a run, by the role's name.

    Keys that influence rewards (those of masks, permutations and random numbers) follow from the seed, so that runs can
    be repeated; the other keys (those of links, and the one that owners share with Comp) are drawn by the operating
    system. Whoever knows or finds the seed can undo masks and permutations: for secrecy, pass a random seed of 64 bits
    or more, such as ``secrets.randbits(128)``.

    Args:
        seed: A non-negative integer of any size.
        group_sizes: Number of owners in each group, in the order of the arms.

    Raises:
        TypeError: An argument is no integer.
        ValueError: The seed is negative, a group has no owner, there is no group, or there are more than
            :data:`MOST_OWNERS` owners.
    """
    sizes = {
        f"owner-{place}": require_integer(f"number of owners of owner-{place}", size, 1, MOST_OWNERS)
        for place, size in enumerate(group_sizes)
    }
    require_integer("number of owners", sum(sizes.values()), 1, MOST_OWNERS)
    owners = iter(owner_keys(seed, sum(sizes.values())))
    cipher = os.urandom(KEY_BYTES)
    secrets: dict[str, Mapping[str, bytes]] = {
        "customer": {},
        "comp": {"cipher": cipher, "choice": derive_key(seed, "choice")},
        **{name: {"cipher": cipher} for name in sizes},
    }
    links = {name: (os.urandom(KEY_BYTES), os.urandom(KEY_BYTES)) for name in secrets}
    keyrings = {}
    for name, own in secrets.items():
        held = tuple(islice(owners, sizes.get(name, 0)))
        keyrings[name] = Keyring(name, sizes, {"controller": links[name][::-1]}, own, held)
    purposes: tuple[KeyPurpose, ...] = ("permutation", "common score", "coin")
    permuting: dict[str, bytes] = {purpose: derive_key(seed, purpose) for purpose in purposes}
    return {**keyrings, "controller": Keyring("controller", sizes, links, permuting)}


def issue_certificates(keyrings: Mapping[str, Keyring]) -> dict[str, Keyring]:
    """Returns the keyrings of all roles with a certificate in each, which is valid for 30 days.

    Every role signs its own certificate, and trusts those of its peers alone.

    Args:
        keyrings: The keyrings of all roles of a run, by the role's name.

    Raises:
        ImportError: The ``[secure]`` extra is not installed.
    """
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    issued, secret, now = {}, {}, datetime.now(UTC)
    for role in keyrings:
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, role)])
        certificate = (
            x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
            .not_valid_before(now - timedelta(hours=1))  # clocks differ
            .not_valid_after(now + timedelta(days=30))
            .sign(key, hashes.SHA256())
        )
        issued[role] = certificate.public_bytes(Encoding.PEM).decode()
        secret[role] = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    certified = {}
    for role, ring in keyrings.items():
        own = Certificate("".join(issued[peer] for peer in ring.links), issued[role], secret[role])
        certified[role] = replace(ring, certificate=own)
    return certified


def tls_context(certificate: Certificate, server: bool) -> ssl.SSLContext:
    """Returns a TLS context in which both sides must present a certificate that the other side trusts.

    Host names are not checked, because a certificate is issued to a role, on whatever host the role runs. Which role it
    is proves the first frame, under the keys of the role's link.

    Args:
        certificate: The certificate of this side's role.
        server: Whether this side listens for connections; else it connects.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if server else ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(cadata=certificate.trusted)
    # The ssl module can read a private key and its certificate only from files, which are removed at once.
    with TemporaryDirectory() as folder:
        own, key = Path(folder, "certificate.pem"), Path(folder, "key.pem")
        own.write_text(certificate.own)
        key.write_text(certificate.key)
        context.load_cert_chain(own, key)
    return context
