"""Files of saved programs that are damaged or hostile: they raise ProgramFileError, or are programs that do no harm."""

from __future__ import annotations

import copy
import io
import pickle
import zipfile
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hologram as hg
import hologram.numpy as hnp
from hologram.errors import ArgumentError, HologramError, ProgramFileError
from hologram.primitives import TABLE
from hologram.settings import override
from tests.support.optable import seeded
from tests.support.stored.program_files import contents, packed

X = np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4)
I = np.array([2, 0, 1])  # noqa: E741 - indices
HELD = hg.tensor(np.arange(8, dtype=np.float32).reshape(4, 2))


def _dense(x: Any, i: Any) -> Any:
    return {"y": hnp.tanh(x @ HELD)[i], "n": [hnp.cumsum(hnp.sort(x, axis=1), axis=0), hnp.argmax(x, axis=1) + i // 2, None]}


def _loops(x: Any, i: Any) -> Any:
    last, every = hg.scan(lambda c, row: (c + row, hnp.sum(c)), hnp.zeros(4), x)
    return last, every, hg.switch(i[0], [hnp.sin, hnp.cos, lambda v: v * 2], x), hg.fori_loop(0, 3, lambda k, c: c * 2 + k, x)


def _factors(x: Any, i: Any) -> Any:
    a = x @ x.T + 4 * hnp.eye(3, dtype=x.dtype)
    return hg.linalg.solve(a, x), hg.linalg.svd(x)[1], hg.fft.rfft(x), a.at[i].add(1.0), hnp.pad(x, 1)[::2, 1:]


@hg.custom_jvp
def _doubled(x: Any) -> Any:
    return x * 2


@hg.custom_vjp
def _halved(x: Any) -> Any:
    return x / 2


_doubled.defjvp(lambda primals, tangents: (_doubled(*primals), tangents[0] + HELD[0, 0]))
_halved.defvjp(lambda x: (x / 2, x), lambda x, ct: (ct * x,))


def _ruled(x: Any, i: Any) -> Any:
    return _doubled(x)[i] + _halved(x)


PROGRAMS = [hg.export(f, X, I).to_bytes() for f in (_dense, _loops, _factors, _ruled)]
DYNAMIC = hg.export(hg.jit(lambda x, i: (x[1:, : x.shape[1] // 2], hnp.take(x, i, axis=0)), dynamic={0: (0, 1)}), X, I).to_bytes()


def changed(change: Callable[[Any], Any], data: bytes = PROGRAMS[0]) -> bytes:
    """A program's file with its header changed in place."""
    header, members = contents(data)
    change(header)
    return packed(header, members)


def refused(data: bytes, words: str = "load") -> None:
    with pytest.raises(ProgramFileError, match=words):
        hg.load(data)


def graph_of(inputs: list[Any], nodes: list[Any], outputs: list[int]) -> Callable[[Any], None]:
    """A change that makes another graph, of positional arguments, the program."""

    def change(header: Any) -> None:
        header["graph"] = {"inputs": inputs, "nodes": nodes, "outputs": outputs}
        header["arguments"] = ["tuple", ["tuple", *["*"] * len(inputs)], ["OrderedDict", []]]
        header["results"] = ["list", *["*"] * len(outputs)]
        header["weak"], header["parameters"] = [False] * len(inputs), []

    return change


def program(inputs: list[Any], nodes: list[Any], outputs: list[int]) -> Any:
    return hg.load(changed(graph_of(inputs, nodes, outputs)))


def test_whole_files_come_back() -> None:
    """Nothing is added to what Hologram wrote: indices are known to be in range, of symbolic axes too."""
    for data in (*PROGRAMS, DYNAMIC):
        assert hg.load(data).to_bytes() == data


# --- random damage ---------------------------------------------------------------------------------------------------


@given(st.sampled_from([*PROGRAMS, DYNAMIC]), st.data())
def test_damaged_bytes(file: bytes, data: st.DataObject) -> None:
    damaged = bytearray(file)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, max(len(damaged) - 1, 0)))
        if not damaged:
            break
        match data.draw(st.sampled_from(["flip", "cut", "insert", "end"])):
            case "flip":
                damaged[at] ^= data.draw(st.integers(1, 255))
            case "cut":
                del damaged[at : at + data.draw(st.integers(1, 50))]
            case "insert":
                damaged[at:at] = data.draw(st.binary(max_size=20))
            case "end":
                del damaged[at:]
    try:
        hg.load(bytes(damaged))
    except ProgramFileError:
        pass


@given(st.binary(max_size=200))
def test_any_bytes(data: bytes) -> None:
    refused(data)


SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 6), st.sampled_from([2**31, 2**63, -(2**63), 10**30]), st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(["", "*", "n0", "float32", "int64", "bool", "tuple", "full", "00", *sorted(TABLE)]),
)  # fmt: skip
VALUES = st.recursive(
    SCALARS, lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=3), inner, max_size=2)), max_leaves=6
)
SMALL = st.one_of(st.booleans(), st.integers(-3, 6), st.lists(st.integers(-3, 6), max_size=3), st.sampled_from([r for r in TABLE if r != "while"]))


