"""The command line, ``hologram COMMAND``. A module a command; docs/command_line.md shows what each prints.

A command's module has ``HELP``, ``add_arguments(parser)`` and ``run(options) -> Result``. It imports what is heavy inside of functions, so that
``hologram --help`` and completion load neither NumPy nor LLVM.
"""
