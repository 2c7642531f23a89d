"""The decorators with which Numba compiles all kernels of this package, and what happens while it does."""

import gc
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from multiprocessing import parent_process
from typing import Any, ClassVar

from numba import njit
from numba.core.event import Event, Listener, register
from numba.core.registry import CPUDispatcher

kernel: Callable[..., Any] = partial(
    njit,
    cache=True,
    # Kernels release the GIL, so that Python threads can step different replicas in parallel. Numba's own threads are
    # not used: they abort the process after a fork (vector environments fork) or when two Python threads step at once,
    # depending on Numba's threading layer.
    nogil=True,
    # Kernels are called from Python and by each other, never through a pointer to a C function, which takes a tenth of
    # the time to compile.
    no_cfunc_wrapper=True,
    # Kernels count no references to arrays, since their callers keep all arrays alive. Counting takes another tenth.
    _nrt=False,
    # Division by zero yields inf instead of a branch that forbids vector instructions.
    error_model="numpy",
    # Only the sign of zeros may change ("nsz"); sums keep the order in which they are written. If the compiler could
    # reorder them, their last bit would depend on the width of the processor's vector registers and, since loops whose
    # arrays might overlap are not reordered, on the addresses of arrays. Sums where speed matters are written four
    # terms at a time instead.
    fastmath={"nsz"},
)
"""Compiles a function of arrays to machine code, cached on disk. The function must not make arrays."""

allocating_kernel: Callable[..., Any] = partial(kernel, _nrt=True)
"""Compiles a kernel that makes arrays, or is given arrays that other kernels made."""


class _InnerKernel(CPUDispatcher):
    """A compiled function that kernels call and Python cannot call."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Raises a TypeError, instead of jumping to code that was not compiled, which would end the process."""
        raise TypeError(
            f"{self.py_func.__name__} can be called by kernels only; define a kernel that calls it"
        )


def inner_kernel(function: Callable[..., Any], **options: Any) -> Any:
    """Compiles a kernel that only kernels call: nothing is compiled that takes its arguments from Python's objects."""
    compiled = kernel(function, no_cpython_wrapper=True, **options)
    compiled.__class__ = _InnerKernel
    return compiled


inlined_kernel: Callable[..., Any] = partial(inner_kernel, forceinline=True)
"""Compiles an inner kernel that becomes a part of each kernel that calls it."""


class _Notice(Listener):
    """Says on a terminal, once in a process, that kernels are being compiled, and pauses garbage collection meanwhile.

    Numba notifies it of each function that it compiles, and neither of calls nor of functions that it finds in a cache.
    Worker processes say nothing, since each of them would. The compiler makes hundreds of thousands of objects that
    are in use until it is done: the garbage collector would look through them again and again, an eighth of the time.
    """

    _given = False
    _collected: ClassVar[list[bool]] = []

    def on_start(self, event: Event) -> None:
        """Pauses the garbage collector; gives the notice if it was not given yet and the kernel is of this package.

        Numba holds the compiler's lock meanwhile, and compiles the functions that a function calls before it is done.
        """
        self._collected.append(gc.isenabled())
        gc.disable()
        function = event.data["dispatcher"].py_func
        if self._given or not function.__module__.startswith("fedbandit_envs.") or parent_process():
            return
        # A program without a console has no stream, and a terminal may have gone.
        with suppress(AttributeError, OSError, ValueError):
            if sys.stderr.isatty():
                self._given = True
                sys.stderr.write("fedbandit-envs: compiling kernels (once; later runs start at once)\n")

    def on_end(self, event: Event) -> None:
        """Goes on collecting garbage if that was so when the function began to be compiled, also behind an error."""
        if self._collected.pop():
            gc.enable()


register("numba:compile", _Notice())