def places(data: Any, found: list[Any]) -> list[Any]:
    """Every ``(container, key)`` in data of JSON."""
    for key in range(len(data)) if isinstance(data, list) else list(data) if isinstance(data, dict) else ():
        found.append((data, key))
        places(data[key], found)
    return found


def mutated(file: bytes, data: st.DataObject, values: Any) -> bytes:
    """The file with one to three values of its header replaced, copied from elsewhere, or left out."""
    header, members = contents(file)
    for _ in range(data.draw(st.integers(1, 3))):
        spots = places(header, [])
        container, key = data.draw(st.sampled_from(spots))
        match data.draw(st.sampled_from(["replace", "replace", "copy", "drop", "double"])):
            case "replace":
                container[key] = data.draw(values)
            case "copy":
                other, where = data.draw(st.sampled_from(spots))
                container[key] = copy.deepcopy(other[where])
            case "drop":
                del container[key]
            case "double" if isinstance(container, list):
                container.insert(key, copy.deepcopy(container[key]))
    return packed(header, members)


@given(st.sampled_from([*PROGRAMS, DYNAMIC]), st.data())
def test_mutated_headers_load_or_are_refused(file: bytes, data: st.DataObject) -> None:
    try:
        loaded = hg.load(mutated(file, data, VALUES))
    except ProgramFileError:
        return
    str(loaded)
    assert hg.load(loaded.to_bytes()).to_bytes() == loaded.to_bytes()


@given(st.sampled_from([*PROGRAMS, DYNAMIC]), st.data())
def test_mutated_programs_do_no_harm(file: bytes, data: st.DataObject) -> None:
    """Those that load are compiled and run, on arguments of the types that they say."""
    try:
        loaded = hg.load(mutated(file, data, SMALL))
    except ProgramFileError:
        return
    if all(isinstance(n, int) for node in loaded.graph.inputs for n in node.shape):
        leaves = [np.ones(t.shape, t.dtype.np) if not t.weak else t.dtype.np.type(1).item() for t in loaded._signature.types]
        args, options = hg.tree.unflatten(loaded._signature.treedef, leaves)
    else:
        args, options = [X, I][: len(loaded.in_specs[0])], {}
    with override(memory_limit=2**28):
        try:
            hg.block_until_ready(loaded(*args, **options))
        except HologramError:
            pass


# --- one thing wrong -------------------------------------------------------------------------------------------------


def put(**fields: Any) -> Callable[[Any], Any]:
    return lambda header: header.update(fields)


def node(*parts: Any) -> Callable[[Any], Any]:
    """The first node of the graph is another."""

    def change(header: Any) -> None:
        header["graph"]["nodes"][0] = list(parts)

    return change


