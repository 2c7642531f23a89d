"""Processor instructions that Numba does not offer, as intrinsics for compiled code.

Memory addresses are passed as integers, since Numba's reference counting of arrays would take longer than the
instructions. Addresses are not checked.
"""

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

LANES = 32
"""Number of 16-bit integers that are compared at once."""

_instruction: Callable[[Callable[..., Any]], Callable[..., Any]] = intrinsic


@_instruction
def to_bits(context: Any, number: Any) -> Any:
    """Returns the bits of a float32 as uint32."""
    return types.uint32(types.float32), lambda _context, builder, _signature, args: builder.bitcast(
        args[0], ir.IntType(32)
    )


@_instruction
def from_bits(context: Any, bits: Any) -> Any:
    """Returns the float32 with the bits of a uint32."""
    return types.float32(types.uint32), lambda _context, builder, _signature, args: builder.bitcast(
        args[0], ir.FloatType()
    )


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
