"""Arguments of networks' functions, and of special functions of an order."""

from __future__ import annotations

from typing import Any

from ..draft import Draft, Value
from .common import drawer, shaped


def _images(d: Draft, rank: int, last: bool, channels: int) -> tuple[tuple[int, ...], str]:
    space = tuple(d.pick((1, 2, 3, 5, 7, 8, 9, 16, 17) if rank < 3 else (1, 2, 3, 4)) for _ in range(rank))
    n = d.integer(1, 3)
    return ((n, *space, channels) if last else (n, channels, *space)), ("N" + "DHW"[3 - rank :] + "C" if last else "NC" + "DHW"[3 - rank :])


@drawer(*[f"nn.conv{t}{r}d" for t in ("", "_transpose") for r in (1, 2, 3)])
def _convolution(d: Draft, function: str) -> list[Value]:
    rank, transposed = int(function[-2]), "transpose" in function
    groups = d.pick((1, 1, 1, 2, 3))
    c, o = groups * d.pick((1, 2, 3, 8)), groups * d.pick((1, 2, 4, 8, 17))
    shape, _ = _images(d, rank, False, c)
    sizes = tuple(d.pick((1, 2, 3, 4)) for _ in range(rank))
    x = d.fresh(d.dtype("f"), shape)
    w = d.fresh(x.dtype, (c, o // groups, *sizes) if transposed else (o, c // groups, *sizes))

    def each(options: tuple[int, ...]) -> Any:
        return d.pick(options) if d.chance(0.6) else tuple(d.pick(options) for _ in range(rank))

    options: dict[str, Any] = {"groups": groups}
    if d.chance(0.5):
        options["stride"] = each((1, 2, 3))
    if d.chance(0.5):
        options["padding"] = each((0, 1, 2))
    if d.chance(0.4):
        options["dilation"] = each((1, 2, 3))
    bias = [d.fresh(x.dtype, (o,))] if d.chance(0.3) else []
    return d.emit(function, x, w, *bias, **options)


@drawer(*[f"nn.{k}_pool{r}d" for k in ("avg", "max", "adaptive_avg") for r in (1, 2, 3)])
def _pool(d: Draft, function: str) -> list[Value]:
    rank = int(function[-2])
    shape, _ = _images(d, rank, False, d.integer(1, 5))
    x = d.fresh(d.dtype("f"), shape)
    if "adaptive" in function:
        return d.emit(function, x, d.integer(1, 4))
    options: dict[str, Any] = {}
    if d.chance(0.5):
        options["stride"] = d.integer(1, 3)
    if d.chance(0.3):
        options["padding"] = d.integer(0, 1)
    if d.chance(0.3):
        options["ceil_mode"] = True
    if "max" in function and d.chance(0.3):
        options["dilation"] = d.integer(1, 2)
    return d.emit(function, x, d.integer(1, 3), **options)


@drawer("nn.dot_product_attention")
def _attention(d: Draft, function: str) -> list[Value]:
    lead = d.pick(((), (2,), (1, 3)))
    rows, keys, e, v = d.pick((1, 3, 8, 16, 17, 40)), d.pick((1, 3, 8, 16, 33)), d.pick((1, 4, 8, 16, 17)), d.pick((1, 4, 8, 9, 16))
    q, k, u = (d.fresh(t, s, "normal") for t, s in zip([d.dtype("f")] * 3, [(*lead, rows, e), (*lead, keys, e), (*lead, keys, v)], strict=True))
    options: dict[str, Any] = {}
    if d.chance(0.3):
        options["is_causal"] = True
    if d.chance(0.3):
        options["mask"] = d.fresh(d.pick(("bool", "float32")), (rows, keys), "tame")
    if d.chance(0.2):
        options["rows"] = d.pick((0, 2, 4, 16))
    return d.emit(function, q, k, u, **options)


@drawer("nn.cross_entropy", "nn.one_hot")
def _labels(d: Draft, function: str) -> list[Value]:
    n, c = d.integer(1, 40), d.pick((1, 2, 5, 10, 33))
    labels = d.fresh("int64", (n,), f"index:{c}")
    if function == "nn.one_hot":
        return d.emit(function, labels, c)
    return d.emit(function, shaped(d, (n, c), "f"), labels)


@drawer("nn.layer_norm", "nn.rms_norm")
def _norm(d: Draft, function: str) -> list[Value]:
    x = d.array("f", least=1)
    weight = shaped(d, x.shape[-1:], "f") if d.chance(0.6) else None
    options = {"weight": weight} if weight else {}
    if function == "nn.layer_norm" and weight and d.chance(0.5):
        options["bias"] = shaped(d, x.shape[-1:], "f")
    return d.emit(function, x, **options)


@drawer("special.polygamma")
def _polygamma(d: Draft, function: str) -> list[Value]:
    return d.emit(function, d.integer(0, 3), d.fresh(d.dtype("f"), d.shape(), "positive"))