CHANGES: list[tuple[Callable[[Any], Any], str]] = [
    (put(format="other"), "does not say that it is a hologram program"),
    (put(version=3), "has version 3 of the format, and this Hologram reads versions 1 and 2"),
    (put(version=True), "version"),
    (put(precision="loose"), "'loose' is not one of exact"),
    (put(name="a\nb"), "is not a name"),
    (put(name=3), "'name', a str"),
    (put(parameters=["x", 1]), "is not a name"),
    (put(symbols=["n0, i64 0"]), "is not the names of symbols"),
    (put(symbols=["n0", "n7"]), "declares n0, n7, and no argument's shape says what that is"),
    (lambda header: (put(symbols=["n0"])(header), node("iota", [], [[[[1, "n0"]]], 0, "int64"])(header)), "declares n0, and no argument's"),
    (put(weak=[True, False]), "no Python number is a float32"),
    (put(weak=[]), "0 leaves of the arguments for 2 inputs"),
    (put(donated=[7]), "donated"),
    (put(arrays=[]), "arrays in the archive"),
    (put(arrays=[[[4, 2], "float64"]]), "an array is"),
    (put(arrays=[[[4, 3], "float32"]]), "an array is"),
    (put(arguments="*"), "arguments are no tuple"),
    (put(results=["dict", ["b", "a"], "*", "*"]), "not in order"),
    (put(results=["dict", ["a", "a"], "*", "*"]), "is not the keys of a dict"),
    (put(results=["EighResult", "*"]), "is not a EighResult of 2 fields"),
    (put(results=["Popen", "*"]), "is not a structure of containers"),
    (put(assumptions=[-1]), "taken not to be negative"),
    (put(graph={"inputs": [], "nodes": []}), "'outputs', a list"),
    (node("add", [0, 99], []), "node 2, add: value 99 is read where 2 are known"),
    (node("add", [0, 2], []), "node 2, add: value 2 is read where 2 are known"),
    (node("add", [0, -1], []), "value -1"),
    (node("add", [0, True], []), "value True"),
    (node("add", [0], []), "1 inputs and 0 attributes for 2 and 0"),
    (node("add", [0, 1], []), "add"),
    (node("os.system", [], ["true"]), "there is no op 'os.system'"),
    (node("mark", [0], [0]), "there is no op 'mark'"),
    (node("sort_keys", [0], [0]), "there is no op 'sort_keys'"),
    (node("callback", [0], ["print"]), "calls no Python functions"),
    (node("cast", [0], ["float31"]), "'float31' is not the name of an element type"),
    (node("cast", [0], ["<f4"]), "is not the name of an element type"),
    (node("reshape", [0], [[12, True]]), "True is not an integer"),
    (node("reshape", [0], [[-3, -4]]), "-3 is taken not to be negative"),
    (node("broadcast", [0], [[2**44, 3, 4], [1, 2]]), "is larger than any memory"),
    (node("broadcast", [0], [[2**80, 3, 4], [1, 2]]), "is not an integer"),
    (node("transpose", [0], [[0, 0]]), "does not permute"),
    (node("reduce_sum", [0], [[1, 0]]), "do not ascend"),
    (node("sort", [0], [1, 5]), "5 is not true or false"),
    (node("const", [], ["float32", "zz"]), "is not bits"),
    (node("const", [], ["float32", "0000"]), "2 bytes"),
    (node("leaf", [], [5, [4, 2], "float32"]), "array 5 of 1"),
    (node("leaf", [], [0, [2, 4], "float32"]), "the array is"),
    (node("slice", [0], [[0, 0], [3, 5], [1, 1]]), "leaves the axis"),
    (node("project", [0], [0, [3], "float32"]), "has one result"),
    (node("custom", [0], ["rule", 0]), "is not the number of a derivative"),
    (node("polygamma", [0], [10**6]), "orders"),
    (node("iota", [], [["n0"], 0, "int64"]), "'n0' is not an integer or a polynomial"),
    (node("iota", [], [[[[1, "n0"]]], 0, "int64"]), "declares no symbol 'n0'"),
    (node("iota", [], [[[[1, ["//", 1, 0]]]], 0, "int64"]), "a division by 0"),
]


@pytest.mark.parametrize(("change", "words"), CHANGES)
def test_what_no_program_says(change: Callable[[Any], Any], words: str) -> None:
    refused(changed(change), words)


def _inside(change: Callable[[Any], None]) -> bytes:
    """The loops' program with a change in its ``scan``."""

    def inside(header: Any) -> None:
        change(next(n for n in header["graph"]["nodes"] if n[0] == "scan"))

    return changed(inside, PROGRAMS[1])


def _constants(n: int) -> Callable[[Any], None]:
    def change(scan: Any) -> None:
        scan[2][1] = n

    return change


def _leaf(scan: Any) -> None:
    scan[2][0]["nodes"].append(["leaf", [], [0, [4, 2], "float32"]])


