"""The cache of what was used recently: limits of keys and of bytes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hologram.support.lru_cache import Recent


@given(st.integers(1, 20), st.lists(st.integers(0, 40), max_size=200))
def test_the_latest_keys_stay(limit: int, keys: list[int]) -> None:
    cache = Recent(limit)
    for k in keys:
        if cache.get(k) is None:
            cache.put(k, k + 1)
        assert len(cache) <= limit and cache.get(k) == k + 1
    latest = list(dict.fromkeys(reversed(keys)))[: limit - max(1, limit // 8) + 1]
    assert all(cache.get(k) == k + 1 for k in latest)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 60)), max_size=60))
def test_bytes_stay_within_their_limit(puts: list[tuple[int, int]]) -> None:
    cache = Recent(100, lambda: 100)
    sizes: dict[int, int] = {}
    for key, nbytes in puts:
        cache.put(key, key, nbytes)
        sizes[key] = nbytes
        kept = cache.values()
        assert key in kept and cache.nbytes == sum(sizes[k] for k in kept) and (cache.nbytes <= 100 or len(kept) == 1)
