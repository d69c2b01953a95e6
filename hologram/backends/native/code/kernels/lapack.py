"""Native code that calls LAPACK: kernels that factor or solve one matrix after the other, without Python.

Routines are given by address. They store matrices by columns, Hologram by rows: each kernel says whose transpose a routine sees. Integers
and letters stand in words of the arguments, whose low half, in the little-endian order of all machines that Hologram runs on, is the C int or char
that a routine reads. What a routine cannot do (its ``info`` is not 0) gives NaNs: words of ones are NaNs in every format.

As every kernel these run matrices [begin, end) of their parallel loop. :func:`each` is the loop of all drivers: a driver is the record of its
arguments, which begins as :class:`Driver` does, a step, which has one matrix, and the exported kernel, which says how much memory the step works in.
"""

from __future__ import annotations

# None is the null pointer.
# mypy: disable-error-code="return-value"
from hologram.backends.native.code.capi import PyMem_RawFree, PyMem_RawMalloc
from hologram.backends.native.code.kernels.library_threads import LibraryThreads, change_users
from hologram.backends.native.code.records import Context
from hologram.backends.native_lang.language import (
    Array,
    Function,
    Struct,
    address,
    copy,
    exported,
    f32,
    f64,
    i32,
    i64,
    native,
    offset,
    ptr,
    u32,
    void,
)

Halves = Array[u32]
Ints = Array[i32]
Doubles = Array[f64]
Singles = Array[f32]
ONES = 0xFFFFFFFF
TRANSPOSED = 84  # the letter T
LINE = 64
SMALL = 16  # systems up to this size are solved here: libraries wake threads of their own for less than it takes to wake one


class Fortran(Function):
    """A subroutine of LAPACK or BLAS: it takes pointers only."""

    def __call__(self, *arguments: ptr) -> void:
        raise NotImplementedError


class Step(Function):
    """A driver's work on matrix ``i``. ``work`` is its memory; what a routine says of itself goes to ``info``."""

    def __call__(self, args: ptr, i: i64, work: ptr, info: Ints) -> void:
        raise NotImplementedError


class Driver(Struct):
    """How the arguments of every driver begin. ``threads`` is None where the library may wake threads of its own."""

    context: Context
    threads: LibraryThreads


@native
def each(step: Step, args: ptr, begin: i64, end: i64, nbytes: i64, scratch: ptr) -> void:
    """Runs ``step`` for matrices [begin, end), on this thread where the driver's arguments say so."""
    threads = Driver(args).threads
    if threads is None or threads.set is None:
        each_of(step, args, begin, end, nbytes, scratch)
        return
    change_users(threads, 1)
    each_of(step, args, begin, end, nbytes, scratch)
    change_users(threads, -1)


@native
def each_of(step: Step, args: ptr, begin: i64, end: i64, nbytes: i64, scratch: ptr) -> void:
    """Runs ``step`` for matrices [begin, end). Memory of ``nbytes`` for work is taken once for all; where there is none the call is cancelled."""
    work = scratch
    if nbytes != 0:
        work = PyMem_RawMalloc(nbytes + LINE)
        if work is None:
            Driver(args).context.cancelled = 1
            return
    for i in range(begin, end):
        step(args, i, work, Ints(scratch))
    if nbytes != 0:
        PyMem_RawFree(work)


@native
def copied(out: ptr, source: ptr, i: i64, size: i64) -> ptr:
    """The place of matrix ``i``, of ``size`` bytes, where it is now a copy of the source's."""
    place = offset(out, i * size)
    copy(place, offset(source, i * size), size)
    return place


@native
def fill(where: ptr, nbytes: i64, half: i64) -> void:
    words = Halves(where)
    for i in range(nbytes >> 2):
        words[i] = half


# --- Cholesky --------------------------------------------------------------------------------------------------------


class Potrf(Struct):
    context: Context
    threads: LibraryThreads
    routine: Fortran
    n: i64
    item: i64
    upper: i64
    x: ptr
    out: ptr


