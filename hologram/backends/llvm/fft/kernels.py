"""The kernels of Fourier transforms as LLVM IR, each a function of one signature, named by what it does.

``void kernel(ptr x, ptr xi, ptr y, ptr yi, i64 xrow, i64 yrow, i64 lanes, i64 runs, i64 blocks, ptr table, ptr aux)``: ``x`` and ``y`` are where the
elements come from and go to, ``xi`` and ``yi`` their imaginary parts where these are in arrays of their own. Strides and counts are in elements,
so one function serves every size. Names: ``<what>_<radix>_<width>_<type>_<formats of x and y>``; the kinds are described with the functions below.

Vectors of a loop over lanes may overlap at its end, so there are at least as many lanes as a vector has, and where x and y are the same memory
as many times a vector's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from hologram.backends.llvm.fft.arithmetic import FLOATS, Complex, Lanes, counted, covered
from hologram.backends.llvm.fft.butterflies import transform
from hologram.backends.llvm.text import FunctionText, vector

PARAMETERS = "ptr %x, ptr %xi, ptr %y, ptr %yi, i64 %xrow, i64 %yrow, i64 %lanes, i64 %runs, i64 %blocks, ptr %table, ptr %aux"


class Code(NamedTuple):
    """Which kernel: ``what`` it does, with which radix, on vectors of which width and type, from which format to which."""

    what: str
    radix: int
    width: int
    kind: str
    source: str
    target: str

    @property
    def name(self) -> str:
        return f"hg_fft_{self.what}_{self.radix}_{self.width}_{self.kind}_{self.source}{self.target}"


def module_ir(code: Code) -> str:
    """A module with this kernel alone."""
    f = FunctionText()
    e = Lanes(f, code.kind, code.width)
    _WRITERS[code.what](e, code)
    f.do("ret void")
    declarations = ["declare i64 @llvm.smin.i64(i64, i64)", *sorted(e.intrinsics)]
    return "\n".join([*declarations, f.text(f"define void @{code.name}({PARAMETERS}) nounwind"), ""])


def _product(f: FunctionText, *factors: str | int) -> str:
    out, *rest = [str(x) for x in factors]
    for x in rest:
        out = f.emit(f"mul i64 {out}, {x}").text
    return out


def _sum(f: FunctionText, *terms: str | int) -> str:
    out, *rest = [str(x) for x in terms]
    for x in rest:
        out = f.emit(f"add i64 {out}, {x}").text
    return out


# --- passes ------------------------------------------------------------------------------------------------------------------


def _pass(e: Lanes, code: Code) -> None:
    """A pass of Stockham's transform.

    For p < blocks, u < runs, q < lanes, the elements q + xrow (u + runs (p + blocks j)) are transformed, multiplied by the twiddle factors of p, and
    go to q + yrow (u + runs (r p + k)). ``last``: one block, no factors; ``scaled``: the same, all times the number in the table. All is loaded
    before anything is stored, so x and y may be the same memory.
    """
    f, r = e.f, code.radix
    x_run, y_run = _product(f, "%xrow", "%runs"), _product(f, "%yrow", "%runs")
    x_step = x_run if code.what != "pass" else _product(f, x_run, "%blocks")
    scale = e.splat_at("%table", "0") if code.what == "scaled" else ""

    def block(p: str) -> None:
        twiddled = _factors(e, code, p, scale)

        def run(u: str) -> None:
            x_base = _sum(f, _product(f, "%xrow", u), _product(f, x_run, p))
            y_base = _sum(f, _product(f, "%yrow", u), _product(f, y_run, p, r))

            def lane(q: str) -> None:
                x0, y0 = _sum(f, x_base, q), _sum(f, y_base, q)

                def source(j: int) -> Complex:
                    return e.load(code.source, "%x", "%xi", x0 if j == 0 else _sum(f, x0, _product(f, x_step, j)))

                def sink(k: int, value: Complex) -> None:
                    place = y0 if k == 0 else _sum(f, y0, _product(f, y_run, k))
                    e.store(code.target, "%y", "%yi", place, twiddled(k, value))

                transform(e, r, source, sink)

            covered(f, "%lanes", e.width, lane)

        counted(f, "%runs", run)

    if code.what == "pass":
        counted(f, "%blocks", block)
    else:
        block("0")


def _factors(e: Lanes, code: Code, p: str, scale: str) -> Callable[[int, Complex], Complex]:
    """What the elements that a pass has transformed are multiplied by."""
    start = _product(e.f, p, 2 * (code.radix - 1))

    def twiddled(k: int, value: Complex) -> Complex:
        if scale:
            return e.scaled(value, scale)
        if k == 0 or code.what == "last":
            return value
        at = _sum(e.f, start, 2 * (k - 1))
        return e.times(value, (e.splat_at("%table", at), e.splat_at("%table", _sum(e.f, at, 1))))

    return twiddled


def _first(e: Lanes, code: Code) -> None:
    """The first pass of a transform of one row: p runs over the lanes, element p + lanes j is read, r p + k is written. The factors of all p stand
    one after the other for each k, real and then imaginary parts."""
    f, r, width = e.f, code.radix, e.width

    def lane(p: str) -> None:
        out: list[Complex] = [("", "")] * r

        def source(j: int) -> Complex:
            return e.load(code.source, "%x", "%xi", p if j == 0 else _sum(f, p, _product(f, "%lanes", j)))

        def sink(k: int, value: Complex) -> None:
            if k:
                at = _sum(f, p, _product(f, "%lanes", 2 * (k - 1)))
                value = e.times(value, (e.load_at("%table", at), e.load_at("%table", _sum(f, at, "%lanes"))))
            out[k] = value

        transform(e, r, source, sink)
        start = _product(f, p, r)
        for base, part in (("%y", 0), ("%yi", 1)):
            for i, value in enumerate(e.interleaved([c[part] for c in out], width)):
                e.store_at(base, _sum(f, start, i * width), value)

    covered(f, "%lanes", width, lane)


# --- transpositions ----------------------------------------------------------------------------------------------------------


def _lines(form: str, real: str, imaginary: str) -> Callable[[int], tuple[int, str]]:
    """Of each line of lanes that a tile has, the column and the array: two lines for a column of complex numbers."""
    if form in "ri":
        return lambda line: (line, real)
    return lambda line: (line // 2, (real, imaginary)[(line % 2) ^ (form == "s")])


def _gather(e: Lanes, code: Code) -> None:
    """Rows become lanes: elements of ``width`` rows, ``xrow`` apart, become ``lanes`` planar rows of ``yrow`` elements, of one plane where they are
    real. ``radix`` columns at one time."""
    f, width = e.f, e.width
    item = 1 if code.source == "r" else 2
    across, line_of = item * code.radix, _lines(code.source, "%y", "%yi")
    count = min(width, across)

    def tile(c: str) -> None:
        rows = []
        for w in range(width):
            at = _sum(f, _product(f, "%xrow", w), c)
            rows.append(f.emit(f"load {vector(e.t, across)}, ptr {e.place('%x', at, item)}, align {e.itemsize}").text)
        for i, value in enumerate(e.interleaved(rows, across)):
            for part in range(0, across, count):
                line, within = divmod(i * across + part, width)
                column, base = line_of(line)
                at = _sum(f, _product(f, _sum(f, c, column), "%yrow"), within)
                e.store_at(base, at, e.part(value, across, part, count), count)

    covered(f, "%lanes", code.radix, tile)


def _scatter(e: Lanes, code: Code) -> None:
    """Lanes become rows: the way back from :func:`_gather`."""
    f, width = e.f, e.width
    item = 1 if code.target == "r" else 2
    across, line_of = item * code.radix, _lines(code.target, "%x", "%xi")
    count = min(width, across)

    def tile(c: str) -> None:
        lines = []
        for line in range(across):
            column, base = line_of(line)
            lines.append(e.load_at(base, _product(f, _sum(f, c, column), "%xrow")))
        for i, value in enumerate(e.interleaved(lines, width)):
            for part in range(0, width, count):
                row, within = divmod(i * width + part, across)
                at = e.place("%y", _sum(f, _product(f, "%yrow", row), c), item)
                at = f.emit(f"getelementptr {e.t}, ptr {at}, i64 {within}").text
                f.do(f"store {vector(e.t, count)} {e.part(value, width, part, count)}, ptr {at}, align {e.itemsize}")

    covered(f, "%lanes", code.radix, tile)


def _turn(e: Lanes, code: Code) -> None:
    """Between the two halves of a long transform: rows of ``xrow`` lanes are multiplied by twiddle factors, row by row those of the table times the
    row's in ``aux``, and transposed. ``blocks`` rows; lane q of row k goes to k + yrow q."""
    f, width = e.f, e.width

    def tile(k0: str) -> None:
        def lane(q: str) -> None:
            out = []
            for i in range(width):
                k = _sum(f, k0, i)
                at = _sum(f, _product(f, k, "%xrow"), q)
                both = _sum(f, _product(f, k, "%xrow", 2), q)
                own = e.splat_at("%aux", _product(f, k, 2)), e.splat_at("%aux", _sum(f, _product(f, k, 2), 1))
                factor = e.times((e.load_at("%table", both), e.load_at("%table", _sum(f, both, "%xrow"))), own)
                out.append(e.times((e.load_at("%x", at), e.load_at("%xi", at)), factor))
            for base, part in (("%y", 0), ("%yi", 1)):
                for i, value in enumerate(e.interleaved([c[part] for c in out], width)):
                    e.store_at(base, _sum(f, _product(f, _sum(f, q, i), "%yrow"), k0), value)

        covered(f, "%lanes", width, lane)

    covered(f, "%blocks", width, tile)


