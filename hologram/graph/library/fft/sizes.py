"""How Fourier transforms of a length are done: by which radices, in two halves, or as a convolution.

- A length whose prime factors are all radices is transformed pass by pass.
- A long one of these is n1 n2: transforms of length n1, twiddle factors, and transforms of length n2 (Bailey's four steps), so that each part stays
  in a core's cache and threads share the parts.
- Any other is a convolution of a length that has the right factors (Bluestein).
"""

from __future__ import annotations

from functools import cache
from math import prod

# Costs of passes of each radix, for one element, on the whole of vectors: measured in a first-level cache, radix 2 as 3.8. From 16 on registers are
# too few for all elements.
_PASS_COSTS = {
    2: 3.8, 3: 5.3, 4: 5.2, 5: 6.3, 6: 5.6, 7: 7.0, 8: 5.8, 9: 7.8, 10: 7.4, 11: 11.0, 12: 9.5, 13: 15.0, 14: 11.5, 15: 12.0, 16: 9.6,
}  # fmt: skip
RADICES = tuple(_PASS_COSTS)
_FARTHER = 1.0  # of any pass, where elements come from the next cache
PRIMES = (2, 3, 5, 7, 11, 13)
TRANSPOSE = 3.0  # of one element
LONG_BYTES = 2**18  # from which on a transform of one row is done in two halves
MIN_PART = 32  # of the two parts
MAX_UNEVEN = 8  # how much longer than the root of the length one of them may be


def pass_cost(radix: int) -> float:
    """What a pass costs for one element."""
    return _PASS_COSTS[radix] + _FARTHER


@cache
def is_smooth(n: int) -> bool:
    """Whether all prime factors are radices."""
    for p in PRIMES:
        while n % p == 0:
            n //= p
    return n == 1


@cache
def radices_of_lanes(n: int) -> tuple[float, tuple[int, ...]]:
    """The cost for one element, and the radices of the passes of a smooth length, where each pass runs over whole vectors."""
    if n == 1:
        return 0.0, ()
    found = (_extended(r, radices_of_lanes(n // r)) for r in RADICES if n % r == 0)
    return min(found, key=lambda item: item[0])


def _extended(r: int, rest: tuple[float, tuple[int, ...]]) -> tuple[float, tuple[int, ...]]:
    return pass_cost(r) + rest[0], (r, *rest[1])


def vectors(lanes: int, width: int) -> float:
    """How much more work vectors of up to ``width`` elements do for so many lanes than whole vectors would."""
    narrow = vector_width(lanes, width)
    return -(-lanes // narrow) * width / lanes


def vector_width(lanes: int, width: int) -> int:
    """The vectors, of up to ``width`` elements, for so many lanes."""
    return int(min(width, 1 << (lanes.bit_length() - 1)))


@cache
def radices_of_row(n: int, width: int, done: int = 1) -> tuple[float, tuple[int, ...]]:
    """The same for one row: the first pass has n/r lanes, each further one as many as those before have made."""
    left = n // done
    if left == 1:
        return 0.0, ()
    best: tuple[float, tuple[int, ...]] = (float("inf"), ())
    for r in RADICES:
        if left % r == 0:
            lanes = left // r if done == 1 else done
            cost = (pass_cost(r) + TRANSPOSE * (done == 1)) * vectors(lanes, width)
            rest = radices_of_row(n, width, done * r)
            best = min(best, (cost + rest[0], (r, *rest[1])), key=lambda item: item[0])
    return best


@cache
def parts(n: int) -> tuple[int, int] | None:
    """``(n1, n2)`` of a long smooth length: the parts nearest to its root; None where there are none."""
    for n1 in range(int(n**0.5), MIN_PART - 1, -1):
        if n % n1 == 0:
            return n // n1, n1
    return None


def is_long(n: int, itemsize: int) -> bool:
    """Whether a row of ``n`` complex numbers, with parts of ``itemsize`` bytes, or the convolution that it becomes, is transformed in two halves."""
    m = smooth_length(n)
    found = parts(m) if 2 * m * itemsize >= LONG_BYTES else None
    return found is not None and found[0] <= m**0.5 * MAX_UNEVEN


def smooth_length(n: int) -> int:
    """The length of the transforms, all passes of which have radices, that one of ``n`` elements is made of."""
    return n if is_smooth(n) else convolution_length(n)


@cache
def convolution_length(n: int) -> int:
    """The length of the convolution that a transform of ``n`` elements, which is not smooth, becomes: the cheapest smooth one from 2n - 1 on."""
    least, power = 2 * n - 1, 1 << (2 * n - 2).bit_length()
    found = [power]
    for odd in (3, 5, 7, 9, 11, 15):
        if odd < power:
            found.append(odd << max(0, -(-least // odd) - 1).bit_length())
    return min((m for m in found if m >= least), key=lambda m: m * radices_of_lanes(m)[0])


def work_elements(name: str, shape: tuple[int, ...], axes: tuple[int, ...], n: int, itemsize: int) -> int:
    """The complex numbers for which a transform of an array takes memory besides its operand and result: ``irfft``, to ``n`` elements, along several
    axes, and long rows."""
    last, found, rows = len(shape) - 1, 0, prod(shape[:-1])
    if name == "irfft" and axes[-1] != last:
        rows = rows // shape[axes[-1]] * n
    if name == "rfft" and axes[-1] != last:
        rows = rows // shape[axes[-1]] * (shape[axes[-1]] // 2 + 1)
    if last in axes:
        is_real = name != "fft" and axes[-1] == last
        length = n if is_real and name == "irfft" else shape[-1]
        count = length // 2 if is_real and length % 2 == 0 else length
        if is_long(count, itemsize):
            found = (1 if is_smooth(count) and not is_real else 2) * rows * smooth_length(count)
    return found + (prod(shape) if name == "irfft" and len(axes) > 1 else 0)