@native
def cholesky(args: ptr, i: i64, work: ptr, info: Ints) -> void:
    a = Potrf(args)
    n = a.n
    size = n * n * a.item
    out = copied(a.out, a.x, i, size)
    a.routine(address(a.upper), address(a.n), out, address(a.n), info)
    if info[0] != 0:
        fill(out, size, ONES)
    for row in range(n - 1):
        fill(offset(out, (row * n + row + 1) * a.item), (n - 1 - row) * a.item, 0)


@exported
def lapack_cholesky(args: ptr, begin: i64, end: i64, scratch: ptr) -> void:
    """x = l l*. By columns the lower triangle is the upper one of the transpose, which is u* u with u the transpose of l."""
    if Potrf(args).n != 0:
        each(address(cholesky), args, begin, end, 0, scratch)


# --- LU --------------------------------------------------------------------------------------------------------------


class Getrf(Struct):
    context: Context
    threads: LibraryThreads
    routine: Fortran
    n: i64
    item: i64
    x: ptr
    out: ptr
    pivots: Array[i32]
    order: Array[i32]


@native
def lu(args: ptr, i: i64, work: ptr, info: Ints) -> void:
    a = Getrf(args)
    n = a.n
    out = copied(a.out, a.x, i, n * n * a.item)
    pivots = Ints(offset(a.pivots, i * n * 4))
    a.routine(address(a.n), address(a.n), out, address(a.n), pivots, info)
    order = Ints(offset(a.order, i * n * 4))
    for k in range(n):
        order[k] = k
    for k in range(n):
        other = pivots[k] - 1
        before = order[k]
        order[k] = order[other]
        order[other] = before
        pivots[k] = other


@exported
def lapack_lu(args: ptr, begin: i64, end: i64, scratch: ptr) -> void:
    """The transpose of x, which is x by columns, factored. A zero on the diagonal is no failure."""
    if Getrf(args).n != 0:
        each(address(lu), args, begin, end, 0, scratch)


class Getrs(Struct):
    context: Context
    threads: LibraryThreads
    routine: Fortran
    n: i64
    rows: i64
    item: i64
    real: i64
    trans: i64
    factors: ptr
    pivots: Array[i32]
    b: ptr
    out: ptr


@native
def widen(to: Doubles, source: ptr, n: i64, item: i64) -> void:
    if item == 8:
        copy(to, source, n * 8)
        return
    for k in range(n):
        to[k] = Singles(source)[k]


@native
def narrow(to: ptr, source: Doubles, n: i64, item: i64) -> void:
    if item == 8:
        copy(to, source, n * 8)
        return
    for k in range(n):
        Singles(to)[k] = source[k]


@native
def exchange_rows(y: Doubles, k: i64, other: i64) -> void:
    before = y[k]
    y[k] = y[other]
    y[other] = before


@native
def substitute(factors: Doubles, pivots: Ints, y: Doubles, n: i64) -> void:
    """p l u solved for in place: the factors' columns are rows here."""
    for k in range(n):
        exchange_rows(y, k, pivots[k])
    for j in range(n):
        for i in range(j + 1, n):
            y[i] = y[i] - factors[j * n + i] * y[j]
    for k in range(n):
        j = n - 1 - k
        y[j] = y[j] / factors[j * n + j]
        for i in range(j):
            y[i] = y[i] - factors[j * n + i] * y[j]


@native
def substitute_transposed(factors: Doubles, pivots: Ints, y: Doubles, n: i64) -> void:
    """(p l u)^T solved for in place."""
    for i in range(n):
        total = y[i]
        for j in range(i):
            total = total - factors[i * n + j] * y[j]
        y[i] = total / factors[i * n + i]
    for k in range(n):
        i = n - 1 - k
        total = y[i]
        for j in range(i + 1, n):
            total = total - factors[i * n + j] * y[j]
        y[i] = total
    for k in range(n):
        exchange_rows(y, n - 1 - k, pivots[n - 1 - k])


