"""LLVM as a compiler: the machine it compiles for, its passes, object code, and linking."""
