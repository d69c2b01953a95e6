"""What native code keeps in memory: CPython's and NumPy's objects as far as they are read, Hologram's own records, and those of process-wide
state."""

from __future__ import annotations

from hologram.backends.llvm.abi import ARENA_AT, ARENA_BYTES_AT, BAR_DONE_AT, CANCELLED_AT, PENDING_AT, SCRATCH_AT
from hologram.backends.native_lang.language import Array, Function, Struct, at, i32, i64, instance, ptr, u32, void

SIZE_CLASSES = 192  # covers every size up to 2**52 bytes
JOB_SLOTS = 16  # parallel kernels in flight at one time; a caller that finds none free works alone
SCRATCH_BYTES = 96 * 12_288
NOWHERE_BYTES = 4096  # no access of a kernel reaches so far from its first lane

# --- objects of the interpreter and NumPy; layout.py verifies each field --------------------------------------------------------------------


class Object(Struct):
    """Head of every object. The lower half of the count is the count for every object that is not immortal."""

    refcount: u32 = at(0)
    type: ptr = at(8)


class Sized(Struct):
    """Head of tuples and lists."""

    type: ptr = at(8)
    size: i64 = at(16)


class List(Struct):
    items: Array[ptr] = at(24)


class Slice(Struct):
    start: ptr = at(16)
    stop: ptr = at(24)
    step: ptr = at(32)


class NDArray(Struct):
    data: ptr = at(16)
    ndim: i32 = at(24)
    shape: Array[i64] = at(32)
    strides: Array[i64] = at(40)
    descr: ptr = at(56)
    flags: i32 = at(64)


# --- memory ---------------------------------------------------------------------------------------------------------------------------------


class Storage(Struct):
    """A Python object: memory of an array. ``capacity`` is 0 where the memory belongs to ``owner``."""

    refcount: u32 = at(0)
    type: ptr = at(8)
    data: ptr = at(16)
    nbytes: i64
    aval: ptr
    owner: ptr
    exports: i64
    flags: i64
    capacity: i64
    size_class: i64
    next: ptr  # the next Storage of a free list


WRITABLE = 1  # Storage.flags: buffer exports may be written: while Python fills the memory, or for good in the SDK's buffers


class NumberForm(Struct):
    """How an element of a DType becomes a Python number, reading.py. ``letter`` is its format in the buffer protocol, as a text."""

    dtype: ptr
    nbytes: i64
    form: i64
    letter: i64


class PyBuffer(Struct):
    """CPython's ``Py_buffer``."""

    data: ptr
    exporter: ptr
    nbytes: i64
    itemsize: i64
    readonly: i32
    ndim: i32
    format: ptr
    shape: Array[i64]
    strides: Array[i64]
    suboffsets: ptr
    internal: ptr


class Heap(Struct):
    """The caching allocator. Byte counts are of whole size classes."""

    storage_type: ptr
    aval_type: ptr
    aval_nbytes: i64  # offsets of slots
    aval_dtype: i64
    aval_shape: i64
    numbers: Array[NumberForm]
    n_numbers: i64
    raise_out_of_memory: ptr  # Python callable of the bytes wanted
    advise: ptr  # madvise, or None
    region: ptr  # the region of huge pages that blocks are cut from, or None
    guarded_new: ptr  # Python callables of a size and of an address, for blocks between guard pages, or None
    guarded_free: ptr
    limit: i64  # of live bytes; 0: none
    live: i64
    peak: i64
    cached: i64
    colour: i64
    free: Array[ptr]  # heads of the free lists, by size class; last: Storages without memory


# --- calls ----------------------------------------------------------------------------------------------------------------------------------