@native
def lu_solve_small(args: ptr, i: i64, work: ptr, info: Ints) -> void:
    """The right sides of a matrix, real and small, computed in double."""
    a = Getrs(args)
    n = a.n
    factors = Doubles(offset(info, LINE))
    y = Doubles(offset(info, LINE + SMALL * SMALL * 8))
    widen(factors, offset(a.factors, i * n * n * a.item), n * n, a.item)
    pivots = Ints(offset(a.pivots, i * n * 4))
    for row in range(i * a.rows, (i + 1) * a.rows):
        widen(y, offset(a.b, row * n * a.item), n, a.item)
        if a.trans == TRANSPOSED:
            substitute_transposed(factors, pivots, y, n)
        else:
            substitute(factors, pivots, y, n)
        narrow(offset(a.out, row * n * a.item), y, n, a.item)


@native
def lu_solve(args: ptr, i: i64, work: ptr, info: Ints) -> void:
    a = Getrs(args)
    n = a.n
    out = copied(a.out, a.b, i, a.rows * n * a.item)
    pivots = Ints(work)
    for k in range(n):
        pivots[k] = a.pivots[i * n + k] + 1
    a.routine(address(a.trans), address(a.n), address(a.rows), offset(a.factors, i * n * n * a.item), address(a.n), pivots, out, address(a.n), info)


@exported
def lapack_lu_solve(args: ptr, begin: i64, end: i64, scratch: ptr) -> void:
    """Every row of b, a column to the routine, solved for."""
    a = Getrs(args)
    if a.rows == 0 or a.n == 0:
        return
    if a.real != 0 and a.n <= SMALL:
        each(address(lu_solve_small), args, begin, end, 0, scratch)
    else:
        each(address(lu_solve), args, begin, end, a.n * 4, scratch)


# --- triangular solve ------------------------------------------------------------------------------------------------


class Trsm(Struct):
    context: Context
    threads: LibraryThreads
    routine: Fortran
    n: i64
    columns: i64
    item: i64
    side: i64
    uplo: i64
    trans: i64
    diag: i64
    one: i64  # the bits of a one, and what follows them in a complex one
    zero: i64
    a: ptr
    b: ptr
    out: ptr


@native
def triangular_solve(args: ptr, i: i64, work: ptr, info: Ints) -> void:
    a = Trsm(args)
    out = copied(a.out, a.b, i, a.n * a.columns * a.item)
    matrix = offset(a.a, i * a.n * a.n * a.item)
    a.routine(
        address(a.side), address(a.uplo), address(a.trans), address(a.diag), address(a.columns), address(a.n), address(a.one),
        matrix, address(a.n), out, address(a.columns),
    )  # fmt: skip


@exported
def lapack_triangular_solve(args: ptr, begin: i64, end: i64, scratch: ptr) -> void:
    """a x = b is x^T a^T = b^T, and a^T, x^T and b^T are what stands here by columns."""
    a = Trsm(args)
    if a.n != 0 and a.columns != 0:
        each(address(triangular_solve), args, begin, end, 0, scratch)


# --- orthogonal factors ----------------------------------------------------------------------------------------------


class Geqrf(Struct):
    context: Context
    threads: LibraryThreads
    factor: Fortran
    expand: Fortran
    n: i64  # rows of x
    m: i64  # columns of x
    rows: i64  # of q
    item: i64
    lwork: i64
    x: ptr
    lower: ptr
    q: ptr


@native
def lq(args: ptr, i: i64, work: ptr, info: Ints) -> void:
    a = Geqrf(args)
    n = a.n
    m = a.m
    tau = work
    rest = offset(tau, n * a.item)
    lower = offset(a.lower, i * n * n * a.item)
    q = offset(a.q, i * a.rows * m * a.item)
    copy(q, offset(a.x, i * n * m * a.item), n * m * a.item)
    a.factor(address(a.m), address(a.n), q, address(a.m), tau, rest, address(a.lwork), info)
    for row in range(n):
        copy(offset(lower, row * n * a.item), offset(q, row * m * a.item), (row + 1) * a.item)
        fill(offset(lower, (row * n + row + 1) * a.item), (n - 1 - row) * a.item, 0)
    a.expand(address(a.m), address(a.rows), address(a.n), q, address(a.m), tau, rest, address(a.lwork), info)


