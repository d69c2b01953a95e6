"""How much work is shared among threads, in rough nanoseconds."""

SERIAL_NS = 3_000.0  # less work than this stays on the calling thread
GRAIN_NS = 3_000.0  # work that a thread takes at one time
