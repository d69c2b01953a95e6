"""Native code of sorting: kernels that sort rows of unsigned keys, stably, smallest first.

Least significant digit radix sort (Knuth, The Art of Computer Programming, vol. 3, 5.2.5): digit by digit the keys are counted and moved, to and fro
between the two halves of the result; a digit that all keys share moves nothing. Short rows are sorted by insertion.

As every kernel these run rows [begin, end) of their parallel loop. ``args`` holds the addresses of the keys (rows, n) and of the result (rows, 2, n),
of which the second half is left over, then n, and for 64 bits the lowest bit that counts.
"""

from __future__ import annotations

from hologram.backends.cpu.runtime.language import Array, copy, exported, i64, native, offset, ptr, shift_right, u32, void

Words = Array[i64]
Halves = Array[u32]
Pointers = Array[ptr]

SHORT = 24  # rows up to this length are sorted by insertion
MANY = 4096  # from so many keys on digits have 11 bits, below 8: a row's cost includes that of its counters
SIGN = -(1 << 63)  # makes the signed comparison of two words that of unsigned ones


@native
def digit_bits(n: i64) -> i64:
    return 11 if n >= MANY else 8


@native
def clear(counts: Words, buckets: i64) -> void:
    for d in range(buckets):
        counts[d] = 0


@native
def to_starts(counts: Words, buckets: i64) -> void:
    """Numbers of keys by digit become the places where the first of each goes."""
    total = 0
    for d in range(buckets):
        here = counts[d]
        counts[d] = total
        total += here


# --- 32 bits ---------------------------------------------------------------------------------------------------------


@native
def insert_u32(keys: Halves, result: Halves, n: i64) -> void:
    for i in range(n):
        key = keys[i]
        j = i
        while j > 0 and result[j - 1] > key:
            result[j] = result[j - 1]
            j -= 1
        result[j] = key


@native
def radix_u32(keys: Halves, result: Halves, spare: Halves, n: i64, counts: Words) -> void:
    bits = digit_bits(n)
    buckets = 1 << bits
    passes = (32 + bits - 1) // bits
    source = keys
    target = result if passes & 1 != 0 else spare
    for k in range(passes):
        shift = k * bits
        clear(counts, buckets)
        for i in range(n):
            d = (source[i] >> shift) & (buckets - 1)
            counts[d] = counts[d] + 1
        if counts[(source[0] >> shift) & (buckets - 1)] == n:
            continue
        to_starts(counts, buckets)
        for i in range(n):
            key = source[i]
            d = (key >> shift) & (buckets - 1)
            place = counts[d]
            counts[d] = place + 1
            target[place] = key
        source = target
        target = spare if source is result else result
    if source is not result:
        copy(result, source, n * 4)


@exported
def sort_keys_uint32(args: ptr, begin: i64, end: i64, scratch: ptr) -> void:
    """Sorts uint32 keys."""
    n = Words(args)[2]
    for row in range(begin, end):
        keys = Halves(offset(Pointers(args)[0], row * n * 4))
        result = Halves(offset(Pointers(args)[1], row * n * 8))
        if n <= SHORT:
            insert_u32(keys, result, n)
        else:
            radix_u32(keys, result, Halves(offset(result, n * 4)), n, Words(scratch))


# --- 64 bits ---------------------------------------------------------------------------------------------------------


@native
def insert_u64(keys: Words, result: Words, n: i64, low: i64) -> void:
    for i in range(n):
        key = keys[i]
        j = i
        while j > 0 and (result[j - 1] ^ SIGN) >> low > (key ^ SIGN) >> low:
            result[j] = result[j - 1]
            j -= 1
        result[j] = key


@native
def radix_u64(keys: Words, result: Words, spare: Words, n: i64, low: i64, counts: Words) -> void:
    bits = digit_bits(n)
    buckets = 1 << bits
    passes = (64 - low + bits - 1) // bits
    source = keys
    target = result if passes & 1 != 0 else spare
    for k in range(passes):
        shift = low + k * bits
        clear(counts, buckets)
        for i in range(n):
            d = shift_right(source[i], shift) & (buckets - 1)
            counts[d] = counts[d] + 1
        if counts[shift_right(source[0], shift) & (buckets - 1)] == n:
            continue
        to_starts(counts, buckets)
        for i in range(n):
            key = source[i]
            d = shift_right(key, shift) & (buckets - 1)
            place = counts[d]
            counts[d] = place + 1
            target[place] = key
        source = target
        target = spare if source is result else result
    if source is not result:
        copy(result, source, n * 8)


@exported
def sort_keys_uint64(args: ptr, begin: i64, end: i64, scratch: ptr) -> void:
    """Sorts uint64 keys by their bits from a lowest one on."""
    n = Words(args)[2]
    low = Words(args)[3]
    for row in range(begin, end):
        keys = Words(offset(Pointers(args)[0], row * n * 8))
        result = Words(offset(Pointers(args)[1], row * n * 16))
        if n <= SHORT:
            insert_u64(keys, result, n, low)
        else:
            radix_u64(keys, result, Words(offset(result, n * 8)), n, low, Words(scratch))


# --- the order of 64 bits --------------------------------------------------------------------------------------------


@native
def insert_order(keys: Words, result: Words, n: i64) -> void:
    for i in range(n):
        key = keys[i] ^ SIGN
        j = i
        while j > 0 and (keys[result[j - 1]] ^ SIGN) > key:
            result[j] = result[j - 1]
            j -= 1
        result[j] = i


@native
def radix_order(keys: Words, result: Words, spare: Words, n: i64, counts: Words) -> void:
    bits = digit_bits(n)
    buckets = 1 << bits
    passes = (64 + bits - 1) // bits
    source = spare
    for i in range(n):
        source[i] = i
    target = result
    for k in range(passes):
        shift = k * bits
        clear(counts, buckets)
        for i in range(n):
            d = shift_right(keys[i], shift) & (buckets - 1)
            counts[d] = counts[d] + 1
        if counts[shift_right(keys[0], shift) & (buckets - 1)] == n:
            continue
        to_starts(counts, buckets)
        for i in range(n):
            at = source[i]
            d = shift_right(keys[at], shift) & (buckets - 1)
            place = counts[d]
            counts[d] = place + 1
            target[place] = at
        source = target
        target = spare if source is result else result
    if source is not result:
        copy(result, source, n * 8)


@exported
def order_keys_uint64(args: ptr, begin: i64, end: i64, scratch: ptr) -> void:
    """The indices that sort uint64 keys."""
    n = Words(args)[2]
    for row in range(begin, end):
        keys = Words(offset(Pointers(args)[0], row * n * 8))
        result = Words(offset(Pointers(args)[1], row * n * 16))
        if n <= SHORT:
            insert_order(keys, result, n)
        else:
            radix_order(keys, result, Words(offset(result, n * 8)), n, Words(scratch))
