"""The generative program: y from the class probabilities, then x given y."""

from __future__ import annotations

from typing import Any

from bayesgen.class_prior import ClassPrior
from bayesgen.families.base import Family

__all__ = ["program", "sites"]


def program(
    class_prior: ClassPrior,
    family: Family,
    x: Any = None,
    y: Any = None,
    n_rows: int | None = None,
    lengths: Any = None,
    unlabelled: Any = None,
) -> tuple[Any, Any]:
    r"""The joint model as a NumPyro program: :math:`p(\phi)\,p(\theta)\prod_i \phi_{y_i}\,p(x_i \mid \theta_{y_i})`.

    Sites: ``class_prob``, the parameters of the family, and in a plate ``row`` the labels ``y`` and the
    rows ``x``.

    Parameters
    ----------
    class_prior, family : ClassPrior, Family
        Priors with their shapes and hyperparameters.
    x : array, or None to draw rows
        Data in the family's form.
    y : array of class codes, or None to draw labels
    n_rows : int, optional
        Number of rows when neither x nor y says it.
    lengths : array of int, optional
        Lengths of the documents to draw.
    unlabelled : tuple (x, weight), optional
        Rows without a label, and the power of their densities: a factor ``x_unlabelled`` with the label summed out.

    Returns
    -------
    x, y : the observed or drawn data, y as class codes.
    """
    return sites(class_prior, family, x, y, n_rows, lengths, unlabelled=unlabelled)[:2]


def sites(
    class_prior: ClassPrior,
    family: Family,
    x: Any = None,
    y: Any = None,
    n_rows: int | None = None,
    lengths: Any = None,
    weights: Any = None,
    unlabelled: Any = None,
) -> tuple[Any, Any, Any]:
    """Declare the sites of `program`, rows with weights as powers of their density; give x, y and the parameters."""
    import contextlib

    import numpyro
    import numpyro.distributions as dist

    class_prob = class_prior.sample()
    params = family.prior()
    power = contextlib.nullcontext() if weights is None else numpyro.handlers.scale(scale=weights)
    with numpyro.plate("row", n_rows), power:
        y = numpyro.sample("y", dist.Categorical(probs=class_prob), obs=y)
        x = family.observe(params, y, x, lengths)
    if unlabelled is not None:
        from bayesgen.mixture import mixture_site

        base = getattr(family, "base", family)
        mixture_site(class_prob, base, params, *unlabelled)
    return x, y, params
