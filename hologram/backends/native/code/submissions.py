"""How many submissions of a device may be under way, whether Python or native code makes them."""

from __future__ import annotations

MAX_SUBMISSIONS = 128  # submissions of a device; the caller waits for the oldest before there are more
COLLECTED = 16  # how many may be under way before a call asks which have ended, a power of two; what holds much memory of the host asks at once
