"""The decorators with which Numba compiles all kernels, and processor instructions that Numba lacks."""

from collections.abc import Callable
from functools import partial
from typing import Any

from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

kernel: Callable[..., Any] = partial(
    njit,
    cache=True,
    # Kernels release the GIL, so that Python threads can step different replicas in parallel. Numba's own threads are
    # not used. Depending on their threading layer they abort the process after a fork (vector environments fork), or
    # when two Python threads step at once.
    nogil=True,
    # Kernels are called from Python and by each other, never through a pointer to a C function. Without the wrapper for
    # such pointers compilation takes a tenth less time.
    no_cfunc_wrapper=True,
    # Kernels do not count references to arrays, since whoever calls a kernel keeps its arrays alive. What would count
    # them need not be compiled either.
    _nrt=False,
    # Division by zero yields inf or NaN instead of a branch that forbids vector instructions.
    error_model="numpy",
    # Only the sign of zeros may change ("nsz"); sums keep the order in which they are written. If the compiler could
    # reorder them, their last bit would depend on the width of the processor's vector registers, and on the addresses
    # of arrays, since loops are not reordered when their arrays overlap. Sums where speed matters are written four
    # terms at a time instead.
    fastmath={"nsz"},
)
"""Compiles a function to machine code, cached on disk.

The function may take views of arrays, such as slices, but must not make arrays: Numba refuses to compile one that does.
Kernels of a first step compare numbers in place of calling ``max``, ``min`` or ``int``, which Numba compiles once for
each kind of kernel.
"""

allocating_kernel: Callable[..., Any] = partial(kernel, _nrt=True)
"""Compiles a kernel that makes arrays, or calls a kernel that returns one."""


inner_kernel: Callable[..., Any] = partial(kernel, no_cpython_wrapper=True)
"""Compiles a kernel that only kernels call: it has no wrapper for calls from Python, which would end the process."""

inlined_kernel: Callable[..., Any] = partial(inner_kernel, forceinline=True)
"""Compiles an inner kernel that LLVM copies into each kernel that calls it, for small ones in loops."""

LANES = 32
"""Number of 16-bit integers that are compared at once."""

_instruction: Callable[[Callable[..., Any]], Callable[..., Any]] = intrinsic


@_instruction
def ones(context: Any, bits: Any) -> Any:
    """Returns the number of ones among the bits of a uint32."""
    return types.int32(types.uint32), lambda _context, builder, _signature, args: builder.ctpop(args[0])


@_instruction
def fetch(context: Any, address: Any) -> Any:
    """Prefetches the cache line at an address that will be read soon."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer, word = builder.inttoptr(args[0], ir.IntType(8).as_pointer()), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [pointer.type, word, word, word])
        prefetch = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
        builder.call(prefetch, [pointer, word(0), word(3), word(1)])
        return context.get_dummy_value()

    return types.void(types.int64), generate


def _compare(sign: str) -> Callable[..., Any]:
    """Returns an intrinsic that compares an int16 with the :data:`LANES` int16 numbers at a memory address.

    The intrinsic returns a uint32 with one bit for each comparison; ``sign`` is the comparison, such as ``">"``.
    """

    def signature(context: Any, number: Any, address: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            vector = ir.VectorType(ir.IntType(16), LANES)
            undefined = ir.Constant(vector, ir.Undefined)
            everywhere = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
            first = builder.insert_element(undefined, args[0], ir.IntType(32)(0))
            number = builder.shuffle_vector(first, undefined, everywhere)
            others = builder.load(builder.inttoptr(args[1], vector.as_pointer()), align=2)
            return builder.bitcast(builder.icmp_signed(sign, number, others), ir.IntType(LANES))

        return types.uint32(types.int16, types.int64), generate

    return _instruction(signature)


greater, equal = _compare(">"), _compare("==")