# --- element by element ------------------------------------------------------------------------------------------------------


def _mirrored(e: Lanes, a: Complex, b: Complex, g: str, v: Complex) -> Complex:
    """g S + v D, with S = a + conj(b) and D = a - conj(b)."""
    s = e.add(a[0], b[0]), e.sub(a[1], b[1])
    d = e.sub(a[0], b[0]), e.add(a[1], b[1])
    real = e.fma(v[0], d[0], e.fma(g, s[0], e.negative(e.mul(v[1], d[1]))))
    return real, e.fma(v[0], d[1], e.fma(v[1], d[0], e.mul(g, s[1])))


def _ends(e: Lanes, code: Code, first: str, last: str, target_last: str, at: str) -> None:
    """Elements 0 and, of a real transform (``post``), n/2."""
    f = e.f
    source = code.source
    zero = e.constant(0.0)
    a = e.load(source, "%x", "%xi", _sum(f, first, at))
    g = e.splat_at("%table", "0")
    if code.what.startswith("post"):
        g = e.mul(g, e.constant(2.0))
        e.store(code.target, "%y", "%yi", at, (e.mul(e.add(a[0], a[1]), g), zero))
        e.store(code.target, "%y", "%yi", _sum(f, target_last, at), (e.mul(e.sub(a[0], a[1]), g), zero))
    else:
        b = e.load(source, "%x", "%xi", _sum(f, last, at))
        e.store(code.target, "%y", "%yi", at, (e.add(a[0], b[0]), e.sub(a[0], b[0])))


