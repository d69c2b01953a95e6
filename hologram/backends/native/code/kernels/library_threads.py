"""Native code that keeps a library's routines to the calling thread.

A library that wakes threads of its own waits for them, milliseconds where cores are busy. Its number of threads belongs to the whole process, so
whoever needs one thread is counted.
"""

from __future__ import annotations

from hologram.backends.native_lang.language import Function, Struct, compare_exchange, i32, i64, native, pause, release, void


class SetThreads(Function):
    """Says how many threads a library's routines run on; gives the number before."""

    def __call__(self, n: i32) -> i32:
        raise NotImplementedError


class LibraryThreads(Struct):
    """The process's one record of who has asked the library to keep to the calling thread: while there are ``users`` it does."""

    set: SetThreads
    lock: i64
    users: i64
    before: i64


@native
def change_users(threads: LibraryThreads, by: i64) -> void:
    """The first user keeps the library's number of threads, the last one gives it back."""
    while compare_exchange(threads.lock, 0, 1) == 0:
        pause()
    if by > 0 and threads.users == 0:
        threads.before = threads.set(1)
    threads.users = threads.users + by
    if threads.users == 0:
        threads.set(threads.before)
    release(threads.lock, 0)
