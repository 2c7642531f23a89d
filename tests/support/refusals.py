"""Tests of what is refused, from a table of errors."""

import pytest


def refusals(make, *cases, error=None):
    """Returns a test of what ``make`` raises, case by case: ``(*given, error, message)``.

    Messages are regular expressions. One error said for all is in no case.
    """

    @pytest.mark.parametrize("case", cases)
    def test(case):
        *given, kind, message = case if error is None else (*case[:-1], error, case[-1])
        with pytest.raises(kind, match=message):
            make(*given)

    return test
