"""Estimators in files."""

from __future__ import annotations

import os

from bayesgen.estimators._shell import Shell

__all__ = ["Storing"]


class Storing(Shell):
    """Writing to a file."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the estimator to a file, fitted or not; `bayesgen.load` reads it.

        The file is a zip archive of a JSON manifest and NumPy arrays, with a format version. It holds no code, unlike a
        pickle. It is written beside its place first and then moved there: a file of that name is either the old one or
        the new one, whole.

        Parameters
        ----------
        path : str or path
            An existing file is replaced.

        Raises
        ------
        ValueError
            If a parameter is a function, a NumPyro distribution other than the common ones, or of a class that is not
            of this library. The message names it.

        Notes
        -----
        Stored are the constructor parameters, sufficient statistics, column names and levels, and the draws of sampled
        routes; training rows are not.
        """
        from bayesgen.storage import save

        save(self, path)
