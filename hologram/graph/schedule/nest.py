"""Loop nests: axes merged into blocks, and the loops that number their elements."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from hologram.graph.kernel.ir import Loop
from hologram.ir.index_maps import variables
from hologram.ir.op import Shape
from hologram.ir.symbolic import Expr, Int, atoms, counter, floordiv, mod, prod, split_linear, substitute, var

UNBOUNDED = 1 << 40  # elements: too many to be kept in scratch
NARROW = 8  # a last axis shorter than this is no loop of its own


class Block:
    """Neighbouring axes merged into one, of extent ``size``; ``var`` stands for its position."""

    __slots__ = ("axes", "size", "var", "names", "last")

    def __init__(self, axes: list[int], shape: Shape) -> None:
        self.axes = axes
        self.size: Int = prod(shape[a] for a in axes)
        names = [name_of(v) for v in (variables(shape)[a] for a in axes)]
        self.names, self.last = names, names[-1]
        self.var = var(f"m{axes[0]}", 0, self.size - 1 if isinstance(self.size, int) else None)

    def rewrite(self, e: Int) -> Int:
        if len(self.names) == 1:
            return substitute(e, {self.last: self.var})
        linear = split_linear(e, self.last)
        assert linear is not None
        return substitute(linear[1], dict.fromkeys(self.names[:-1], 0)) + linear[0] * self.var


def name_of(v: Int) -> str:
    assert isinstance(v, Expr)
    ((m, _),) = v.terms.items()
    return m[0].name


def merge(axes: Sequence[int], shape: Shape, expressions: list[Int]) -> list[Block]:
    """Blocks of ``axes`` (those of extent 1 left out) that every expression walks as one."""
    blocks: list[list[int]] = []
    names = variables(shape)
    for a in axes:
        if shape[a] == 1:
            continue
        if blocks and _walked_as_one(name_of(names[blocks[-1][-1]]), name_of(names[a]), shape[a], expressions):
            blocks[-1].append(a)
        else:
            blocks.append([a])
    return [Block(b, shape) for b in blocks]


def _walked_as_one(outer: str, inner: str, extent: Int, expressions: list[Int]) -> bool:
    for e in expressions:
        if not isinstance(e, Expr):
            continue
        a, b = split_linear(e, outer), split_linear(e, inner)
        if a is None or b is None or a[0] != b[0] * extent:
            return False
    return True


class RowPanel(NamedTuple):
    """Scratch for what differs between the rows of several tiles: ``size`` elements, ``terms`` of sums; ``tile`` numbers the tiles."""

    size: int
    terms: int
    tile: Int


class Nest:
    """Loops, and the substitution of loop variables for axes. Levels: 1 in the parallel loop, 2 and more in the loops inside of it."""

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self.values: dict[str, Int] = {}
        self.lane: dict[str, Int] = {}  # the position in a block of columns by its name, while indices simplify
        self.iterations: Int = 1
        self.level_of: dict[str, int] = {"p": 1}
        self.element_level = 2
        self.row_elements: Int = 0
        self.scratch_index: Int = 0
        self.scratch_size: Int = 0
        self.steps = 1  # of the innermost loop that are unrolled
        self.shared: Int = 1  # parallel iterations that follow each other and share a panel
        self.packs = False  # whether a parallel iteration copies what its rows share to scratch
        self.most_terms: int | None = None  # of a symbolic number, in a nest that packs
        self.row_panel: RowPanel | None = None  # of a parallel iteration that copies what differs between its rows to scratch
        self.rows_at_once = 1  # rows of a parallel iteration, numbered from the value of ``row``
        self.row: Int = 0
        self.row_var: Int = 0  # stands for it, at most :attr:`last_row`
        self.last_row: Int = 0
        self.row_starts: Sequence[Int] = ()  # of rows that share nothing: the first of each part; a parallel iteration takes one of each
        self.column: Int = 0  # the position within a block of columns, of parallel iterations of several rows
        self.block: Int = 0  # columns of a parallel iteration
        self.row_blocked = False  # whether a parallel iteration adds row after row to results in scratch
        self.flat: Block | None = None  # all blocks seen as one, for accesses that walk them so
        self._outer: list[tuple[int, Loop]] = []
        self._inner: tuple[str, str, Int, Int, Int | None] | None = None

    def rewrite(self, e: Int) -> Int:
        for b in self.blocks:
            e = b.rewrite(e)
        if self.flat is not None:
            strides = self._flat_stride(e)
            if strides is not None:
                return strides
        return substitute(substitute(e, self.values), self.lane)

    def _flat_stride(self, e: Int) -> Int | None:
        """``c*i + rest`` where an expression walks all blocks as one."""
        rest: Int = e
        below: Int = 1
        unit: Int | None = None
        for b in reversed(self.blocks):
            split = split_linear(rest, name_of(b.var))
            if split is None:
                return None
            c, rest = split
            unit = c if unit is None else unit
            if c != unit * below:
                return None
            below = below * b.size
        assert unit is not None and self.flat is not None
        return rest + unit * self.flat.var

    def outer_loops(self) -> list[tuple[int, Loop]]:
        return self._outer

    def element_loops(self) -> tuple[list[Loop], Loop]:
        """A fresh innermost loop, and the statement list that holds it."""
        assert self._inner is not None
        loop = Loop(*self._inner)
        return [loop], loop

    def tile_loop(self) -> Loop:
        """The loop over the tiles of rows of a parallel iteration."""
        return next(loop for _, loop in self._outer if loop.var == "g")

    def lanes(self) -> Loop:
        """The loop across a block of columns."""
        return next(loop for _, loop in self._outer if loop.kind == "lanes")

    def pack_loops(self) -> tuple[Loop, Loop]:
        """Fresh loops down the columns and across them, the second not yet in the first."""
        assert self._inner is not None
        down = Loop(*self._inner)
        down.shared = self.shared
        return down, self.column_loop()

    def column_loop(self) -> Loop:
        """A fresh loop across a block of columns."""
        lanes = self.lanes()
        return Loop("lanes", "t", lanes.start, self.block, lanes.limit)

    def result_loops(self) -> tuple[Loop, Loop]:
        """Fresh loops over the results of a row-blocked reduction: the outermost and the innermost, which may be one."""
        _, inner = self.element_loops()
        outer = inner
        for _, around in reversed(self._outer[1:]):
            outer, inside = Loop(around.kind, around.var, around.start, around.extent), outer
            outer.body.append(inside)
        return outer, inner

    def at_row(self, x: Any, row: int) -> Any:
        """An index expression in a row of a parallel iteration; anything else as it is."""
        at = self.row + self.row_starts[row] if self.row_starts else self.row_var + row
        return substitute(x, {"row": at}) if isinstance(x, Expr) else x

    @property
    def repeats(self) -> bool:
        """Whether some rows are run by two parallel iterations."""
        if self.row_starts:
            return self.iterations * self.rows_at_once != self.last_row + 1  # taken for granted where sizes are known in a call
        return self.last_row % self.rows_at_once != 0

    # --- construction --------------------------------------------------------------------------------------------------

    def rows(self, blocks: list[Block], row: Int) -> None:
        """``row`` counts the elements of ``blocks`` in C order."""
        at = row
        for k, b in enumerate(reversed(blocks)):
            self.values[name_of(b.var)] = at if k == len(blocks) - 1 else mod(at, b.size)
            at = floordiv(at, b.size)

    def across(self, columns: Block, start: Int, block: int, t: Int) -> None:
        """``t``, from ``start`` on, counts the ``columns`` of a block: indices are simplified by what is known of a position within it."""
        lane = counter("l", block)
        self.values[name_of(columns.var)], self.lane[name_of(lane)] = start + lane, t - start

    def outer(self, *loops: Loop) -> None:
        """The loops inside the parallel one, each in the one before, around the innermost."""
        self._outer = list(enumerate(loops, 1))

    def inner(self, kind: str, name: str, start: Int, extent: Int, limit: Int | None = None) -> None:
        self._inner = (kind, name, start, extent, limit)
        self.level_of[name] = self.element_level


def size_of(blocks: list[Block]) -> Int:
    return prod(b.size for b in blocks)


def depends(e: Int, blocks: Iterable[Block]) -> bool:
    names = {n for b in blocks for n in b.names}
    return any(a.name in names for a in atoms(e))


def step_along(e: Int, v: Expr) -> Int | None:
    """How far apart neighbours along a variable are, None if that differs."""
    split = split_linear(e, name_of(v))
    return None if split is None else split[0]
