"""Dynamic programming over sequences, in tables and in rows; and a checksum."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.loop_programs.program import Asked, Program

ASKED = Asked(jax=0.7, numba=1.2)
GAP, MATCH, MISMATCH = 2, 3, -3


def _two_words(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    return rng.integers(0, 4, n), rng.integers(0, 4, n)


# --- the longest common subsequence: a table by elements --------------------------------------------------------------------------------


def _lcs(f: Any, a: Any, b: Any) -> Any:
    n, m = len(a), len(b)

    def element(i: Any, j: Any, table: Any) -> Any:
        longer = f.np.maximum(table[i, j + 1], table[i + 1, j])
        return table.at[i + 1, j + 1].set(f.np.where(a[i] == b[j], table[i, j] + 1, longer))

    def row(i: Any, table: Any) -> Any:
        return f.fori_loop(0, m, lambda j, table: element(i, j, table), table)

    return f.fori_loop(0, n, row, f.np.zeros((n + 1, m + 1), f.np.int64))


def _lcs_numba(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    table = np.zeros((len(a) + 1, len(b) + 1), np.int64)
    for i in range(len(a)):
        for j in range(len(b)):
            table[i + 1, j + 1] = table[i, j] + 1 if a[i] == b[j] else max(table[i, j + 1], table[i + 1, j])
    return table


def _lcs_reference(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Rows never decrease, so a row is the running maximum of what it takes from the row above."""
    table = np.zeros((len(a) + 1, len(b) + 1), np.int64)
    for i in range(len(a)):
        table[i + 1, 1:] = np.maximum.accumulate(np.where(a[i] == b, table[i, :-1] + 1, table[i, 1:]))
    return table


# --- edit distance: two rows ------------------------------------------------------------------------------------------------------------


def _edit(f: Any, a: Any, b: Any) -> Any:
    m = len(b)

    def row(i: Any, before: Any) -> Any:
        def element(left: Any, at: Any) -> Any:
            letter, above, diagonal = at
            new = f.np.minimum(f.np.minimum(left, above) + 1, diagonal + (a[i] != letter))
            return new, new

        return f.np.concatenate([(i + 1)[None], f.scan(element, i + 1, (b, before[1:], before[:-1]))[1]])

    return f.fori_loop(0, len(a), row, f.np.arange(m + 1))


