"""The kernel IR: its statements, how they are built, its text, and the verifier."""
