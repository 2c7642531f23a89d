"""What arrays are called in annotations; docstrings say their shapes and units."""

from typing import Any

import numpy.typing as npt

Array = npt.NDArray[Any]
Arrays = dict[str, Array]
