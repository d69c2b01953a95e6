"""Native code of sorting: kernels that sort rows of unsigned keys, stably, smallest first.

Least significant digit radix sort (Knuth, The Art of Computer Programming, vol. 3, 5.2.5): digit by digit the keys are counted and moved, to and fro
between the two halves of the result; a digit that all keys share moves nothing. Short rows are sorted by insertion.

One insertion and one radix pass serve all kernels, copied into each with its constants: ``size`` is the bytes of an item, and ``order`` is 1
where what is moved are the indices of 64-bit keys in place of the keys.

As every kernel these run rows [begin, end) of their parallel loop. ``args`` holds the addresses of the keys (rows, n) and of the result (rows, 2, n),
of which the second half is left over, then n, and for keys the lowest bit that counts.
"""

from __future__ import annotations

from hologram.backends.native_lang.language import Array, copy, exported, i64, inlined, native, offset, ptr, shift_right, u8, u16, u32, void

Words = Array[i64]
Halves = Array[u32]
Quarters = Array[u16]
Bytes = Array[u8]
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
    """Numbers of keys by digit become the indices where the first of each goes."""
    total = 0
    for d in range(buckets):
        here = counts[d]
        counts[d] = total
        total += here


@inlined
def load(items: ptr, i: i64, size: i64) -> i64:
    if size == 1:
        return Bytes(items)[i]
    if size == 2:
        return Quarters(items)[i]
    if size == 4:
        return Halves(items)[i]
    return Words(items)[i]


@inlined
def store(items: ptr, i: i64, item: i64, size: i64) -> void:
    if size == 1:
        Bytes(items)[i] = item
    elif size == 2:
        Quarters(items)[i] = item
    elif size == 4:
        Halves(items)[i] = item
    else:
        Words(items)[i] = item


@inlined
def key_of(item: i64, keys: ptr, order: i64) -> i64:
    if order != 0:
        return Words(keys)[item]
    return item


@inlined
def insert(keys: ptr, result: ptr, n: i64, low: i64, size: i64, order: i64) -> void:
    """Sorts by the keys' bits from ``low`` on."""
    for i in range(n):
        item = i
        if order == 0:
            item = load(keys, i, size)
        rank = (key_of(item, keys, order) ^ SIGN) >> low
        j = i
        while j > 0 and (key_of(load(result, j - 1, size), keys, order) ^ SIGN) >> low > rank:
            store(result, j, load(result, j - 1, size), size)
            j -= 1
        store(result, j, item, size)


@inlined
def radix(keys: ptr, result: ptr, spare: ptr, n: i64, low: i64, size: i64, order: i64, counts: Words) -> void:
    """Sorts by the keys' bits from ``low`` on."""
    bits = digit_bits(n)
    buckets = 1 << bits
    passes = (8 * size - low + bits - 1) // bits
    source = keys
    target = result if passes & 1 != 0 else spare
    if order != 0:
        source = spare
        target = result
        for i in range(n):
            store(source, i, i, size)
    for k in range(passes):
        shift = low + k * bits
        counted = keys if order != 0 else source
        clear(counts, buckets)
        for i in range(n):
            d = shift_right(load(counted, i, size), shift) & (buckets - 1)
            counts[d] = counts[d] + 1
        if counts[shift_right(load(counted, 0, size), shift) & (buckets - 1)] == n:
            continue
        to_starts(counts, buckets)
        for i in range(n):
            item = load(source, i, size)
            d = shift_right(key_of(item, keys, order), shift) & (buckets - 1)
            place = counts[d]
            counts[d] = place + 1
            store(target, place, item, size)
        source = target
        target = spare if source is result else result
    if source is not result:
        copy(result, source, n * size)


@inlined
def sort_rows(args: ptr, begin: i64, end: i64, scratch: ptr, low: i64, size: i64, order: i64) -> void:
    n = Words(args)[2]
    for row in range(begin, end):
        keys = offset(Pointers(args)[0], row * n * size)
        result = offset(Pointers(args)[1], row * n * 2 * size)
        if n <= SHORT:
            insert(keys, result, n, low, size, order)
        else:
            radix(keys, result, offset(result, n * size), n, low, size, order, Words(scratch))


@exported
def sort_keys_uint8(args: ptr, begin: i64, end: i64, scratch: ptr) -> void:
    """Sorts uint8 keys by their bits from a lowest one on, as the following do wider ones."""
    sort_rows(args, begin, end, scratch, Words(args)[3], 1, 0)


@exported
def sort_keys_uint16(args: ptr, begin: i64, end: i64, scratch: ptr) -> void:
    sort_rows(args, begin, end, scratch, Words(args)[3], 2, 0)


@exported
def sort_keys_uint32(args: ptr, begin: i64, end: i64, scratch: ptr) -> void:
    sort_rows(args, begin, end, scratch, Words(args)[3], 4, 0)


@exported
def sort_keys_uint64(args: ptr, begin: i64, end: i64, scratch: ptr) -> void:
    sort_rows(args, begin, end, scratch, Words(args)[3], 8, 0)


@exported
def order_keys_uint64(args: ptr, begin: i64, end: i64, scratch: ptr) -> void:
    """The indices that sort uint64 keys."""
    sort_rows(args, begin, end, scratch, 0, 8, 1)
