"""The language of the native runtime: a part of Python, translated to LLVM IR."""
