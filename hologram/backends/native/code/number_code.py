"""Native code that decides whether a program takes the numbers of an expression, and computes the integers that it needs of them.

The numbers are the first registers. Each instruction, an opcode and two words, computes one register more, or requires something of registers.
"""

from __future__ import annotations

from hologram.backends.native.code.expression_records import NumberCode
from hologram.backends.native_lang.language import Array, exported, i64, native

Words = Array[i64]

CONSTANT, ADD, MULTIPLY, QUOTIENT, REMAINDER, EQUAL, AT_LEAST = 0, 1, 2, 3, 4, 5, 6
MAX_REGISTERS = 1024
MAX_FACTOR = 1 << 31  # beyond which products might not be exact


@native
def is_factor(x: i64) -> i64:
    return 1 if x <= MAX_FACTOR and x >= -MAX_FACTOR else 0


@native
def floor_quotient(a: i64, b: i64) -> i64:
    """``a`` divided by a positive ``b``, rounded down."""
    return a // b if a >= 0 else -((b - 1 - a) // b)


@native
def decide(program: NumberCode, registers: Array[i64]) -> i64:
    """Fills the registers behind the numbers; zero where the program does not take them, or it is not known whether it does."""
    n = program.n_numbers
    at = 0
    while at < program.n_code:
        op = program.code[at]
        a = program.code[at + 1]
        b = program.code[at + 2]
        at += 3
        if op == EQUAL:
            if registers[a] != registers[b]:
                return 0
        elif op == AT_LEAST:
            if registers[a] < registers[b]:
                return 0
        else:
            if op == CONSTANT:
                registers[n] = a
            elif op == ADD:
                registers[n] = registers[a] + registers[b]
            elif op == MULTIPLY:
                if is_factor(registers[a]) == 0 or is_factor(registers[b]) == 0:
                    return 0
                registers[n] = registers[a] * registers[b]
            else:
                if registers[b] <= 0:
                    return 0
                quotient = floor_quotient(registers[a], registers[b])
                registers[n] = quotient if op == QUOTIENT else registers[a] - quotient * registers[b]
            n += 1
    return 1


@exported
def number_code_decide(program: NumberCode, registers: Array[i64]) -> i64:
    """As :func:`decide`, for Python."""
    return decide(program, registers)