class Context(Struct):
    """What one call in flight owns. Generated code reads ``scratch``, ``arena`` and ``cancelled``."""

    scratch: ptr = at(SCRATCH_AT)
    arena: ptr = at(ARENA_AT)
    arena_bytes: i64 = at(ARENA_BYTES_AT)
    cancelled: i64 = at(CANCELLED_AT)
    pending: i64 = at(PENDING_AT)
    thread_state: ptr  # of the caller while it runs without the GIL
    polls: i64  # the caller is the thread that gets signals
    last_poll: i64  # ticks
    next: ptr
    # while arguments are matched and results built
    words: Array[i64]
    capacity: i64
    overflow: i64
    code: Array[i64]
    position: i64
    leaf: i64
    buffers: Array[ptr]  # the graph's slots
    arguments: Array[ptr]  # borrowed argument of each leaf
    held: Array[ptr]  # owned object that keeps each leaf's memory alive
    scalars: Array[i64]
    results: Array[ptr]  # owned Storage of each output
    keeps: i64  # nonzero: arguments have parts that Python code gives, which are kept
    kept: Array[ptr]  # owned
    n_kept: i64
    raised: ptr  # an exception that is put aside: its type, value and traceback
    raised_value: ptr
    raised_trace: ptr
    # while it runs on another runtime's threads
    graph: ptr
    slots: ptr
    status: i64
    done: i64
    # the first access of a checked kernel that would have left its buffer, checked.py
    violated: i64
    kernel: ptr  # texts
    statement: ptr
    index: i64
    size: i64
    writes: i64
    bars: i64  # loops of the call that count their steps in a slot, progress.py
    steps: ptr  # of a program that runs op by op, steps.py
    n_steps: i64
    key_words: i64  # of the structure of an expression, and its numbers, structures.py
    numbers: i64


class Graph(Function):
    """A compiled graph: nonzero where it was cancelled."""

    def __call__(self, buffers: ptr, context: ptr) -> i64:
        raise NotImplementedError


class Output(Struct):
    aval: ptr
    nbytes: i64
    size_class: i64
    source: i64  # leaf whose Storage is the result, or -1
    donor: i64  # donated leaf whose Storage the result may take, or -1
    sharers: i64  # of a result that is written into the leaf ``source``: a bit for each leaf that may lie there; else -1
    misaligned: i64  # bits of the leaf's address that have to be 0


class Spec(Struct):
    """A specialisation; laid out by dispatch.py in the memory of a Storage."""

    epoch: i64
    last_use: i64
    graph: Graph
    arena_bytes: i64
    flags: i64
    words: i64  # of the context that a call needs
    n_positional: i64
    n_keywords: i64
    n_leaves: i64
    n_constants: i64
    n_outputs: i64
    n_symbols: i64
    n_donated: i64
    n_kept: i64  # objects that a call keeps, at most: none where its arguments are walked without Python code
    keywords: Array[ptr]
    parameters: Array[i64]
    constants: Array[i64]
    outputs: Array[Output]
    symbols: Array[i64]
    donated: Array[i64]
    result: Array[i64]
    run: ptr  # of a program on a device: Python callable of the leaves in a list, which gives a list of Tensors
    n_results: i64  # of these
    replays: ptr  # of such a program: a :class:`replays.Replays`, or None


class Index(Struct):
    """Specialisations by the fingerprints of their calls, in a hash table with free places; laid out by dispatch.py in the memory of a Storage."""

    count: i64  # of the specialisations in it; those that were added later are before these
    mask: i64  # one less than the number of places, a power of 2
    fingerprints: Array[i64]  # 0: free
    specs: Array[ptr]


LONG, PARALLEL, TEAM = 1, 2, 4  # of a call: see :func:`calls.flags`


class Bound(Struct):
    """A graph that is called with addresses; laid out by addresses.py in the memory of a Storage."""

    graph: Graph
    arena_bytes: i64
    flags: i64
    n_inputs: i64
    n_results: i64
    n_constants: i64
    n_symbols: i64
    constants: Array[i64]
    symbols: Array[i64]


# --- programs that run op by op -------------------------------------------------------------------------------------------------------------


class UfuncLoop(Function):
    """An inner loop of a NumPy ufunc."""

    def __call__(self, args: ptr, count: ptr, strides: ptr, data: ptr) -> void:
        raise NotImplementedError


class Step(Struct):
    """One op of a program that runs op by op, laid out by native_steps.py: a graph, a loop of NumPy's, or a strided copy."""

    graph: Graph
    loop: UfuncLoop
    data: ptr  # of the loop
    count: i64  # elements that the loop or the copy writes
    n_operands: i64
    result_at: i64  # among the arguments
    places: Array[i64]  # of the operands and the result: slots of the program, or -1 - bytes from the start of the arena
    args: Array[ptr]  # of the graph or loop: operands, constants of the graph, the result, its integers
    strides: Array[i64]  # of the loop's arguments; of a copy: see steps.py


# --- programs on devices --------------------------------------------------------------------------------------------------------------------