def _mirror(e: Lanes, code: Code) -> None:
    """Between the transform z of n/2 pairs of real numbers and that of the n numbers: y[k] = g (a + conj b) + v[k] (a - conj b) with a = x[k] and
    b = x[lanes - k], for the ``runs`` numbers k behind ``aux``, which is one. The table: g, v[1] …, and then a second row of their imaginary parts.
    ``post`` comes after a transform, ``pre`` before an inverse one. With 0 go the elements that have no partner."""
    f, width = e.f, e.width
    begin = f.emit("ptrtoint ptr %aux to i64").text
    g = e.splat_at("%table", "0")

    def lane(i: str) -> None:
        k = _sum(f, i, begin, 1)
        back = f.emit(f"sub i64 %lanes, {_sum(f, k, width - 1)}").text
        mirrored = e.load(code.source, "%x", "%xi", back)
        b = e.reversed(mirrored[0]), e.reversed(mirrored[1])
        v = e.load_at("%table", k), e.load_at("%table", _sum(f, k, "%lanes"))
        e.store(code.target, "%y", "%yi", k, _mirrored(e, e.load(code.source, "%x", "%xi", k), b, g, v))

    _where(f, f"icmp eq i64 {begin}, 0", lambda: _ends(Lanes(f, e.kind, 1), code, "0", "%lanes", "%lanes", "0"))
    _where(f, "icmp ne i64 %runs, 0", lambda: covered(f, "%runs", width, lane))


