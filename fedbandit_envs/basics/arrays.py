"""Types of arrays for annotations; docstrings give shapes and units."""

from typing import Any

import numpy.typing as npt

Array = npt.NDArray[Any]
Arrays = dict[str, Array]
