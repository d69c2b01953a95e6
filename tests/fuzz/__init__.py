"""A differential fuzzer: random programs over the whole public namespace, run in many ways that must agree.

::

    python -m tests.fuzz --minutes 120            two workers, seeds from 0; failures go to out/fuzz
    python -m tests.fuzz --seed 7000 --count 500  the seeds 7000 to 7499
    python -m tests.fuzz --seed 7123              one case: prints it, runs what its seed draws, shrinks what fails, writes a script
    python -m tests.fuzz --seed 7123 --every      the same, by every executor

Data
----
- A *program* (:mod:`program`) is a list of inputs (recipes for arrays: type, shape, contents, layout in memory), a list of steps (a function's
  public path and its arguments, in which ``Ref`` stands for an earlier value, ``Literal`` for an array that the program contains, ``Lambda`` for a
  body of its own), and the values that it gives. It holds no objects of any library, so it can be run by any, printed, and changed.
- A *case* (:mod:`generate`) is a program, a transform that it goes through (``vmap``, ``grad``, ``jvp``, ``vjp``, second derivatives), and
  thresholds of the compiler that are set to other values. It follows from its seed alone, as long as Hologram refuses the same steps.
- A *draft* (:mod:`draft`) is a program while it grows. Each step is traced and interpreted as it is added: what Hologram refuses, and what makes
  nearly all values infinite or NaN, does not become a part of it. :mod:`catalogue` finds functions by introspection, :mod:`arguments` draws
  arguments by parameters' names.
- A *run* (:mod:`executors`; each step by another library: :mod:`steps`) is a case with what its executors share: the traced graph, the
  interpreter's results, how far rounding may move them.

Oracles
-------
- *Bits.* Interpreting the graph with decompositions in the places of functions (:mod:`meaning`) gives the bits of ``exact`` code. So compiled code,
  any number of threads, any level of the CPU, saved programs, donation, closed-over constants and dynamic sizes are compared bit for bit; NaNs are
  one class. Host ops and complex numbers inside bodies are compared as the rest is.
- *Rounding.* Where the order of operations may differ, the interpreter runs a few times with each rounded result moved by a few units in the last
  place: results may differ by several times as much as these do. What lies behind a comparison or ``floor`` varies as it may, so there are no lists
  of ill-conditioned functions.
- *Other libraries.* NumPy, SciPy and JAX run single steps on the interpreter's operands, so that errors do not pile up and differences of types do
  not spread.
- *Identities.* ``vmap`` against a loop; derivatives against differences that settle; ``vjp`` against ``jvp`` by the dot product.

A mismatch is a failure, and so is any exception once a program was traced, unless the executor says what may be refused. Cases run in worker
processes (:mod:`campaign`), so crashes and hangs are found with their seeds. Failures are made smaller (:mod:`shrink`) and written as scripts
(:mod:`script`) that need nothing of the tests.

Invariants
----------
- A seed gives the same case in any process; executors draw from streams of their own, so adding one changes no program.
- Thresholds (:mod:`thresholds`) are set in every module that knows them, with empty caches and without the disk cache, and put back with empty
  caches.
- Nothing is filtered by what it fails with."""
