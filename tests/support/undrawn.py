"""Conformance checks without those of pictures, where pictures are drawn by code that another test draws with."""

from contextlib import contextmanager

import pytest

from fedbandit_envs.testing import federation
from fedbandit_envs.testing.api import check_rendering


@contextmanager
def undrawn():
    """Leaves the check of pictures out of those that a federation or a wrapped one must pass."""
    checks = [check for check in federation.CHECKS if check is not check_rendering]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(federation, "CHECKS", checks)
        yield
