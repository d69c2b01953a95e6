"""Interrupts while programs are compiled: they arrive, once each, and leave nothing half done."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
import weakref

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram.backends.llvm.toolchain import signal_free, target
from hologram.errors import CompileError
from hologram.settings import override

posix = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs a timer that signals")


def run(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-X", "faulthandler", "-W", "error", "-c", program, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, env=dict(os.environ, HOLOGRAM_CACHE="0", HOLOGRAM_VERIFY="1"))


# Whatever makes, uses or frees objects of LLVM, from the first program to the end of the process. Importing llvmlite makes none.
EVERYTHING = """
import gc, sys
import llvmlite
import llvmlite.binding
import numpy as np

folder, seen = llvmlite.__path__[0], set()


def note(frame, event, argument):
    if event == "call" and frame.f_code.co_filename.startswith(folder):
        seen.add(frame.f_code.co_qualname)


sys.setprofile(note)
import hologram as hg
import hologram.numpy as hnp
from hologram.backends.llvm.toolchain import target
from hologram.errors import CompileError
from hologram.settings import override

f = hg.jit(lambda x: hnp.tanh(x @ x) + hnp.sort(x))
x = np.ones((100, 100), np.float32)
f(x)
for stage in ("llvm", "asm"):
    f.lower(x).compile().as_text(stage)
with override(target="+popcnt" if target.host().architecture == "x86_64" else "+neon"):
    hg.jit(lambda x: x + 2)(x)
unlinked = "declare i64 @nowhere()\\ndefine i64 @graph() { %r = call i64 @nowhere()\\n ret i64 %r }"
for text in ("nonsense", "define i64 @graph() { ret i64 }", unlinked):
    try:
        target.link(target.compile_ir(text), {})
    except CompileError as e:
        kept = e
try:
    target.compile_ir("", target.Target("z80-none-none"))
except CompileError:
    pass
del f
hg.clear_caches()
gc.collect()
hg.jit(lambda x: x + 3)(x)
sys.setprofile(None)
print(sorted(seen))
"""


def test_no_python_code_of_llvmlite_runs_where_signals_are_handled() -> None:
    done = run(EVERYTHING)
    assert (done.stdout, done.stderr) == ("[]\n", "")


# Interrupts at random times of compiling.
INTERRUPTED = """
import random, signal, sys, threading, time
import numpy as np
import hologram as hg
from hologram.trace.recorder import current, transforming

signalled, caught, lost = 0, 0, []
sys.unraisablehook = lambda u: isinstance(u.exc_value, ResourceWarning) or lost.append(repr(u))  # an import's open file


def interrupt(*_):
    global signalled
    signalled += 1
    raise KeyboardInterrupt


x = np.ones(8, np.float32)
hg.jit(lambda x: x + 1)(x)
signal.signal(signal.SIGALRM, interrupt)
random.seed(sys.argv[1])
end, n = time.monotonic() + 2, 0
while time.monotonic() < end:
    n += 1
    try:
        signal.setitimer(signal.ITIMER_REAL, random.uniform(1e-4, 0.03))
        hg.jit(hg.grad(lambda x: (x * n).sum()))(x)
        signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        caught += 1
    assert current() is None and not transforming()
signal.setitimer(signal.ITIMER_REAL, 0)
other = threading.Thread(target=lambda: hg.jit(lambda x: x - n)(x), daemon=True)
other.start()
other.join(30)
print(signalled > 20, signalled - caught, lost, other.is_alive())
"""


@posix
def test_interrupts_arrive_and_break_nothing() -> None:
    done = run(INTERRUPTED, "0")
    assert (done.stdout, done.stderr, done.returncode) == ("True 0 [] False\n", "", 0)


# An interrupt in each Python function that C code may call, the first time that compiling gets there: of other packages, and special methods.
IN_EACH_FUNCTION = """
import os, sys
import numpy as np
import hologram as hg
import hologram.numpy as hnp

ours = os.path.dirname(hg.__file__)
lost, seen, last = [], set(), None
sys.unraisablehook = lambda u: lost.append(repr(u))


def called_by_c(code):
    special = code.co_name.startswith("__") and code.co_name not in ("__init__", "__new__", "__call__")
    return special or not code.co_filename.startswith(ours)


