"""Instructions that processors have and Numba has no word for.

Addresses are handed over as numbers: compiled code would count who refers to an array, which takes longer than what is
done here. Nothing looks whether they are right.
"""

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

LANES = 32
"""Numbers of 16 bits that are compared at once."""

_instruction: Callable[[Callable[..., Any]], Callable[..., Any]] = intrinsic


@_instruction
def to_bits(context: Any, number: Any) -> Any:
    """Reads a float32 as uint32."""
    return types.uint32(types.float32), lambda _context, builder, _signature, args: builder.bitcast(
        args[0], ir.IntType(32)
    )


@_instruction
def from_bits(context: Any, bits: Any) -> Any:
    """Reads a uint32 as float32."""
    return types.float32(types.uint32), lambda _context, builder, _signature, args: builder.bitcast(
        args[0], ir.FloatType()
    )


@_instruction
def ones(context: Any, bits: Any) -> Any:
    """Counts the ones among the bits of a uint32."""
    return types.int32(types.uint32), lambda _context, builder, _signature, args: builder.ctpop(args[0])


@_instruction
def fetch(context: Any, address: Any) -> Any:
    """Asks for the line of the cache at an address, which will be read soon."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer, word = builder.inttoptr(args[0], ir.IntType(8).as_pointer()), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [pointer.type, word, word, word])
        prefetch = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
        builder.call(prefetch, [pointer, word(0), word(3), word(1)])
        return context.get_dummy_value()

    return types.void(types.int64), generate


def _compare(sign: str) -> Callable[..., Any]:
    """Makes an instruction that compares a number with :data:`LANES` others at an address: one bit each, uint32."""

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
