"""The native runtime: memory, threads and calls, in native code that is the same for every program.

- :mod:`~hologram.backends.native.storage`: memory of arrays;
- :mod:`~hologram.backends.native.calls`: running a compiled graph from Python;
- :mod:`~hologram.backends.native.dispatch`: native callables with specialisations;
- :mod:`~hologram.backends.native.pool`: the threads;
- :mod:`~hologram.backends.native.tracing`: sends calls to Python while something is traced.

The native parts, in :mod:`~hologram.backends.native.code`, are written in the subset of Python of
:mod:`~hologram.backends.native_lang.language`, over the records of :mod:`~hologram.backends.native.code.records`;
:mod:`~hologram.backends.native.module` compiles and links them. What they assume of the interpreter's objects is verified by
:mod:`~hologram.backends.native.code.object_layout`; ``module.why_not_native()`` says why Python serves the calls, if it does.
"""
