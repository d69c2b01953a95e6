"""Native code that tells whether a call is one of a specialisation: the first half of what stands between a caller and a compiled graph.

What arguments look like is told in :mod:`.words`. Registered classes are taken apart as :func:`hologram.tree.flatten` does it: by their attributes,
or by their function. Either may run Python code, so whatever it gives is kept for the length of the call. What raises is no match: Python code then
serves the call, and raises again.

A result may be written into a buffer that is an argument, where that overlaps no other argument, or one at the same address that the graph
reads in time.
"""

from __future__ import annotations

from hologram.backends.native.code.call import need_words
from hologram.backends.native.code.capi import (
    Py_DecRef,
    Py_IncRef,
    PyDict_GetItemWithError,
    PyDict_Size,
    PyErr_Clear,
    PyErr_ExceptionMatches,
    PyObject_CallOneArg,
    PyObject_GetAttr,
    PyObject_RichCompareBool,
    PySequence_Tuple,
)
from hologram.backends.native.code.dispatch.leaves import (
    PY_EQ,
    keep,
    match_array,
    match_buffer,
    match_field,
    match_owner,
    match_remote,
    match_same,
    match_scalar,
    match_tensor,
    match_value,
    take_leaf,
)
from hologram.backends.native.code.dispatch.words import (
    ARRAY,
    ATTRIBUTES,
    BOOLEAN,
    BUFFER,
    FIELD,
    INTEGER,
    LIST,
    NAMED,
    OWNER,
    REMOTE,
    SAME,
    TENSOR,
    TUPLE,
    VALUE,
)
from hologram.backends.native.code.object_layout import layout
from hologram.backends.native.code.records import WRITABLE, Context, List, Object, Output, Sized, Spec, Storage, process
from hologram.backends.native_lang.language import Array, i64, integer, native, offset, ptr, shift_right, void

Words, Pointers = Array[i64], Array[ptr]


@native
def match_items(context: Context, items: Array[ptr], n: i64) -> i64:
    for i in range(n):
        if match(context, items[i]) == 0:
            return 0
    return 1


@native
def match_tuple(context: Context, obj: ptr, n: i64) -> i64:
    if Object(obj).type != process.tuple_type or Sized(obj).size != n:
        return 0
    return match_items(context, Pointers(offset(obj, layout.tuple_items)), n)


@native
def match_list(context: Context, obj: ptr, n: i64) -> i64:
    if Object(obj).type != process.list_type or Sized(obj).size != n:
        return 0
    for i in range(n):
        if Sized(obj).size != n or match(context, List(obj).items[i]) == 0:  # a comparison of keys may have changed the list
            return 0
    return 1


@native
def match_dict(context: Context, obj: ptr, n: i64) -> i64:
    if Object(obj).type != process.dict_type or PyDict_Size(obj) != n:
        return 0
    for _ in range(n):
        value = PyDict_GetItemWithError(obj, Pointers(context.code)[context.position])
        context.position += 1
        if value is None or match(context, value) == 0:
            return 0
    return 1


# --- classes --------------------------------------------------------------------------------------------------------------------------------


@native
def raised() -> i64:
    """No match, because Python code raised: what it raised is forgotten, unless it ends the program."""
    if PyErr_ExceptionMatches(process.exception_type) != 0:
        PyErr_Clear()
    return 0


@native
def match_equal(obj: ptr, expected: ptr) -> i64:
    equal = PyObject_RichCompareBool(obj, expected, PY_EQ)
    return raised() if equal < 0 else equal


@native
def match_named(context: Context, obj: ptr) -> i64:
    code = Words(offset(context.code, context.position << 3))
    if Object(obj).type != Pointers(code)[1] or Sized(obj).size != code[2]:
        return 0
    context.position += 3
    return match_items(context, Pointers(offset(obj, layout.tuple_items)), code[2])


@native
def match_attributes(context: Context, obj: ptr) -> i64:
    code = Words(offset(context.code, context.position << 3))
    if Object(obj).type != Pointers(code)[1]:
        return 0
    context.position += 4
    for _ in range(code[2]):
        value = PyObject_GetAttr(obj, Pointers(context.code)[context.position])
        context.position += 1
        if value is None:
            return raised()
        keep(context, value)
        if match(context, value) == 0:
            return 0
    for _ in range(code[3]):
        constant = Pointers(offset(context.code, context.position << 3))
        value = PyObject_GetAttr(obj, constant[0])
        context.position += 2
        if value is None:
            return raised()
        equal = match_equal(value, constant[1])
        Py_DecRef(value)
        if equal == 0:
            return 0
    return 1


@native
def match_parts(context: Context, obj: ptr) -> i64:
    code = Words(offset(context.code, context.position << 3))
    if Object(obj).type != Pointers(code)[1]:
        return 0
    context.position += 5
    pair = PyObject_CallOneArg(Pointers(code)[2], obj)
    if pair is None:
        return raised()
    keep(context, pair)
    if Object(pair).type != process.tuple_type or Sized(pair).size != 2:
        return 0
    parts = Pointers(offset(pair, layout.tuple_items))
    children = PySequence_Tuple(parts[0])
    if children is None:
        return raised()
    keep(context, children)
    if Sized(children).size != code[4] or match_equal(parts[1], Pointers(code)[3]) == 0:
        return 0
    return match_items(context, Pointers(offset(children, layout.tuple_items)), code[4])


