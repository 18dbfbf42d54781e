"""Documents as token-id sequences of varying length."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from bayesgen.estimators._tables import is_frame

MOST_TOKENS = 1e9  # of documents that are drawn: 8 GB
MOST_WORDS = 100_000_000  # larger ids are hashes, not places in a vocabulary


def read_tokens(documents: Any, vocabulary_size: int | None) -> tuple[Any, int]:
    """Counts (CSR) of token-id sequences of varying length.

    Tokens outside 0..V-1 and missing ones (None, NaN) are dropped.
    """
    largest = -1
    expected = "with input='tokens', X is a list of sequences of token ids, one sequence a document"
    if (
        isinstance(documents, (str, bytes))
        or is_frame(documents)
        or sp.issparse(documents)
        or not hasattr(documents, "__len__")
    ):
        raise ValueError(f"{expected}; got {type(documents).__name__}")
    sequences = []
    for i, document in enumerate(documents):
        if not _is_sequence(document):
            raise ValueError(f"{expected}; document {i} is of type {type(document).__name__}")
        tokens = np.asarray(
            [t for t in (document.tolist() if hasattr(document, "tolist") else document) if not _no_token(t)]
        )
        if tokens.size and (tokens.dtype.kind not in "iuf" or not np.isfinite(tokens).all()):
            raise ValueError(f"document {i} of X holds {tokens[:3].tolist()}; token ids are whole numbers")
        if tokens.size and (tokens != np.floor(tokens)).any():
            raise ValueError(f"document {i} of X holds {tokens[:3].tolist()}; token ids are whole numbers")
        largest = max(largest, int(tokens.max(initial=-1)))
        sequences.append(np.clip(tokens, -1, 2 * MOST_WORDS).astype(np.int64))
    if not sequences:
        raise ValueError("Found array with 0 sample(s): X holds no documents while a minimum of 1 is required")
    size = largest + 1 if vocabulary_size is None else int(vocabulary_size)
    if vocabulary_size is None and size > MOST_WORDS:
        raise ValueError(
            f"the largest token id is {size - 1}, a vocabulary of {size} words; number the words from 0, "
            "or pass vocabulary_size"
        )
    if size < 1:
        raise ValueError("X holds no tokens, so the vocabulary is unknown: pass vocabulary_size")
    kept = [t[(t >= 0) & (t < size)] for t in sequences]
    indptr = np.concatenate([[0], np.cumsum([len(t) for t in kept])])
    index = np.concatenate(kept) if kept else np.zeros(0, dtype=np.int64)
    counts = sp.csr_array((np.ones(len(index)), index, indptr), shape=(len(kept), size))
    counts.sum_duplicates()
    return counts, size


def _is_sequence(document: Any) -> bool:
    """Whether it is a sequence of single values."""
    try:
        return not isinstance(document, (str, bytes)) and hasattr(document, "__len__") and np.ndim(document) < 2
    except ValueError:  # of sequences of several lengths
        return False


def _no_token(t: Any) -> bool:
    return t is None or type(t).__name__ == "NAType" or (isinstance(t, float) and t != t)


def document_lengths(lengths: Any, n_rows: int, word_count: np.ndarray, n_documents: float) -> np.ndarray:
    """Lengths of documents to draw, (n_rows,); by default the mean length seen."""
    if lengths is None:
        lengths = int(np.rint(word_count.sum() / n_documents)) if n_documents > 0 else 0
    out = np.asarray(lengths)
    if out.dtype.kind not in "iu" or out.shape not in ((), (n_rows,)) or (out < 0).any():
        raise ValueError(f"lengths must be a whole number or one for each of the {n_rows} rows; got {lengths!r}")
    return np.broadcast_to(out, (n_rows,))