def _edit_numba(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    before, row = np.arange(len(b) + 1), np.empty(len(b) + 1, np.int64)
    for i in range(len(a)):
        row[0] = i + 1
        for j in range(len(b)):
            row[j + 1] = min(min(row[j], before[j + 1]) + 1, before[j] + (a[i] != b[j]))
        before, row = row, before
    return before


def _edit_reference(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """A row is the running minimum of what it takes from the row above, where each step to the right costs one."""
    row, steps = np.arange(len(b) + 1), np.arange(len(b) + 1)
    for i in range(len(a)):
        taken = np.minimum(row[1:] + 1, row[:-1] + (a[i] != b))
        row = np.minimum.accumulate(np.concatenate([[i + 1], taken]) - steps) + steps
    return row


# --- Smith–Waterman: a table by elements and its maximum ---------------------------------------------------------------------------------


def _align(f: Any, a: Any, b: Any) -> Any:
    n, m = len(a), len(b)

    def element(i: Any, j: Any, table: Any) -> Any:
        score = table[i, j] + f.np.where(a[i] == b[j], MATCH, MISMATCH)
        gapped = f.np.maximum(table[i, j + 1], table[i + 1, j]) - GAP
        return table.at[i + 1, j + 1].set(f.np.maximum(f.np.maximum(score, 0), gapped))

    def row(i: Any, table: Any) -> Any:
        return f.fori_loop(0, m, lambda j, table: element(i, j, table), table)

    table = f.fori_loop(0, n, row, f.np.zeros((n + 1, m + 1), f.np.int64))
    return table, table.max()


def _align_numba(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, int]:
    table, best = np.zeros((len(a) + 1, len(b) + 1), np.int64), 0
    for i in range(len(a)):
        for j in range(len(b)):
            score = table[i, j] + (MATCH if a[i] == b[j] else MISMATCH)
            score = max(max(score, 0), max(table[i, j + 1], table[i + 1, j]) - GAP)
            table[i + 1, j + 1] = score
            best = max(best, score)
    return table, best


def _align_reference(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A row is the running maximum of what it takes from the row above, where each step to the right costs a gap."""
    table, gaps = np.zeros((len(a) + 1, len(b) + 1), np.int64), GAP * np.arange(len(b) + 1)
    for i in range(len(a)):
        taken = np.maximum(table[i, :-1] + np.where(a[i] == b, MATCH, MISMATCH), table[i, 1:] - GAP)
        table[i + 1] = np.maximum.accumulate(np.concatenate([[0], np.maximum(taken, 0)]) + gaps) - gaps
    return table, table.max()


# --- Nussinov: the folding of RNA, a triangular table of maxima over splits ---------------------------------------------------------------


def _nussinov(f: Any, word: Any) -> Any:
    n = len(word)
    splits = f.np.arange(n)

    def element(i: Any, j: Any, table: Any) -> Any:
        pairs = (word[i] + word[j] == 3) & (i < j - 1)
        best = f.np.maximum(f.np.maximum(table[i, j - 1], table[i + 1, j]), table[i + 1, j - 1] + pairs)
        both = table[i, :n] + table[1:, j]
        return table.at[i, j].set(f.np.maximum(best, f.np.where((splits > i) & (splits < j), both, 0).max()))

    def row(k: Any, table: Any) -> Any:
        i = n - 1 - k
        return f.fori_loop(i + 1, n, lambda j, table: element(i, j, table), table)

    return f.fori_loop(0, n, row, f.np.zeros((n + 1, n), f.np.int64))[:n]


def _nussinov_numba(word: np.ndarray) -> np.ndarray:
    n = len(word)
    table = np.zeros((n + 1, n), np.int64)
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            best = max(table[i, j - 1], table[i + 1, j])
            best = max(best, table[i + 1, j - 1] + (1 if word[i] + word[j] == 3 and i < j - 1 else 0))
            for k in range(i + 1, j):
                best = max(best, table[i, k] + table[k + 1, j])
            table[i, j] = best
    return table[:n]


def _nussinov_reference(word: np.ndarray) -> np.ndarray:
    n = len(word)
    table = np.zeros((n, n), np.int64)
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            splits = table[i, i:j] + table[i + 1 : j + 1, j]
            inside = table[i + 1, j - 1] if length > 1 else 0
            table[i, j] = max(splits.max(), inside + (word[i] + word[j] == 3 and length > 1))
    return table


# --- Viterbi: the most likely path of a hidden Markov model, and the way back -------------------------------------------------------------


def _model(rng: np.random.Generator, steps: int, states: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Logarithms of transitions and of emissions of 16 symbols; observations."""
    return rng.standard_normal((states, states)), rng.standard_normal((states, 16)), rng.integers(0, 16, steps)


def _viterbi(f: Any, transitions: Any, emissions: Any, seen: Any) -> Any:
    def step(scores: Any, symbol: Any) -> Any:
        through = scores[:, None] + transitions
        return through.max(0) + emissions[:, symbol], through.argmax(0)

    def back(state: Any, came_from: Any) -> Any:
        return came_from[state], state

    scores, came_from = f.scan(step, emissions[:, seen[0]], seen[1:])
    first, path = f.scan(back, scores.argmax(), came_from, reverse=True)
    return scores.max(), f.np.concatenate([first[None], path])


def _viterbi_numba(transitions: np.ndarray, emissions: np.ndarray, seen: np.ndarray) -> tuple[float, np.ndarray]:
    n, steps = len(transitions), len(seen)
    scores, new = emissions[:, seen[0]].copy(), np.empty(n)
    came_from, path = np.empty((steps, n), np.int64), np.empty(steps, np.int64)
    for t in range(1, steps):
        for j in range(n):
            new[j], came_from[t, j] = scores[0] + transitions[0, j], 0
        for i in range(1, n):
            for j in range(n):
                through = scores[i] + transitions[i, j]
                if through > new[j]:
                    new[j], came_from[t, j] = through, i
        for j in range(n):
            scores[j] = new[j] + emissions[j, seen[t]]
    path[-1] = scores.argmax()
    for t in range(steps - 1, 0, -1):
        path[t - 1] = came_from[t, path[t]]
    return scores.max(), path


def _viterbi_reference(transitions: np.ndarray, emissions: np.ndarray, seen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    scores, came_from, path = emissions[:, seen[0]], [], []
    for symbol in seen[1:]:
        through = scores[:, None] + transitions
        came_from.append(through.argmax(0))
        scores = through.max(0) + emissions[:, symbol]
    path.append(scores.argmax())
    for states in reversed(came_from):
        path.append(states[path[-1]])
    return scores.max(), np.array(path[::-1])


# --- CRC-32 of bytes, by a table --------------------------------------------------------------------------------------------------------


def _crc_table() -> np.ndarray:
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, (table >> 1) ^ np.uint32(0xEDB88320), table >> 1)
    return table


def _bytes(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    return _crc_table(), rng.integers(0, 256, n, np.uint8)


def _crc(f: Any, table: Any, data: Any) -> Any:
    def step(crc: Any, byte: Any) -> Any:
        return table[(crc ^ byte) & 255] ^ (crc >> 8), None

    return ~f.scan(step, f.np.full((), 0xFFFFFFFF, f.np.uint32), data)[0]


def _crc_numba(table: np.ndarray, data: np.ndarray) -> np.uint32:
    crc = np.uint32(0xFFFFFFFF)
    for byte in data:
        crc = table[(crc ^ byte) & np.uint32(255)] ^ (crc >> np.uint32(8))
    return np.uint32(crc ^ np.uint32(0xFFFFFFFF))


def _crc_reference(table: np.ndarray, data: np.ndarray) -> np.ndarray:
    import zlib

    return np.array(zlib.crc32(data.tobytes()), np.uint32)


def _word(rng: np.random.Generator, n: int) -> tuple[np.ndarray]:
    return (rng.integers(0, 4, n),)


PROGRAMS = (
    Program("LCS", "tables", _two_words, _lcs_reference, _lcs, _lcs_numba, asked=ASKED, steps=lambda n: n * n),
    Program("edit distance", "tables", _two_words, _edit_reference, _edit, _edit_numba, asked=ASKED, steps=lambda n: n * n),
    Program("Smith-Waterman", "tables", _two_words, _align_reference, _align, _align_numba, asked=ASKED, steps=lambda n: n * n),
    Program("Nussinov", "tables", _word, _nussinov_reference, _nussinov, _nussinov_numba, asked=ASKED),
    Program("Viterbi", "tables", _model, _viterbi_reference, _viterbi, _viterbi_numba, asked=ASKED, steps=lambda n, states: n),
    Program("CRC", "tables", _bytes, _crc_reference, _crc, _crc_numba, asked=ASKED, steps=lambda n: n),
)
