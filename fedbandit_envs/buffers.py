"""Arrays that a layer fills round by round, what others get to see of them, and what they take of it."""

from collections.abc import Callable, Mapping
from operator import is_
from typing import Generic, TypeVar

from fedbandit_envs.arrays import Array, Arrays

Cut = TypeVar("Cut")


class Buffers:
    """Arrays by name, and read-only views of them, which show whatever is written to the arrays.

    Views are made once, and made anew where the buffers are copied or unpickled: a copied view would show nothing.

    Attributes:
        arrays: To be filled, in place.
        views: To be handed out, in a dict of one's own.
    """

    def __init__(self, arrays: Arrays) -> None:
        """Makes views of ``arrays``."""
        self._take(arrays)

    def _take(self, arrays: Arrays) -> None:
        self.arrays = arrays
        self.views: Arrays = {}
        for name, array in arrays.items():
            self.views[name] = array.view()
            self.views[name].flags.writeable = False

    def __getstate__(self) -> Arrays:
        return self.arrays

    def __setstate__(self, arrays: Arrays) -> None:
        self._take(arrays)


class Parts(Generic[Cut]):
    """Views of parts of arrays that come again round after round: made once, and anew where other arrays come.

    Where they are copied or unpickled they are forgotten: a copied view would show nothing.
    """

    def __init__(self, cut: Callable[[Mapping[str, Array]], Cut]) -> None:
        """Chooses which parts.

        Args:
            cut: Makes them of arrays by name: views, in dicts and lists that nobody writes to.
        """
        self._begin(cut)

    def _begin(self, cut: Callable[[Mapping[str, Array]], Cut]) -> None:
        self._cut = cut
        self._names: tuple[str, ...] | None = None
        self._arrays: tuple[Array, ...] = ()

    def of(self, arrays: Mapping[str, Array]) -> Cut:
        """Returns the parts: the same objects as long as the same arrays come, under the same names."""
        if tuple(arrays) != self._names or not all(map(is_, arrays.values(), self._arrays)):
            self._names, self._arrays = tuple(arrays), tuple(arrays.values())
            self._parts = self._cut(arrays)
        return self._parts

    def __getstate__(self) -> Callable[[Mapping[str, Array]], Cut]:
        return self._cut

    def __setstate__(self, cut: Callable[[Mapping[str, Array]], Cut]) -> None:
        self._begin(cut)