def _symbol(scan: Any) -> None:
    body, n = scan[2][0], [[1, "n0"]]
    at = len(body["inputs"]) + len(body["nodes"])
    body["nodes"] += [["slice", [0], [[n], [[*n, [1]]], [1]]], ["reshape", [at], [[]]]]
    body["outputs"][1] = at + 1


def test_symbols_in_loops_are_those_of_arguments() -> None:
    header, members = contents(PROGRAMS[1])
    _symbol(next(n for n in header["graph"]["nodes"] if n[0] == "scan"))
    refused(packed(header | {"symbols": ["n0"]}, members), "declares n0, and no argument's shape says what that is")
    refused(packed(header, members), "declares no symbol 'n0'")


def test_loops_that_do_not_fit() -> None:
    for n in (-1, 1, 5):
        refused(_inside(_constants(n)), "scan")
    refused(_inside(_leaf), "array 0 of 0")
    refused(_inside(lambda scan: scan.__setitem__(1, [])), "scan")
    refused(_inside(lambda scan: scan[2].__setitem__(0, 3)), "3 is not a graph")
    graph: Any = {"inputs": [[[], "int64"]], "nodes": [], "outputs": [0]}
    for _ in range(70):
        graph = {"inputs": [[[], "int64"]], "nodes": [["switch", [0], [[graph]]]], "outputs": [0]}
    refused(changed(put(graph=graph)), "nested deeper than 64")


def test_results_that_are_not_there() -> None:
    def change(header: Any) -> None:
        project = next(n for n in header["graph"]["nodes"] if n[0] == "project")
        project[2][0] = 9

    refused(changed(change, PROGRAMS[1]), "has no result 9")

    def read(header: Any) -> None:
        nodes = header["graph"]["nodes"]
        header["graph"]["outputs"][0] = 2 + next(i for i, n in enumerate(nodes) if n[0] == "scan")

    refused(changed(read, PROGRAMS[1]), "scan has several results")


def test_derivatives_of_other_functions() -> None:
    def change(what: Callable[[Any], Any]) -> bytes:
        return changed(lambda header: what(header["derivatives"]), PROGRAMS[3])

    assert len(contents(PROGRAMS[3])[0]["derivatives"]) == 2
    refused(change(lambda rules: rules.pop()), "is not the number of a derivative")
    refused(change(lambda rules: rules[0].pop()), "is not a derivative")
    refused(change(lambda rules: rules[0].__setitem__(2, [1])), "1 is not true or false")
    refused(change(lambda rules: rules[0].__setitem__(2, [])), "custom")
    refused(change(lambda rules: rules[0].__setitem__(1, [9])), "array 9 of 1")
    refused(change(lambda rules: rules[1].__setitem__(3, 0)), "the derivative is that of another function")
    refused(change(lambda rules: rules[0][3]["outputs"].clear()), "the derivative is that of another function")


# --- archives --------------------------------------------------------------------------------------------------------


def test_archives() -> None:
    header, members = contents(PROGRAMS[0])
    refused(packed(header, members, zipfile.ZIP_DEFLATED), "compressed")
    refused(packed(header, members | {"extra": b""}), "not program.json and its arrays")
    refused(packed(header, {}), "arrays in the archive")
    refused(packed(b"{", members), "damaged")
    refused(packed(b"[]", members), "does not say")
    refused(packed(b'{"a": NaN}', members), "NaN is no number")
    refused(packed(b"[" * 100_000, members), "damaged")
    refused(packed(b"1" * 10_000, members), "damaged")
    refused(PROGRAMS[0][:-30], "damaged")
    refused(pickle.dumps(print), "damaged")
    with pytest.warns(UserWarning, match="Duplicate"):
        doubled = io.BytesIO(PROGRAMS[0])
        with zipfile.ZipFile(doubled, "a") as archive:
            archive.writestr("program.json", "{}")
    refused(doubled.getvalue(), "the archive holds")


