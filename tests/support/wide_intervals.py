"""Privacy budgets that are composed a hundred times as coarsely, for tests that look at none of their digits."""

import pytest

from fedbandit_envs.wrappers.privacy.accounting import calibration, event


@pytest.fixture(scope="module")
def wide_intervals():
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"_INTERVAL": 1e-2, "_FEWEST_INTERVALS": 2_000, "_FEWEST_CURVED": 200}.items():
            patch.setattr(calibration, name, value)
        event._composed.cache_clear()
        yield
    event._composed.cache_clear()
