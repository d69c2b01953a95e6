"""Small programs of every kind of kernel, with the precision that they are compiled in."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hologram.ir.node import Node
from hologram.ir.symbolic import var
from tests.support.building import Draft, adam, layer_norm, product, softmax


def _chain(d: Draft) -> list[Node]:
    x, y = d.input(10_000), d.input(10_000)
    s = d("add", x, d("mul", y, d.const(2)))
    return [s, d("max", s, x)]


def _broadcasts(d: Draft) -> list[Node]:
    x, row, column = d.input(40, 50), d.input(50), d.input(40)
    return [d("add", d("mul", x, d.spread(d("sqrt", column), x.shape, 0)), d.spread(row, x.shape, 1))]


def _transposed(d: Draft) -> list[Node]:
    return [d("add", d("transpose", d.input(30, 20), (1, 0)), d.input(20, 30))]


def _padded(d: Draft) -> list[Node]:
    x = d.input(20, 30)
    return [d("concatenate", d("pad", x, d.const(7), (1, 0), (0, 2)), d.input(21, 4), 1)]


def _reshaped(d: Draft) -> list[Node]:
    return [d("add", d("reshape", d("transpose", d.input(6, 35), (1, 0)), (10, 21)), d.input(10, 21))]


def _narrow(d: Draft) -> list[Node]:
    x = d.input(100, 3)
    return [d("mul", x, d.spread(d.input(3), x.shape, 1))]


def _taken(d: Draft) -> list[Node]:
    return [d("square", d.take(d.input(50, 8), d.input(20, dtype="int32"), 0))]


def _row_sum(d: Draft) -> list[Node]:
    return [d("sqrt", d("reduce_sum", d("square", d("sub", d.input(40, 500), d.input(40, 500))), (1,)))]


def _column_sum(d: Draft) -> list[Node]:
    x = d.input(40, 500)
    return [d("sub", x, d.spread(d("reduce_sum", x, (0,)), x.shape, 1))]


def _full_sum(d: Draft) -> list[Node]:
    return [d("reduce_sum", d.input(100, 100), (0, 1))]


def _halves(d: Draft) -> list[Node]:
    x = d.input(8, 40, dtype="float16")
    return [d("reduce_sum", d("mul", x, x), (1,))]


def _positions(d: Draft) -> list[Node]:
    x = d.input(8, 40)
    return [d("argmax", x, 1), d("argmin", x, 0)]


def _scanned_rows(d: Draft) -> list[Node]:
    return [d("cumsum", d.input(8, 40), 1, False), d("cumprod", d.input(8, 40), 0, True)]


def _long_scan(d: Draft) -> list[Node]:
    return [d("cumsum", d.input(10_000), 0, False)]


def _symbolic(d: Draft) -> list[Node]:
    x = d.input(var("n0"), 5)
    return [d("neg", x), d("reduce_max", x, (1,)), d("reduce_sum", x, (0,))]


def _loop_invariant_divisor(d: Draft) -> list[Node]:
    x = d.input(8, 40)
    return [d("div", x, d.spread(d.input(8), x.shape, 0))]


PROGRAMS: dict[str, tuple[Callable[[Draft], Sequence[Node]], str]] = {
    "chain": (_chain, "exact"),
    "adam": (lambda d: adam(d, 5000), "exact"),
    "broadcasts": (_broadcasts, "exact"),
    "transposed": (_transposed, "exact"),
    "padded": (_padded, "exact"),
    "reshaped": (_reshaped, "exact"),
    "narrow": (_narrow, "exact"),
    "taken": (_taken, "exact"),
    "row_sum": (_row_sum, "exact"),
    "column_sum": (_column_sum, "exact"),
    "full_sum": (_full_sum, "exact"),
    "halves": (_halves, "exact"),
    "positions": (_positions, "exact"),
    "scanned_rows": (_scanned_rows, "exact"),
    "long_scan": (_long_scan, "exact"),
    "symbolic": (_symbolic, "exact"),
    "loop_invariant_divisor": (_loop_invariant_divisor, "standard"),
    "product": (lambda d: [product(d, d.input(20, 30), d.input(30, 70))], "exact"),
    "softmax": (lambda d: [softmax(d, d.input(64, 128))], "exact"),
    "layer_norm": (lambda d: [layer_norm(d, d.input(64, 128), d.input(128), d.input(128))], "standard"),
}