class Remote(Struct):
    """Classes of what is on devices, and offsets of their slots."""

    storage_type: ptr
    storage_aval: i64
    storage_memory: i64
    storage_made: i64
    storage_owner: i64
    storage_exports: i64
    storage_host: i64
    memory_type: ptr
    memory_handle: i64
    memory_pool: i64
    memory_queue: i64
    memory_piece: i64
    memory_uses: i64
    piece_handle: i64
    piece_size: i64
    piece_nbytes: i64
    piece_what: i64
    submission_type: ptr
    submission_queue: i64
    submission_error: i64
    submission_event: i64
    submission_after: i64
    submission_kept: i64
    replays_known: i64
    replays_queue: i64
    nothing: ptr  # an empty tuple
    zero: ptr


class CopyIn(Function):
    """cuMemcpyHtoDAsync."""

    def __call__(self, to: i64, source: ptr, nbytes: i64, stream: i64) -> i32:
        raise NotImplementedError


class LaunchGraph(Function):
    """cuGraphLaunch."""

    def __call__(self, graph: i64, stream: i64) -> i32:
        raise NotImplementedError


class RecordEvent(Function):
    """cuEventRecord."""

    def __call__(self, event: i64, stream: i64) -> i32:
        raise NotImplementedError


class OnContext(Function):
    """cuCtxGetCurrent and cuCtxPopCurrent, whose argument is a place for a context, and cuCtxPushCurrent, whose argument is one."""

    def __call__(self, context: ptr) -> i32:
        raise NotImplementedError


class ReplayResult(Struct):
    """What a replay writes. The objects are kept by whoever keeps the record."""

    aval: ptr
    home: ptr  # list of free pieces
    nbytes: ptr  # Python integer
    what: ptr


class Replay(Struct):
    """A captured call of one queue, laid out by replays.py in the memory of a Storage. The lock of its device guards it."""

    copy_in: CopyIn
    launch: LaunchGraph
    record: RecordEvent
    get_current: OnContext
    push_current: OnContext
    pop_current: OnContext
    context: ptr  # of the device
    current: ptr  # the caller's
    busy: i64  # a call is being put together: a finaliser that runs meanwhile takes another way
    graph: i64
    stream: i64
    n_inputs: i64
    n_constants: i64
    n_results: i64
    n_own: i64
    arena_bytes: i64  # -1: no kernel needs an arena
    workspace_bytes: i64  # -1: no kernel needs a workspace
    state: Array[i64]  # which copy of the table is the latest, and whether the device has it
    copies: Array[i64]
    n_copies: i64
    device_table: i64
    queue: ptr  # Python objects from here on
    pool: ptr
    returned: ptr
    scratch: ptr
    spare_events: ptr
    under_way: ptr
    begun: ptr  # of a submission
    collect: ptr
    turn_over: ptr
    acquire: ptr
    release: ptr
    counts: ptr
    launches: ptr  # a key of these
    event_type: ptr
    event_device: ptr
    event_api: ptr
    event_device_slot: i64
    event_api_slot: i64
    event_slot: i64
    address_slot: i64  # of a handle of memory
    constants: Array[ptr]  # DeviceStorages
    results: Array[ReplayResult]
    own: Array[i64]
    fresh: Array[i64]  # the table of the call that is being put together


class Process(Struct):
    """Types, singletons and switches."""

    none: ptr
    true: ptr
    false: ptr
    float_type: ptr
    int_type: ptr
    str_type: ptr
    tuple_type: ptr
    list_type: ptr
    dict_type: ptr
    exception_type: ptr
    slice_type: ptr
    ellipsis: ptr
    ndarray_type: ptr
    tensor_type: ptr
    tensor_node: i64  # offsets of slots
    tensor_storage: i64
    tensor_weak: i64
    buffer_type: ptr
    buffer_storage: i64  # offset of the slot
    buffer_view: ptr  # Python callable (object, flags): the memoryview that its method __buffer__ gives
    cursor: i64  # in a dict that is walked
    cursor_key: ptr
    cursor_value: ptr
    dispatcher_specs: i64
    dispatcher_fallback: i64
    tracing: Array[i64]  # its first element counts open traces: nonzero sends every call to Python
    host: ptr  # Python callable of the address of a host op's arguments
    settle: ptr  # Python callable of the address of a Context that has collectives under way
    violation: ptr  # Python callable of the address of a Context whose kernel has violated bounds
    epoch: i64
    clock: i64
    free_contexts: ptr


class Readers(Struct):
    """What native methods of Tensors that read elements have to know."""

    tensor_alias: i64  # offset of a slot
    element: ptr  # what this slot holds of an element that integers pick
    share: ptr  # Python callable (source, part, (key, shape, dtype)): notes that a part is a view of its source
    elements: ptr  # dict: the Aval of an element, by the type
    vectors: ptr  # dict: by the type a dict of the Avals of small vectors, by their extents


