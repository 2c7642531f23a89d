"""Key files: what is written is read again, and what has an entry too few, too many or of another kind is refused."""

import json
import re

import pytest

from fedbandit_envs.samba.keys import Keyring, deal_keys, issue_certificates

RINGS = issue_certificates(deal_keys(3, [1, 11]))


@pytest.mark.parametrize("role", RINGS)
def test_keys_are_read_as_they_were_written(tmp_path, role):
    path = tmp_path / "keys.json"
    RINGS[role].save(path)
    assert Keyring.load(path, role) == RINGS[role]
    # Another program may have written the entries in another order.
    path.write_text(json.dumps(json.loads(path.read_text()), sort_keys=True))
    loaded = Keyring.load(path, role)
    assert list(loaded.group_sizes) == ["owner-0", "owner-1"]
    assert loaded == RINGS[role]


def places(entry, here=()):
    """All paths into a document, each as a tuple of names and indices."""
    yield here
    inside = entry.items() if isinstance(entry, dict) else enumerate(entry) if isinstance(entry, list) else ()
    for name, one in inside:
        yield from places(one, (*here, name))


def spoilt(whole, place, way):
    """The document with one entry left out, replaced, or with another entry beside it."""
    changed = json.loads(json.dumps(whole))
    *outer, last = place
    holder = changed
    for name in outer:
        holder = holder[name]
    if way == "missing":
        del holder[last]
    elif way == "extra":
        holder.update({"extra": 1}) if isinstance(holder, dict) else holder.append(holder[-1])
    else:
        holder[last] = way
    return changed


WAYS = ("missing", "extra", 7, -1.5, True, "zz", "ab" * 31, [], {}, [[]], {"a": []}, None)

# Without a certificate there is no TLS, and other groups may have any size; a plan for another number is refused.
UNNOTICED = [
    (("certificate",), None),
    *(
        (("group_sizes", "owner-0"), 7),
        (("group_sizes", "owner-1"), 7),
        (("group_sizes", "owner-1"), "missing"),
    ),
]


@pytest.mark.parametrize("role", ["comp", "controller", "owner-0"])
def test_a_wrong_entry_is_named(tmp_path, role):
    path = tmp_path / "keys.json"
    RINGS[role].save(path)
    whole = json.loads(path.read_text())
    tried = 0
    for place in list(places(whole))[1:]:
        for way in WAYS:
            changed = spoilt(whole, place, way)
            if changed == whole or (place, way) in UNNOTICED:
                continue
            path.write_text(json.dumps(changed))
            with pytest.raises(ValueError, match=re.escape(f"{path} is no key file of {role}: ")) as caught:
                Keyring.load(path, role)
            said = str(caught.value).replace(str(path), "")
            assert "Error(" not in said
            assert any(str(name) in said for name in place) or (way == "extra" and "extra" in said), (
                place,
                said,
            )
            tried += 1
    assert tried > 100
    for content in (b"", b"7", b"[]", b"null", json.dumps(whole).encode()[:-9], b"[" * 100_000):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=re.escape(f"{path} is no key file of {role}: ")):
            Keyring.load(path, role)
