"""Arrays that a layer fills round by round, and what others get to see of them."""

from typing import Any

import numpy.typing as npt

Arrays = dict[str, npt.NDArray[Any]]


class Buffers:
    """Arrays by name, and read-only views of them, which show whatever is written to the arrays.

    Views are made once, and made anew where the buffers are copied or unpickled: a copied view would show nothing.

    Attributes:
        arrays: To be filled, in place.
        views: To be handed out, in a dict of one's own.
    """

    def __init__(self, arrays: Arrays) -> None:
        """Makes views of ``arrays``."""
        self.arrays = arrays
        self.views = {}
        for name, array in arrays.items():
            self.views[name] = array.view()
            self.views[name].flags.writeable = False

    def __getstate__(self) -> Arrays:
        return self.arrays

    def __setstate__(self, arrays: Arrays) -> None:
        self.__init__(arrays)  # type: ignore[misc]