@exported
def lapack_lq(args: ptr, begin: i64, end: i64, scratch: ptr) -> void:
    """x = l q: by columns x^T = q^T l^T, the factorization into an orthogonal and an upper triangular matrix."""
    a = Geqrf(args)
    each(address(lq), args, begin, end, (a.n + a.lwork) * a.item, scratch)


# --- singular values -------------------------------------------------------------------------------------------------


class Gesdd(Struct):
    context: Context
    threads: LibraryThreads
    routine: Fortran
    complex: Fortran
    m: i64  # rows of x
    n: i64
    u_columns: i64  # 0 where no vectors are wanted
    v_rows: i64
    ldu: i64  # u_columns, and 1 for none
    item: i64
    real: i64  # bytes of a real element
    job: i64
    lwork: i64
    lrwork: i64
    x: ptr
    s: ptr
    u: ptr
    v: ptr


@native
def svd(args: ptr, i: i64, work: ptr, info: Ints) -> void:
    a = Gesdd(args)
    least = a.m if a.m < a.n else a.n
    size = a.m * a.n * a.item
    x = work
    rest = offset(x, size)
    rwork = offset(rest, a.lwork * a.item)
    iwork = offset(rwork, a.lrwork * a.real)
    s = offset(a.s, i * least * a.real)
    u = offset(a.u, i * a.m * a.u_columns * a.item)
    v = offset(a.v, i * a.v_rows * a.n * a.item)
    copy(x, offset(a.x, i * size), size)
    if a.lrwork != 0:
        a.complex(
            address(a.job), address(a.n), address(a.m), x, address(a.n), s, v, address(a.n), u, address(a.ldu),
            rest, address(a.lwork), rwork, iwork, info,
        )  # fmt: skip
    else:
        a.routine(
            address(a.job), address(a.n), address(a.m), x, address(a.n), s, v, address(a.n), u, address(a.ldu),
            rest, address(a.lwork), iwork, info,
        )  # fmt: skip
    if info[0] != 0:
        fill(s, least * a.real, ONES)
        fill(u, a.m * a.u_columns * a.item, ONES)
        fill(v, a.v_rows * a.n * a.item, ONES)


@exported
def lapack_svd(args: ptr, begin: i64, end: i64, scratch: ptr) -> void:
    """x = u s v: by columns x^T = v^T s u^T, so that the routine's left vectors are the rows of v."""
    a = Gesdd(args)
    least = a.m if a.m < a.n else a.n
    each(address(svd), args, begin, end, (a.m * a.n + a.lwork) * a.item + a.lrwork * a.real + least * 32, scratch)


# --- eigenvalues -----------------------------------------------------------------------------------------------------


class Syevd(Struct):
    context: Context
    threads: LibraryThreads
    routine: Fortran
    complex: Fortran
    n: i64
    item: i64
    real: i64
    job: i64
    uplo: i64
    lwork: i64
    lrwork: i64
    liwork: i64
    x: ptr
    w: ptr
    v: ptr


@native
def eigh(args: ptr, i: i64, work: ptr, info: Ints) -> void:
    a = Syevd(args)
    n = a.n
    size = n * n * a.item
    rwork = offset(work, a.lwork * a.item)
    iwork = offset(rwork, a.lrwork * a.real)
    v = copied(a.v, a.x, i, size)
    w = offset(a.w, i * n * a.real)
    if a.lrwork != 0:
        a.complex(
            address(a.job), address(a.uplo), address(a.n), v, address(a.n), w, work, address(a.lwork), rwork, address(a.lrwork),
            iwork, address(a.liwork), info,
        )  # fmt: skip
    else:
        a.routine(address(a.job), address(a.uplo), address(a.n), v, address(a.n), w, work, address(a.lwork), iwork, address(a.liwork), info)
    if info[0] != 0:
        fill(w, n * a.real, ONES)
        fill(v, size, ONES)


@exported
def lapack_eigh(args: ptr, begin: i64, end: i64, scratch: ptr) -> void:
    """The eigenvectors of the transpose, which is the conjugate, are the rows of v."""
    a = Syevd(args)
    if a.n != 0:
        each(address(eigh), args, begin, end, a.lwork * a.item + a.lrwork * a.real + a.liwork * 4, scratch)