# --- threads --------------------------------------------------------------------------------------------------------------------------------


class Kernel(Function):
    """Runs chunks [begin, end) of a kernel."""

    def __call__(self, args: ptr, begin: i64, end: i64, scratch: ptr) -> void:
        raise NotImplementedError


# Cache lines of some AArch64 cores; x86-64 cores have lines of 64 bytes, and fetch them in pairs.
CACHE_LINE = 128


class Job(Struct):
    """A parallel kernel in flight. What is contended has cache lines of its own."""

    state: i64 = at(0)
    joined: i64 = at(8)
    next: i64 = at(CACHE_LINE)  # chunks that are taken
    back: i64 = at(CACHE_LINE + 8)  # of these, those that workers took, from the end
    kernel: Kernel = at(2 * CACHE_LINE)
    args: ptr
    chunks: i64
    grain: i64
    longest: i64  # chunks that a thread takes at one time, at most
    end_of_record: i64 = at(3 * CACHE_LINE - 8)


FREE, CLAIMED, OPEN, CLOSED = 0, 1, 2, 3  # Job.state


class Worker(Struct):
    lock: ptr = at(0)  # held by the worker while it sleeps on it
    sleeping: i64 = at(8)
    scratch: ptr = at(16)
    end_of_record: i64 = at(CACHE_LINE - 8)


class Pool(Struct):
    """The state of all. Calls write to the fields at the end, each group of which has cache lines of its own: workers without work look at the others
    all the time."""

    jobs: Array[Job]
    workers: Array[Worker]
    n_workers: i64
    stop: i64
    wanted: i64  # workers should run and do not: the next parallel call starts them
    start: ptr  # Python callable that starts them
    nap: ptr  # a lock that is never free, to sleep on for a while
    main_thread: i64
    spin_ticks: i64
    tail_ticks: i64
    wake_ticks: i64
    poll_ticks: i64
    # another runtime's threads, team.py
    fork: ptr  # GOMP_parallel, or None
    thread_number: ptr  # omp_get_thread_num
    team: i64  # threads of a region
    seats: Array[Worker]  # scratch of guests; ``sleeping`` says that a seat is taken
    n_seats: i64
    # of jobs and calls in flight
    open: i64 = at(2 * CACHE_LINE)  # jobs that workers may join
    guests: i64  # calls that are regions
    unmet: i64 = at(3 * CACHE_LINE)  # ticks of recent short jobs that no worker joined
    last_unmet: i64
    end_of_record: i64 = at(4 * CACHE_LINE - 8)


# --- progress bars --------------------------------------------------------------------------------------------------------------------------

BAR_SLOTS = 32  # loops with bars in flight at one time; of more no bars are drawn
BAR_FREE, BAR_CLAIMED, BAR_RUNNING, BAR_ENDING, BAR_SPARE = 0, 1, 2, 3, 4  # Bar.state


class Bar(Struct):
    """A loop that counts its steps. ``done``, which the loop writes all the time, has cache lines of its own."""

    state: i64 = at(0)
    serial: i64  # of the loop among those that have had the slot
    total: i64  # -1: nobody knows
    owner: i64  # address of the context
    thread: i64  # that runs the loop
    shown: i64  # it has been drawn
    label: i64 = at(64)  # the first of BAR_LABEL_BYTES
    done: i64 = at(BAR_DONE_AT)
    end_of_record: i64 = at(2 * CACHE_LINE - 8)


class Progress(Struct):
    """The slots, one more than BAR_SLOTS, which is spare, and who draws them."""

    bars: Array[Bar]
    watched: i64  # a thread looks at the slots
    quiet_until: i64  # ticks: nobody wanted to when last asked, and is not asked again before
    off: i64  # no bars are drawn
    wake: ptr  # Python callables of the address of a slot
    finish: ptr


class Nowhere(Struct):
    """Memory of nobody, for accesses that are not made: zeros to load, and as much to store into."""

    end_of_record: i64 = at(4 * NOWHERE_BYTES - 8)


heap = instance(Heap, "hg_heap")
nowhere = instance(Nowhere, "hg_nowhere")
process = instance(Process, "hg_process")
readers = instance(Readers, "hg_readers")
remote = instance(Remote, "hg_remote")
pool = instance(Pool, "hg_pool")
progress = instance(Progress, "hg_progress")
