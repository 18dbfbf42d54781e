"""Documents as token-id sequences of varying length."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp


def read_tokens(documents: Any, vocabulary_size: int | None) -> tuple[Any, int]:
    """Counts (CSR) of token-id sequences of varying length.

    Tokens outside 0..V-1 and missing ones (None, NaN) are dropped.
    """
    if isinstance(documents, (str, bytes)) or not hasattr(documents, "__len__"):
        raise ValueError("with input='tokens', X is a list of sequences of token ids, one sequence a document")
    sequences = []
    for i, document in enumerate(documents):
        tokens = np.asarray(
            [t for t in (document.tolist() if hasattr(document, "tolist") else document) if not _no_token(t)]
        )
        if tokens.size and (tokens.dtype.kind not in "iuf" or (tokens != np.floor(tokens)).any()):
            raise ValueError(f"document {i} of X holds {tokens[:3].tolist()}; token ids are whole numbers")
        sequences.append(tokens.astype(np.int64))
    if not sequences:
        raise ValueError("Found array with 0 sample(s): X holds no documents while a minimum of 1 is required")
    largest = max((int(t.max()) for t in sequences if t.size), default=-1)
    size = largest + 1 if vocabulary_size is None else int(vocabulary_size)
    if size < 1:
        raise ValueError("X holds no tokens, so the vocabulary is unknown: pass vocabulary_size")
    kept = [t[(t >= 0) & (t < size)] for t in sequences]
    indptr = np.concatenate([[0], np.cumsum([len(t) for t in kept])])
    index = np.concatenate(kept) if kept else np.zeros(0, dtype=np.int64)
    counts = sp.csr_array((np.ones(len(index)), index, indptr), shape=(len(kept), size))
    counts.sum_duplicates()
    return counts, size


def _no_token(t: Any) -> bool:
    return t is None or (isinstance(t, float) and t != t)
