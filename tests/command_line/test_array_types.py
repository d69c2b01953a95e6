"""Arguments of a call as text."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import hologram as hg
from hologram import dtypes
from hologram.command_line.array_types import arguments_of
from hologram.command_line.result import CommandError

Array = hg.ShapeDtypeStruct


@pytest.mark.parametrize(
    ("text", "positional", "keywords"),
    [
        ("", (), {}),
        ("f32[32,128]", (Array((32, 128), "float32"),), {}),
        ("float64[], bf16 , bool[0]", (Array((), "float64"), Array((), "bfloat16"), Array((0,), "bool")), {}),
        ("c64[2],u8[2],i64[2]", tuple(Array((2,), t) for t in ("complex64", "uint8", "int64")), {}),
        ("f8_e4m3fn[4]", (Array((4,), "float8_e4m3fn"),), {}),
        ("3, -2.5, 1e3, True, None, 'relu'", (3, -2.5, 1000.0, True, None, "relu"), {}),
        ("[f32[3], (i32[1], 2)]", ([Array((3,), "float32"), (Array((1,), "int32"), 2)],), {}),
        ('{"w": f32[3], b: {c: 1}}', ({"w": Array((3,), "float32"), "b": {"c": 1}},), {}),
        ("f32[3], axis=1, bias=f32[]", (Array((3,), "float32"),), {"axis": 1, "bias": Array((), "float32")}),
        ("f32 [ 3 , 4 ,]", (Array((3, 4), "float32"),), {}),
        ("(), [], {}", ((), [], {}), {}),
    ],
)
def test_arguments(text: str, positional: tuple[Any, ...], keywords: dict[str, Any]) -> None:
    assert arguments_of(text) == (positional, keywords)


@pytest.mark.parametrize(
    ("text", "said", "at"),
    [
        ("f32[3", "expected ',' or ']'", 5),
        ("f32[n]", "'n' is no element type", 4),
        ("f32[-1]", "extents are integers", 3),
        ("f32[1.5]", "extents are integers", 3),
        ("i32, f33[2]", "'f33' is no element type", 5),
        ("f32 f32", "expected ','", 4),
        ("f32, ]", "expected an array", 5),
        ("f32 $", "expected ','", 4),
        ("a=1, f32", "a positional argument after", 8),
        ("{1 2}", "expected ':'", 3),
        ("x=", "expected an array", 2),
    ],
)
def test_errors_name_the_place(text: str, said: str, at: int) -> None:
    with pytest.raises(CommandError, match="--shapes: ") as e:
        arguments_of(text)
    first, shown, mark = str(e.value).split("\n")
    assert said in first and shown == f"  {text}" and mark.index("^") - 2 == at


arrays = st.builds(Array, st.lists(st.integers(0, 1000), max_size=4).map(tuple), st.sampled_from([d.name for d in dtypes.ALL]))
numbers = st.integers(-1000, 1000) | st.floats(allow_nan=False, allow_infinity=False) | st.booleans() | st.none()
values = st.recursive(
    arrays | numbers | st.text("abc xyz[],=", max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text("abc", min_size=1, max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)


def written(x: Any) -> str:
    if isinstance(x, Array):
        return f"{x.dtype}[{','.join(map(str, x.shape))}]"
    if isinstance(x, dict):
        return "{" + ", ".join(f"{k!r}: {written(v)}" for k, v in x.items()) + "}"
    if isinstance(x, tuple):
        return "(" + "".join(f"{written(v)}, " for v in x) + ")"
    return "[" + ", ".join(map(written, x)) + "]" if isinstance(x, list) else repr(x)


@given(st.lists(values, max_size=3), st.dictionaries(st.sampled_from(["axis", "k", "bias"]), values, max_size=2))
def test_what_is_written_is_read(positional: list[Any], keywords: dict[str, Any]) -> None:
    text = ", ".join([*map(written, positional), *(f"{k}={written(v)}" for k, v in keywords.items())])
    found = arguments_of(text)
    assert found == (tuple(positional), keywords)
    assert list(map(type, found.positional)) == list(map(type, positional))
