"""Native code that converts Python numbers to elements of arrays."""

from __future__ import annotations

from hologram.backends.native.code.capi import PyFloat_AsDouble, PyLong_AsLongLong
from hologram.backends.native.code.heap import storage_unwritten
from hologram.backends.native.code.records import Object, Storage, process

# None is the null pointer.
# mypy: disable-error-code="return-value"
from hologram.backends.native_lang.language import Array, exported, f32, f64, float_bits, i64, native, ptr, shift_right, to_float, void
from hologram.dtypes import DType, FloatFormat

Words, Pointers, Doubles, Singles = Array[i64], Array[ptr], Array[f64], Array[f32]

# formats of converted Python scalars, beside those of narrow floats; an integer of any width is the low bytes of a word
AS_INTEGER, AS_DOUBLE, AS_SINGLE = range(3)
EXACT_IN_DOUBLE = 1 << 53


def narrow_format(f: FloatFormat) -> int:
    """The word for a narrow float, from its lowest byte up: its bits, fraction bits, least exponent without its sign, pattern of what is beyond."""
    return f.bits | f.fraction_bits << 8 | -f.least_exponent << 16 | f.beyond << 32


def format_of(d: DType) -> int:
    """The word for elements of type ``d``; -1 for complex numbers, which are not converted."""
    if d.is_complex:
        return -1
    if d.is_narrow_float:
        return narrow_format(d.format)
    return AS_INTEGER if d.kind in "biu" else AS_DOUBLE if d.itemsize == 8 else AS_SINGLE


@native
def round_double(x: f64, mantissa: i64, lowest: i64) -> i64:
    """A finite double's sign-less value in units of a narrow binary format, rounded to even: mantissa | exponent << mantissa.

    ``mantissa`` counts stored bits, ``lowest`` is the exponent of its smallest normal number.
    """
    bits = float_bits(x)
    exponent = (shift_right(bits, 52) & 0x7FF) - 1023
    significand = (bits & 0xFFFFFFFFFFFFF) | (1 << 52)
    biased = exponent - lowest + 1
    drop = 52 - mantissa
    if biased < 1:
        drop = drop + 1 - biased
        biased = 1
    if drop > 54:
        return 0
    kept = shift_right(significand, drop)
    rest = significand & ((1 << drop) - 1)
    half = 1 << (drop - 1)
    if rest > half or (rest == half and kept & 1 != 0):
        kept += 1
    return kept + ((biased - 1) << mantissa)


@native
def narrow_float(x: f64, form: i64) -> i64:
    """The bits of x as a narrow float, by the word of :func:`narrow_format`. What is beyond the range gives infinity, or NaN."""
    bits = float_bits(x)
    sign = shift_right(bits, 63) << ((form & 0xFF) - 1)
    mantissa = shift_right(form, 8) & 0xFF
    beyond = shift_right(form, 32)
    magnitude = bits & 0x7FFFFFFFFFFFFFFF
    if magnitude > 0x7FF0000000000000:
        return sign | beyond | (1 << (mantissa - 1))
    if magnitude == 0x7FF0000000000000:
        return sign | beyond
    narrow = round_double(x, mantissa, -(shift_right(form, 16) & 0xFFFF))
    return sign | (beyond if narrow > beyond else narrow)


@native
def put_float(cell: ptr, x: f64, form: i64) -> void:
    if form == AS_DOUBLE:
        Doubles(cell)[0] = x
    elif form == AS_SINGLE:
        Singles(cell)[0] = x
    else:
        Words(cell)[0] = narrow_float(x, form)


@native
def put_integer(cell: ptr, n: i64, form: i64) -> i64:
    """Zero if the integer has no exact double to convert."""
    if form == AS_INTEGER:
        Words(cell)[0] = n
    elif n > EXACT_IN_DOUBLE or n < -EXACT_IN_DOUBLE:
        return 0
    else:
        put_float(cell, to_float(n), form)
    return 1


@exported
def storage_of_number(module: ptr, args: Array[ptr], nargs: i64) -> Storage:
    """METH_FASTCALL (aval of one element, float or int, format): a Storage with the number, which the format must hold."""
    made = storage_unwritten(args[0], 0)
    if made is None:
        return None
    form = PyLong_AsLongLong(args[2])
    if Object(args[1]).type == process.float_type:
        put_float(made.data, PyFloat_AsDouble(args[1]), form)
    else:
        put_integer(made.data, PyLong_AsLongLong(args[1]), form)
    return made
