"""Whether anybody watches a progress bar."""

from __future__ import annotations

import os
import sys


def shows_progress(choice: bool | None) -> bool:
    """Whether to show a bar: as chosen, else in a terminal or a notebook; not where nobody watches (CI)."""
    if choice is not None or "CI" in os.environ:
        return bool(choice)
    return sys.stderr.isatty() or "ipykernel" in sys.modules