def _where(f: FunctionText, condition: str, body: Callable[[], None]) -> None:
    some, done = f.fresh_label("some"), f.fresh_label("done")
    f.do(f"br i1 {f.emit(condition).text}, label %{some}, label %{done}")
    f.start(some)
    body()
    f.do(f"br label %{done}")
    f.start(done)


def _mirror_rows(e: Lanes, code: Code) -> None:
    """The same for a transform along rows of ``lanes`` numbers: ``blocks`` is n/2."""
    f = e.f
    last_x, last_y = _product(f, "%xrow", "%blocks"), _product(f, "%yrow", "%blocks")
    covered(f, "%lanes", e.width, lambda q: _ends(e, code, "0", last_x, last_y, q))
    g = e.splat_at("%table", "0")
    count = f.emit("sub i64 %blocks, 1").text

    def row(i: str) -> None:
        k = _sum(f, i, 1)
        v = e.splat_at("%table", k), e.splat_at("%table", _sum(f, k, "%blocks"))
        x0, y0 = _product(f, k, "%xrow"), _product(f, k, "%yrow")
        b0 = f.emit(f"sub i64 {last_x}, {x0}").text

        def lane(q: str) -> None:
            a, b = (e.load(code.source, "%x", "%xi", _sum(f, base, q)) for base in (x0, b0))
            e.store(code.target, "%y", "%yi", _sum(f, y0, q), _mirrored(e, a, b, g, v))

        covered(f, "%lanes", e.width, lane)

    _where(f, "icmp sgt i64 %blocks, 1", lambda: counted(f, count, row))


def _multiply(e: Lanes, code: Code) -> None:
    """``lanes`` complex elements times those of the table, whose real parts stand before the imaginary ones."""
    f = e.f

    def lane(q: str) -> None:
        factor = e.load_at("%table", q), e.load_at("%table", _sum(f, q, "%lanes"))
        e.store(code.target, "%y", "%yi", q, e.times(e.load(code.source, "%x", "%xi", q), factor))

    covered(f, "%lanes", e.width, lane)


def _multiply_rows(e: Lanes, code: Code) -> None:
    """``blocks`` rows of ``lanes`` elements, each times its element of the table."""
    f = e.f

    def row(k: str) -> None:
        factor = e.splat_at("%table", k), e.splat_at("%table", _sum(f, k, "%blocks"))
        x0, y0 = _product(f, k, "%xrow"), _product(f, k, "%yrow")

        def lane(q: str) -> None:
            value = e.times(e.load(code.source, "%x", "%xi", _sum(f, x0, q)), factor)
            e.store(code.target, "%y", "%yi", _sum(f, y0, q), value)

        covered(f, "%lanes", e.width, lane)

    counted(f, "%blocks", row)


def _copy(e: Lanes, code: Code) -> None:
    """``blocks`` rows of ``lanes`` elements. ``conjugate`` has imaginary parts negated, ``zero`` reads nothing and writes zeros."""
    f = e.f

    def row(k: str) -> None:
        x0, y0 = _product(f, k, "%xrow"), _product(f, k, "%yrow")

        def lane(q: str) -> None:
            if code.what == "zero":
                value = e.constant(0.0), e.constant(0.0)
            else:
                value = e.load(code.source, "%x", "%xi", _sum(f, x0, q))
            if code.what == "conjugate":
                value = value[0], e.negative(value[1])
            e.store(code.target, "%y", "%yi", _sum(f, y0, q), value)

        covered(f, "%lanes", e.width, lane)

    counted(f, "%blocks", row)


_WRITERS: dict[str, Callable[[Lanes, Code], None]] = {
    "pass": _pass,
    "last": _pass,
    "scaled": _pass,
    "first": _first,
    "gather": _gather,
    "scatter": _scatter,
    "turn": _turn,
    "post": _mirror,
    "pre": _mirror,
    "postrows": _mirror_rows,
    "prerows": _mirror_rows,
    "multiply": _multiply,
    "multiplyrows": _multiply_rows,
    "copy": _copy,
    "conjugate": _copy,
    "zero": _copy,
}
WHATS = tuple(_WRITERS)
assert set(FLOATS) == {"f32", "f64"}