def test_members_do_not_overlap(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = zipfile.ZipFile.infolist
    whole = len(PROGRAMS[0])

    def grown(archive: zipfile.ZipFile) -> list[zipfile.ZipInfo]:
        found = sizes(archive)
        for member in found:
            member.file_size = member.compress_size = whole // 2 + 1
        return found

    monkeypatch.setattr(zipfile.ZipFile, "infolist", grown)
    refused(PROGRAMS[0], "overlap")


@pytest.mark.parametrize("file", [None, 3, [b"PK"]])
def test_what_is_no_file(file: Any) -> None:
    with pytest.raises(ArgumentError, match="file is a path, bytes or a binary file"):
        hg.load(file)
    with pytest.raises(ArgumentError, match="export takes a function"):
        hg.export(file)


def test_arrays_of_objects_are_not_unpickled() -> None:
    header, members = contents(PROGRAMS[0])
    file = io.BytesIO()
    np.save(file, np.array([print], object), allow_pickle=True)
    refused(packed(header, {"arrays/0.npy": file.getvalue()}), "an array is object")
    refused(packed(header, {"arrays/0.npy": members["arrays/0.npy"][:-1]}), "damaged")
    refused(packed(header, {"arrays/0.npy": members["arrays/0.npy"] + b"1234"}), "has 9 elements")
    huge = io.BytesIO()
    np.lib.format.write_array_header_1_0(huge, {"descr": "<f4", "fortran_order": False, "shape": (2**40, 2**40)})
    refused(packed(header | {"arrays": [[[2**40, 2**40], "float32"]]}, {"arrays/0.npy": huge.getvalue()}), "has 0 elements")


def test_bytes_that_are_no_bools() -> None:
    header, members = contents(hg.export(lambda x: hnp.where(hg.tensor([True, False]), x, 0.0), np.ones(2, np.float32)).to_bytes())
    name, data = members.popitem()
    loaded = hg.load(packed(header, {name: data[:-2] + b"\xff\x00"}))
    assert np.asarray(loaded(np.ones(2, np.float32))).tolist() == [1, 0]


# --- what rows take for granted --------------------------------------------------------------------------------------


def test_indices_are_in_range() -> None:
    take = program([[[3], "float32"], [[4], "int64"]], [["gather", [0, 1], [[0], [1], 0]]], [2])
    assert np.asarray(take(np.array([1, 2, 3], np.float32), np.array([-(2**62), -1, 2**62, 2]))[0]).ravel().tolist() == [1, 1, 3, 3]
    small = program([[[300], "float32"], [[2], "uint8"]], [["gather", [0, 1], [[0], [1], 0]]], [2])
    assert "min" not in str(small.graph)  # no uint8 is out of range


OLD = [
    ("take", [[3, 4, 2], [5]], [1]),
    ("take", [[4], [2, 3]], [0]),
    *((name, [[4, 3], [5], [5, 3]], [0, 0]) for name in ("scatter_set", "scatter_add", "scatter_mul", "scatter_max", "scatter_min")),
    ("scatter_set", [[2, 3, 4, 2], [2, 5], [2, 3, 5, 2]], [2, 1]),
    ("scatter_add", [[3, 4], [], [3]], [1, 0]),
]


@pytest.mark.parametrize(("name", "shapes", "attrs"), OLD)
def test_gathers_and_scatters_of_version_1(name: str, shapes: list[list[int]], attrs: list[int]) -> None:
    """Along one axis, the indices' axes in its place."""
    rng = seeded(name, shapes)
    axis, batch = (*attrs, 0)[:2]
    types = ["float32", "int64", "float32"][: len(shapes)]
    old = changed(graph_of([list(t) for t in zip(shapes, types, strict=True)], [[name, [*range(len(shapes))], attrs]], [len(shapes)]))
    loaded = hg.load(changed(put(version=1), old))
    n = shapes[0][axis]
    x, at = rng.standard_normal(shapes[0]).astype(np.float32), rng.integers(0 if name == "take" else -2, n, shapes[1])
    if name == "take":
        np.testing.assert_array_equal(np.asarray(loaded(x, at)[0]), np.take(x, at, axis))
        return
    updates = rng.standard_normal(shapes[2]).astype(np.float32)
    combine = {"set": lambda a, b: b, "add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}[name.removeprefix("scatter_")]
    want = x.copy()
    for place in np.ndindex(*shapes[1]):
        if at[place] >= 0:
            here = (*place[:batch], *[slice(None)] * (axis - batch), at[place])
            there = (*place[:batch], *[slice(None)] * (axis - batch), *place[batch:])
            want[here] = combine(want[here], updates[there])
    np.testing.assert_allclose(np.asarray(loaded(x, at, updates)[0]), want, rtol=1e-6)


def test_scatters_of_version_1_are_checked() -> None:
    old = graph_of([[[4], "float32"], [[2], "int64"], [[3], "float32"]], [["scatter_set", [0, 1, 2], [0, 0]]], [3])
    refused(changed(put(version=1), changed(old)), "updates of shape")
    take = graph_of([[[4], "float32"], [[2], "int64"]], [["take", [0, 1], [1]]], [2])
    refused(changed(put(version=1), changed(take)), "shared axes")
    refused(changed(take), "there is no op 'take'")


def test_branches_are_there() -> None:
    branch = {"inputs": [[[], "float32"]], "nodes": [["neg", [0], []]], "outputs": [1]}
    other = {"inputs": [[[], "float32"]], "nodes": [], "outputs": [0]}
    nodes = [["switch", [0, 1], [[branch, other]]], ["project", [2], [0, [], "float32"]]]
    switch = program([[[], "int64"], [[], "float32"]], nodes, [3])
    assert [float(switch(np.int64(i), np.float32(2))[0]) for i in (-(2**40), 0, 1, 2**40)] == [-2, -2, 2, 2]


def test_divisors_and_counts() -> None:
    types = [[[3], "int32"], [[3], "int32"]]
    least = np.iinfo(np.int32).min
    divide = program(types, [["div_trunc", [0, 1], []], ["rem_trunc", [0, 1], []]], [2, 3])
    quotient, rest = divide(np.array([7, least, 7], np.int32), np.array([0, -1, -2], np.int32))
    assert np.asarray(quotient).tolist() == [7, least, -3] and np.asarray(rest).tolist() == [0, 0, 1]
    shift = program(types, [["shl_low", [0, 1], []], ["shr_low", [0, 1], []]], [2, 3])
    assert np.asarray(shift(np.array([1, 1, 1], np.int32), np.array([1, 100, -1], np.int32))[0])[0] == 2


def test_pivots_are_rows() -> None:
    types = [[[2, 2], "float64"], [[2], "int32"], [[1, 2], "float64"]]
    solve = program(types, [["lu_solve", [0, 0, 1, 2], [True]], ["project", [3], [0, [1, 2], "float64"]]], [4])
    solve(np.eye(2), np.array([10**9, -(10**9)], np.int32), np.ones((1, 2)))
    wide = [[[2, 2], "float64"], [[2, 9], "float64"], [[2], "int32"], [[1, 9], "float64"]]
    refused(changed(graph_of(wide, [["lu_solve", [0, 1, 2, 3], [True]]], [])), "lu_solve")
    floats = [[[2, 2], "float64"], [[2], "float32"], [[1, 2], "float64"]]
    refused(changed(graph_of(floats, [["lu_solve", [0, 0, 1, 2], [True]]], [])), "lu_solve")


def test_slices_of_symbolic_axes_stay_inside() -> None:
    header, members = contents(DYNAMIC)
    header["assumptions"] = []
    loaded = hg.load(packed(header, members))
    cut = next(n for n in header["graph"]["nodes"] if n[0] == "slice")
    cut[2][0][0] = 5
    strict = hg.load(packed(header, members))
    wide, few = np.ones((9, 8), np.float32), np.ones((4, 8), np.float32)
    assert loaded(wide, I)[0].shape == (8, 4) and loaded(few, I)[0].shape == (3, 4)
    assert strict(wide, I)[0].shape == (4, 4)
    with pytest.raises(ArgumentError, match="exported for sizes"):
        strict(few, I)


def test_polynomials_stay_small() -> None:
    wide = [[1, f"n{i}"] for i in range(40)]
    product: Any = [[1, *[["//", wide, 3]] * 15]]

    def change(header: Any) -> None:
        header["symbols"] = [f"n{i}" for i in range(40)]
        graph_of([[[[n]], "float32"] for n in wide], [], [0])(header)
        header["assumptions"] = [product] * 3

    hg.load(changed(change))
    for _ in range(40):
        product = [[1, ["%", product, 7]]]
    refused(changed(change), "is not an integer or a polynomial")
