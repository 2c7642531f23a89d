"""What digests are taken of: JSON in one form, whatever wrote it."""

import hashlib
import json
from typing import Any


def canonical(value: Any) -> str:
    """Returns JSON with sorted keys and no blanks; numbers as Python writes them, which gives them back bit for bit.

    Raises:
        ValueError: A number is not finite: JSON has no infinity.
        TypeError: JSON cannot have the value.
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def digest_of(value: Any) -> str:
    """Returns the SHA-256 of :func:`canonical`, in hexadecimal."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()
