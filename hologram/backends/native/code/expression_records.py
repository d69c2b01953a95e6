"""What native code keeps of lazily recorded expressions: those that have programs, and what it has to know of pending nodes and of ops."""

from __future__ import annotations

from hologram.backends.native.code.records import Graph, Step, UfuncLoop
from hologram.backends.native_lang.language import Array, Struct, at, f64, i64, instance, ptr, u32


class Root(Struct):
    """A node of an expression that becomes a realised value."""

    node: i64  # its place in the order of the walk
    aval: ptr
    nbytes: i64
    size_class: i64
    dtype_name: ptr


class Donor(Struct):
    """A leaf in whose memory a root may be put, if nobody but the expression holds it."""

    root: i64
    leaf: i64
    node: i64  # of the leaf
    uses: Array[i64]  # pairs: the place of a node, and how often nodes of the expression refer to it, which is all that may
    n_uses: i64  # words


class Expression(Struct):
    """A lazily recorded expression that has a program; laid out by expressions.py."""

    fingerprint: i64
    n_key: i64  # words
    key: Array[i64]
    program: ptr  # Python objects: what keeps the code alive, and this record with all that it refers to
    kept: ptr
    graph: Graph
    arena_bytes: i64
    flags: i64
    needs_donor: i64  # it takes long where no root takes over memory: then Python runs it, which gives up the GIL
    left: i64  # runs until Python is to serve it; negative: no end of them
    n_steps: i64  # of a program that runs op by op; 0 for a compiled one
    steps: Array[Step]
    n_constants: i64
    n_roots: i64
    n_donors: i64
    constants: Array[i64]
    roots: Array[Root]
    donors: Array[Donor]  # those of a root follow each other, the best first
    numbers: NumberCode  # of one whose key is a structure; None of one that is known by value


class NumberCode(Struct):
    """How a program takes the numbers of an expression: instructions that decide whether it does and compute what it needs of them; laid out by
    number_code.py."""

    n_numbers: i64
    code: Array[i64]  # instructions of three words each
    n_code: i64  # words
    operands: Array[i64]  # numbers that are arguments, behind the leaves and floats
    n_operands: i64
    integers: Array[i64]  # registers that the graph takes behind its results
    n_integers: i64


class PeepholeStep(Struct):
    """A step but for its places and its number of elements."""

    graph: Graph  # one of both
    loop: UfuncLoop
    data: ptr
    is_array: i64  # it computes as many elements as arrays of the expression have; 0: one
    size_at: i64  # the number of elements of arrays among the arguments; 0: it is none of them
    result_at: i64
    n_operands: i64
    operands: Array[i64]  # see peepholes.py
    n_args: i64
    args: Array[i64]
    strides: Array[i64]


class Peephole(Struct):
    """The steps of an op on operands of certain kinds, whatever expression it is part of; laid out by peepholes.py."""

    fingerprint: i64
    n_key: i64  # words
    key: Array[i64]
    n_steps: i64
    steps: Array[PeepholeStep]
    arena_bytes: i64  # the most that a kernel takes
    flags: i64
    cost_ps: i64  # of one element
    is_reduction: i64
    constants: Array[ptr]  # numbers that steps read


class OpRules(Struct):
    """An op, and of which operands' ops its steps depend."""

    op: ptr
    number: i64
    is_known: i64  # whether the masks are filled in
    masks: Array[i64]  # a bit for each op, by its number


class OpSizes(Struct):
    """An op that has sizes among its attributes: a bit for each of these."""

    op: ptr
    mask: i64


class FloatType(Struct):
    """A type of floats whose constants native code makes arguments of."""

    name: ptr
    aval: ptr  # of one element
    nbytes: i64


class Expressions(Struct):
    """The expressions that native code knows, by the fingerprints of their keys; and what it has to know of pending nodes."""

    table: Array[ptr]  # open addressing, at most half full
    mask: i64  # one less than its places, a power of 2
    known: i64  # expressions in it; none are looked for where there are none
    structures: i64  # of these, those whose key is a structure
    clock: i64  # walks
    visited: Array[ptr]  # nodes of the walk under way, a hash table
    visits: Array[i64]  # of each: the walk, and its number in it
    pending_type: ptr
    node_op: i64  # offsets of slots
    node_inputs: i64
    node_attrs: i64
    node_shape: i64
    node_dtype: i64
    node_seen: i64
    node_depth: i64
    node_array: i64
    leaf: ptr  # op definitions
    const: ptr
    operands: ptr  # dict: the Storage of a constant that is an argument, or None, by the attributes of the constant
    max_scalars: i64  # constants that are arguments of one program
    float_types: Array[FloatType]
    n_float_types: i64
    by_value: Array[f64]  # numbers that programs have by value
    n_by_value: i64
    nothing: ptr  # an empty tuple
    zero: ptr
    aval_kind: i64  # offsets of slots
    dtype_name: i64
    op_sizes: Array[OpSizes]
    n_op_sizes: i64
    integer_types: Array[ptr]  # names of the types whose constants are numbers of a structure
    n_integer_types: i64
    aval_of: ptr  # Python callable: the Aval of a dtype and a shape
    n_peepholes: i64
    peepholes: Array[ptr]  # open addressing
    peephole_mask: i64
    peepholes_kept: ptr  # Python object that keeps all of them
    op_rules: Array[ptr]  # records OpRules, open addressing by the op
    op_rules_mask: i64
    run_steps: Graph
    sights: Array[i64]  # fingerprints of expressions that have run at first sight
    sights_mask: i64
    n_sights: i64  # expressions that have run so


class Operator(Struct):
    """A Python object: an operator of Tensors, which native code records where it knows how, and Python elsewhere."""

    refcount: u32 = at(0)
    type: ptr = at(8)
    vectorcall: ptr = at(16)
    op: ptr
    results: ptr  # dict: the type of the result, by that of the operands
    python: ptr  # the function that records everything else
    name: ptr
    doc: ptr
    arity: i64
    swapped: i64


class Recorder(Struct):
    """What native code has to know to record ops lazily. Of nodes it knows by :class:`Expressions`."""

    constants: ptr  # dict: the node of a number beside an operand, by (type of the operand, class of the number, number)
    max_depth: i64
    aval_shape: i64  # offsets of slots
    dtype_name: i64


expressions = instance(Expressions, "hg_expressions")
recorder = instance(Recorder, "hg_recorder")
