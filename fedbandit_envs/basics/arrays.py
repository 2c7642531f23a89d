"""Types for annotations: a NumPy array, and a dict of arrays by name. Docstrings give shapes and units."""

from typing import Any

import numpy.typing as npt

Array = npt.NDArray[Any]
Arrays = dict[str, Array]
