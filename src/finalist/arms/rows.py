"""Tall tables of numbers, block by block: which rows are identical."""

from collections.abc import Iterator

import numpy as np

from finalist.shapes import Bool, Float, Int, UInt64

#: Numbers in a block of rows: what the tall computations need beside their result.
BLOCK = 2**16


def blocks(X: Float[np.ndarray, "N d"]) -> Iterator[slice]:
    """Cut the rows into blocks of about `BLOCK` numbers, and of at least d rows."""
    N, d = X.shape
    step = max(1, d, BLOCK // max(1, d))
    for start in range(0, N, step):
        yield slice(start, start + step)


def row_hashes(X: Float[np.ndarray, "N d"]) -> UInt64[np.ndarray, " N"]:
    """Hash each row; rows with the same numbers have the same hash."""
    hashes = np.zeros(len(X), dtype=np.uint64)
    for rows in blocks(X):
        bits = np.ascontiguousarray(X[rows].T).view(np.uint64)
        h = hashes[rows]
        for column in bits:
            h ^= column
            h *= np.uint64(0x9E3779B97F4A7C15)
            h ^= h >> np.uint64(29)
    return hashes


def equal_rows(X: Float[np.ndarray, "N d"]) -> Int[np.ndarray, " N"]:
    """Return for each row the number of the first row that is identical to it."""
    hashes = row_hashes(X)
    order = np.argsort(hashes, kind="stable")
    key = hashes[order]
    again = key[1:] == key[:-1]
    shared = np.append(again, False) | np.append(False, again)
    first = np.arange(len(X))
    rows, key = order[shared], key[shared]
    # Rows with one hash: those equal to the first of them are done; the others (the hashes
    # collided) are compared among themselves.
    while rows.size:
        begins = np.append(True, key[1:] != key[:-1])
        leader = rows[begins][np.cumsum(begins) - 1]
        same = _pairs_equal(X, rows, leader)
        first[rows[same]] = leader[same]
        rows, key = rows[~same], key[~same]
    return first


def _pairs_equal(
    X: Float[np.ndarray, "N d"], a: Int[np.ndarray, " n"], b: Int[np.ndarray, " n"]
) -> Bool[np.ndarray, " n"]:
    step = max(1, BLOCK // X.shape[1])
    parts = [slice(start, start + step) for start in range(0, len(a), step)]
    return np.concatenate([(X[a[part]] == X[b[part]]).all(axis=1) for part in parts])
