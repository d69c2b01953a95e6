"""The writer: the example learns more than how frequent characters are, and samples are functions of their key."""

from __future__ import annotations

import numpy as np
import pytest

from examples import charlm
from hologram import random

TEXT = "an array of arrays is an array; a tensor is not an arrow. " * 40
ALPHABET, DATA = np.unique(np.frombuffer(TEXT.encode(), np.uint8), return_inverse=True)
MODEL = charlm.Model(len(ALPHABET), width=32, heads=2, layers=1, length=16, batch=16)


@pytest.fixture(scope="module")
def trained() -> tuple[dict, list[float]]:
    p, losses, rate = charlm.train(MODEL, DATA, 120, random.key(0))
    assert rate > 0
    return p, losses


def test_it_learns(trained: tuple[dict, list[float]]) -> None:
    shares = np.bincount(DATA) / len(DATA)
    entropy = -np.sum(shares * np.log(shares))
    losses = trained[1]
    assert abs(losses[0] - np.log(MODEL.symbols)) < 0.5 and np.mean(losses[-10:]) < entropy / 2


def test_samples_are_functions_of_their_key(trained: tuple[dict, list[float]]) -> None:
    texts = [np.asarray(charlm.sample(MODEL, 60, trained[0], DATA[: MODEL.length], random.key(k))) for k in (1, 1, 2)]
    np.testing.assert_array_equal(texts[0], texts[1])
    assert np.any(texts[0] != texts[2]) and texts[0].shape == (60,)
    assert 0 <= texts[0].min() and texts[0].max() < MODEL.symbols


def test_a_low_temperature_takes_the_likeliest_character(trained: tuple[dict, list[float]]) -> None:
    window = DATA[: MODEL.length]
    drawn = np.asarray(charlm.sample(MODEL, 20, trained[0], window, random.key(1), 1e-6))
    for character in drawn:
        assert character == np.argmax(np.asarray(charlm.logits(MODEL, trained[0], window[None]))[0, -1])
        window = np.append(window[1:], character)


def test_what_follows_is_not_seen(trained: tuple[dict, list[float]]) -> None:
    rows = np.stack([DATA[:16], DATA[:16]])
    rows[1, 9] = (rows[1, 9] + 1) % MODEL.symbols
    first, second = np.asarray(charlm.logits(MODEL, trained[0], rows))
    np.testing.assert_allclose(first[:9], second[:9], rtol=1e-5, atol=1e-6)
    assert np.all(np.abs(first[9:] - second[9:]).max(axis=-1) > 1e-6)


def test_the_text_is_pythons_own() -> None:
    text = charlm.text()
    assert text.startswith("The Zen of Python") and "Command-line parsing library" in text and len(text) > 100_000
    assert set(text) <= {chr(i) for i in range(32, 127)} | {"\n"}


def test_the_operations_of_a_step_are_counted() -> None:
    assert charlm.Model(symbols=100).flops() == 3 * (2 * (12 * 3 * 128**2 + 100 * 128) + 4 * 3 * 128 * 128)
