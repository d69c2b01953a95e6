"""A failure as a Python script that needs Hologram, NumPy and nothing of the tests."""

from __future__ import annotations

import inspect

from . import forms, values
from .program import source
from .trial import Failure

_CALLS = {
    "": "want = hg.make_graph(program)(*args)",
    "vmap": "f = hg.vmap(program)",
}


def _module_text(module: object) -> str:
    text = inspect.getsource(module)  # type: ignore[arg-type]
    body = text.split("from __future__ import annotations\n", 1)[1]
    return "\n".join(
        line for line in body.splitlines() if not line.startswith(("import hologram", "import numpy", "import ml_dtypes", "from typing"))
    )


def script(failure: Failure) -> str:
    """The script: what is wrong as a comment, the program, its transform, and the interpreter beside compiled code."""
    said = "\n".join("# " + line for line in failure.text.strip().splitlines()[-12:])
    overrides = "\n".join(f"{n.rpartition('.')[0]}  # {n.rpartition('.')[2]} = {v}" for n, v in failure.thresholds.items())
    lines = [
        f"# seed {failure.seed}, {failure.executor}{', ' + failure.transform if failure.transform else ''}",
        said,
        "# python -m tests.fuzz --seed " + str(failure.seed) + " runs the case as it was found",
        "from typing import Any",
        "",
        "import ml_dtypes",
        "import numpy as np",
        "",
        "import hologram as hg",
        "import hologram.numpy as hnp",
        "from numpy import inf, nan",
        "",
        *([f"# thresholds: {failure.thresholds}", *_setting(failure.thresholds)] if overrides else []),
        _module_text(values).strip(),
        "",
        _module_text(forms).strip(),
        "",
        "",
        source(failure.program),
        "",
        "",
        _RUN.get(failure.transform, _RUN["grad"]) if failure.transform else _RUN[""],
    ]
    return "\n".join(lines) + "\n"


def _setting(thresholds: dict[str, int]) -> list[str]:
    """Assignments to every module that has a name for a threshold."""
    from .thresholds import thresholds as known

    out = ["import importlib"]
    for name, value in thresholds.items():
        for module, local in known()[name].users if name in known() else ():
            out.append(f"importlib.import_module({module!r}).{local} = {value!r}")
    return [*out, "hg.settings.cache = False", ""]


_RUN = {
    "": """\
if __name__ == "__main__":
    from hologram.ir.interpreter import evaluate

    hg.settings.cache = False
    plain = [np.ascontiguousarray(a).reshape(a.shape) for a in args]
    want = evaluate(hg.make_graph(program)(*args), plain)
    for precision in ("exact", "standard", "fast"):
        got = hg.jit(program, precision=precision)(*args)
        for i, (g, w) in enumerate(zip(got, want)):
            g = np.asarray(g)
            print(precision, i, g.dtype, g.shape, "same bits" if g.tobytes() == w.tobytes() else f"differs\\n{g}\\n{w}")
""",
    "vmap": """\
if __name__ == "__main__":
    stacked = [np.stack([a] * 3) for a in args]
    print(hg.jit(hg.vmap(program))(*stacked))
""",
    "grad": """\
if __name__ == "__main__":
    floats = tuple(i for i, a in enumerate(args) if a.dtype.kind == "f")
    loss = lambda *xs: sum(hnp.sum(hnp.sin(y)) for y in program(*xs) if np.dtype(y.dtype).kind == "f")
    print(hg.jit(hg.grad(loss, argnums=floats))(*args))
""",
}