class Geev(Struct):
    context: Context
    threads: LibraryThreads
    routine: Fortran
    complex: Fortran
    n: i64
    item: i64
    real: i64  # bytes of a real element
    no: i64  # the letter for the vectors that are not wanted
    job: i64
    lwork: i64
    lrwork: i64
    is_complex: i64
    x: ptr
    w: ptr
    v: ptr


@native
def real_element(of: ptr, k: i64, item: i64) -> f64:
    if item == 8:
        return Doubles(of)[k]
    return Singles(of)[k]


@native
def put_pair(to: ptr, k: i64, item: i64, real: f64, imaginary: f64) -> void:
    """The complex number ``k`` of an array whose parts have ``item`` bytes."""
    if item == 8:
        Doubles(to)[2 * k] = real
        Doubles(to)[2 * k + 1] = imaginary
        return
    Singles(to)[2 * k] = real
    Singles(to)[2 * k + 1] = imaginary


@native
def paired(w: ptr, v: ptr, values: ptr, vectors: ptr, n: i64, item: i64) -> void:
    """Eigenvalues and vectors of a real matrix as complex numbers. Of a conjugate pair the routine gives the real and the imaginary part."""
    for j in range(n):
        imaginary = real_element(values, n + j, item)
        put_pair(w, j, item, real_element(values, j, item), imaginary)
        first = j - 1 if imaginary < 0.0 else j
        for k in range(n):
            part = 0.0
            if imaginary > 0.0:
                part = real_element(vectors, (first + 1) * n + k, item)
            if imaginary < 0.0:
                part = 0.0 - real_element(vectors, (first + 1) * n + k, item)
            put_pair(v, j * n + k, item, real_element(vectors, first * n + k, item), part)


@native
def transpose_matrix(to: ptr, source: ptr, n: i64, item: i64) -> void:
    for row in range(n):
        for column in range(n):
            copy(offset(to, (column * n + row) * item), offset(source, (row * n + column) * item), item)


@native
def all_finite(of: ptr, count: i64, item: i64) -> i64:
    for k in range(count):
        x = real_element(of, k, item)
        if x - x != 0.0:
            return 0
    return 1


@native
def eig(args: ptr, i: i64, work: ptr, info: Ints) -> void:
    """``work``: the matrix by columns, the vectors of a real one, the routine's own, and reals, which are the values of a real matrix."""
    a = Geev(args)
    n = a.n
    size = n * n * a.item
    vectors = offset(work, size)
    rest = offset(vectors, size)
    reals = offset(rest, a.lwork * a.item)
    w = offset(a.w, i * n * 2 * a.real)
    v = offset(a.v, i * n * n * 2 * a.real)
    transpose_matrix(work, offset(a.x, i * size), n, a.item)
    if all_finite(work, size // a.real, a.real) == 0:  # the routine would print, and give numbers
        info[0] = 1
    elif a.is_complex != 0:
        a.complex(
            address(a.no), address(a.job), address(a.n), work, address(a.n), w, v, address(a.n), v, address(a.n), rest, address(a.lwork), reals, info
        )
    else:
        imaginary = offset(reals, n * a.real)
        fill(vectors, size, 0)
        a.routine(
            address(a.no), address(a.job), address(a.n), work, address(a.n), reals, imaginary, vectors, address(a.n), vectors, address(a.n),
            rest, address(a.lwork), info,
        )  # fmt: skip
        paired(w, v, reals, vectors, n, a.real)
    if info[0] != 0:
        fill(w, n * 2 * a.real, ONES)
        fill(v, n * n * 2 * a.real, ONES)


@exported
def lapack_eig(args: ptr, begin: i64, end: i64, scratch: ptr) -> void:
    """The vectors, which the routine gives as columns, are the rows of v."""
    a = Geev(args)
    if a.n != 0:
        each(address(eig), args, begin, end, (2 * a.n * a.n + a.lwork) * a.item + a.lrwork * a.real, scratch)
