"""The native runtime: memory, threads and calls, in native code that is the same for every program.

- :mod:`~hologram.backends.cpu.native.storage`: memory of arrays;
- :mod:`~hologram.backends.cpu.native.calls`: running a compiled graph from Python;
- :mod:`~hologram.backends.cpu.native.dispatch`: native callables with specialisations;
- :mod:`~hologram.backends.cpu.native.pool`: the threads;
- :mod:`~hologram.backends.cpu.native.tracing`: sends calls to Python while something is traced.

The native parts (``*_code.py``) are written in the subset of Python of :mod:`~hologram.backends.cpu.native_lang.language`, over the records of
:mod:`~hologram.backends.cpu.native.records`; :mod:`~hologram.backends.cpu.native.module` compiles and links them. What they assume of the
interpreter's objects is verified by :mod:`~hologram.backends.cpu.native.object_layout`; ``module.why_not_native()`` says why Python serves the
calls, if it does.
"""
