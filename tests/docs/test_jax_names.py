"""The table of JAX's names says what is there: it is compared with Hologram, and with JAX where that is installed."""

from __future__ import annotations

import pytest

from docs.site import jax_names

ROWS = jax_names.rows_of(jax_names.PAGE.read_text())


def test_every_module_has_a_row() -> None:
    assert {theirs: ours for theirs, (ours, _, _) in ROWS.items()} == jax_names.MODULES


@pytest.mark.parametrize("theirs", ROWS)
def test_names_that_are_said_to_be_absent_are(theirs: str) -> None:
    ours, _, absent = ROWS[theirs]
    assert not [n for n in absent if jax_names.has(ours, n)]


@pytest.mark.parametrize("theirs", ROWS)
def test_all_other_names_of_jax_are_there(theirs: str) -> None:
    jax = pytest.importorskip("jax")
    if jax.__version_info__[:2] != (0, 10):
        pytest.skip(f"the table is of JAX 0.10, not {jax.__version__}")
    ours, count, absent = ROWS[theirs]
    names = jax_names.public_names(theirs)
    assert len(names) == count and sorted(n for n in names if not jax_names.has(ours, n)) == absent
