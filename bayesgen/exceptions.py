"""Errors and warnings that have a meaning of their own."""

__all__ = ["SamplingWarning", "UndefinedNumberError", "UnlabelledRowsWarning", "ZeroProbabilityWarning"]


class UndefinedNumberError(ValueError, AttributeError):
    """A number was asked for that the model and the data do not define.

    Examples are the maximum-likelihood covariance of a class with too few rows, the evidence under an
    improper prior, the mean of an inverse-gamma with shape below one, or 0/0 in a class without words.
    It is a `ValueError`; it is also an `AttributeError`, so that `hasattr` and `dir` work on estimators
    whose attributes are computed when asked for.

    Examples
    --------
    >>> from bayesgen import GaussianNB, UndefinedNumberError
    >>> try:
    ...     GaussianNB(inference="mle").fit([[1.0], [1.0]], [0, 0])
    ... except UndefinedNumberError:
    ...     print("all rows are equal")
    all rows are equal
    """


class ZeroProbabilityWarning(UserWarning):
    """Some rows have probability zero (or no leave-one-out density) under every class.

    Their class probabilities are 0/0 and are returned as NaN. It happens with ``inference="mle"``, or
    ``"map"`` with a concentration of at most one: a word never seen in any class makes each product of
    word probabilities zero. ``inference="mean"`` or ``"exact"`` repair it.
    """


class SamplingWarning(UserWarning):
    """Draws that are not to be trusted: divergences, chains that disagree, too few effective draws, a large k-hat."""


class UnlabelledRowsWarning(UserWarning):
    """Rows without a label outweigh the labelled ones and make the known labels less probable than these alone do.

    EM follows the clusters of x; where these are not the classes, more unlabelled rows make a worse classifier
    (Cozman, Cohen and Cirelo 2003).
    """