def interrupt(frame, event, argument):
    global last
    if event == "call" and frame.f_code not in seen and called_by_c(frame.f_code):
        last = frame.f_code
        seen.add(last)
        raise KeyboardInterrupt


x = np.ones((8, 40), np.float32)
hg.jit(lambda x: x + 1)(x)
n = 0
while True:
    n, last = n + 1, None
    f = hg.jit(hg.grad(lambda x: (hnp.sort(x * n, 1)[:, 1:] @ (x + n)[0, 1:]).sum() + hnp.cumsum(x)[3]))
    try:
        sys.setprofile(interrupt)
        f(x)
        sys.setprofile(None)
        if last is None:
            break
        lost.append(last.co_qualname)
    except KeyboardInterrupt:
        pass
    except BaseException as e:
        lost.append((last.co_qualname, repr(e)))
print(len(seen) > 50, lost)
"""


def test_interrupts_are_lost_in_no_function_that_c_code_calls() -> None:
    done = run(IN_EACH_FUNCTION)
    assert (done.stdout, done.stderr, done.returncode) == ("True []\n", "", 0)


LEFT_BEHIND = """
import signal, time
from hologram.backends.llvm.toolchain import target

lines = "\\n".join(f"%x{i + 1} = fdiv double %x{i}, %x0" for i in range(20000))
signal.setitimer(signal.ITIMER_REAL, 0.3)
signal.signal(signal.SIGALRM, signal.default_int_handler)
try:
    target.compile_ir(f"define double @graph(double %x0) {{\\n{lines}\\nret double %x20000\\n}}", opt="full")
except KeyboardInterrupt:
    print("interrupted")
"""


@posix
def test_the_process_may_end_while_an_interrupted_compilation_goes_on() -> None:
    done = run(LEFT_BEHIND)
    assert (done.stdout, done.stderr, done.returncode) == ("interrupted\n", "", 0)


@posix
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_child_that_a_handler_forks_compiles_itself() -> None:
    children: list[int] = []
    before = signal.signal(signal.SIGALRM, lambda *_: children.append(os.fork()))
    started = threading.Event()

    @signal_free.signal_free
    def work() -> int:
        started.set()
        signal.raise_signal(signal.SIGALRM)  # handled by the main thread, which waits
        started.wait(0.3)
        return 7

    try:
        result = work()
    finally:
        signal.signal(signal.SIGALRM, before)
        if children == [0]:
            os._exit(result)
    assert result == 7 and os.waitstatus_to_exitcode(os.waitpid(children[0], 0)[1]) == 7


def test_code_is_freed_when_it_is_not_used() -> None:
    hg.jit(lambda x: x)(1.0)
    hg.clear_caches()
    before = len(signal_free._ends)
    functions = [hg.jit(lambda x, k=k: hnp.sin(x) * k) for k in range(5)]
    with override(cache=False):
        for f in functions:
            f(np.ones(5, np.float32))
        del f
        functions.clear()
        gc.collect()
        hg.clear_caches()
    assert len(signal_free._ends) == before


def test_errors_hold_nothing_of_llvm() -> None:
    with pytest.raises(CompileError) as error:
        target.compile_ir("define i64 @graph() { ret i64 }")
    assert not [x for x in gc.get_objects() if type(x) is target.llvm.ModuleRef and not x.closed]
    assert error.traceback


def test_in_other_threads_no_thread_is_started() -> None:
    names: list[int] = []
    inside = signal_free.signal_free(threading.get_ident)
    thread = threading.Thread(target=lambda: names.extend([inside(), threading.get_ident()]))
    thread.start()
    thread.join()
    assert names[0] == names[1] and inside() != threading.get_ident()


def test_what_belongs_to_an_object_goes_after_it() -> None:
    class Owned:
        pass

    owner, resource = Owned(), Owned()
    gone = weakref.ref(resource, lambda _: threads.append(threading.get_ident()))
    threads: list[int] = []
    signal_free.free_after(owner, resource)
    del resource, owner
    assert gone() is not None
    signal_free.signal_free(int)()
    assert gone() is None and threads != [threading.get_ident()]