# --- calls ----------------------------------------------------------------------------------------------------------------------------------


@native
def match_class(context: Context, obj: ptr, op: i64) -> i64:
    Py_IncRef(obj)  # Python code that runs may drop it
    if op == NAMED:
        matched = match_named(context, obj)
    elif op == ATTRIBUTES:
        matched = match_attributes(context, obj)
    else:
        matched = match_parts(context, obj)
    Py_DecRef(obj)
    return matched


@native
def match(context: Context, obj: ptr) -> i64:
    """Whether the value is what the code at ``context.position`` says; goes past that code."""
    op = context.code[context.position]
    if op == TENSOR:
        return match_tensor(context, obj)
    if op == ARRAY:
        return match_array(context, obj)
    if op == VALUE:
        return match_value(context, obj)
    if op <= BOOLEAN:
        code = Words(offset(context.code, context.position << 3))
        cell = offset(context.scalars, context.leaf << 3)
        if match_scalar(context, obj, code, cell) == 0:
            return 0
        context.position += 4 if op == INTEGER else 2
        take_leaf(context, obj, None, cell)
        return 1
    if op == SAME:
        return match_same(context, obj)
    if op == REMOTE:
        return match_remote(context, obj)
    if op == BUFFER:
        return match_buffer(context, obj)
    if op == FIELD:
        return match_field(context, obj)
    if op == OWNER:
        return match_owner(context, obj)
    if op >= NAMED:
        return match_class(context, obj, op)
    n = context.code[context.position + 1]
    context.position += 2
    Py_IncRef(obj)  # a comparison of keys may run Python code, which may drop it
    if op == TUPLE:
        matched = match_tuple(context, obj, n)
    elif op == LIST:
        matched = match_list(context, obj, n)
    else:
        matched = match_dict(context, obj, n)
    Py_DecRef(obj)
    return matched


@native
def overlap(a: Storage, b: Storage) -> i64:
    """Whether two Storages have bytes in common."""
    start = integer(a.data)
    other = integer(b.data)
    return start < other + b.nbytes and other < start + a.nbytes


@native
def may_write(context: Context, leaves: i64, output: Output) -> i64:
    """Whether a result may be written into the buffer it is meant for: it can be written, is aligned, and shares nothing with other arguments
    that the graph may read after it is written."""
    into = Storage(context.held[output.source])
    if into.flags & WRITABLE == 0 or integer(into.data) & output.misaligned != 0:
        return 0
    for leaf in range(leaves):
        other = Storage(context.held[leaf])
        if leaf != output.source and other is not None and overlap(into, other) != 0:
            if other.data != into.data or shift_right(output.sharers, leaf) & 1 == 0:
                return 0
    return 1


@native
def drop_leaves(context: Context) -> void:
    for i in range(context.leaf):
        Py_DecRef(context.held[i])


@native
def drop_kept(context: Context) -> void:
    """Lets go of what classes gave, and of leaves' arguments."""
    for i in range(context.n_kept):
        Py_DecRef(context.kept[i])
    context.n_kept = 0


@native
def no_match(context: Context) -> i64:
    drop_leaves(context)
    drop_kept(context)
    return 0


@native
def match_call(context: Context, spec: Spec, args: Array[ptr], nargs: i64, kwnames: ptr) -> i64:
    """Whether the call is one of the specialisation; if so its leaves are held."""
    n_keywords = 0
    if kwnames is not None:
        n_keywords = Sized(kwnames).size
    if nargs != spec.n_positional or n_keywords != spec.n_keywords:
        return 0
    for i in range(n_keywords):
        if Pointers(offset(kwnames, layout.tuple_items))[i] != spec.keywords[i]:
            return 0
    if need_words(context, spec.words) == 0:
        return 0
    leaves = spec.n_leaves
    slots = leaves + spec.n_constants + spec.n_outputs + spec.n_symbols
    context.buffers = Pointers(context.words)
    context.arguments = Pointers(offset(context.words, slots << 3))
    context.held = Pointers(offset(context.arguments, leaves << 3))
    context.scalars = Words(offset(context.held, leaves << 3))
    context.kept = Pointers(offset(context.scalars, leaves << 3))
    context.results = Pointers(offset(context.kept, spec.n_kept << 3))
    context.keeps = spec.n_kept
    context.n_kept = 0
    context.code = spec.parameters
    context.position = 0
    context.leaf = 0
    for i in range(nargs + n_keywords):
        if match(context, args[i]) == 0:
            return no_match(context)
    for i in range(spec.n_outputs):
        if spec.outputs[i].sharers >= 0 and may_write(context, leaves, spec.outputs[i]) == 0:
            return no_match(context)
    return 1
