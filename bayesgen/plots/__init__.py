"""Pictures of fitted models.

Each function draws one thing on one Matplotlib ``Axes`` and returns it, so that a picture can be put into a
larger figure, given a title or saved by the caller. Matplotlib is imported when a function is
called, not before.

Numbers are chosen as in ArviZ, by the name of the variable and ``coords``, a dict of the labels to keep along its
axes: ``coords={"class": "spam", "feature": ["free", "meeting"]}``.
"""

from bayesgen.plots._boundary import decision_boundary
from bayesgen.plots._calibration import calibration
from bayesgen.plots._chains import rank, trace
from bayesgen.plots._comparison import coefficient_path, comparison, evidence_curve, relevance, smoothing_path
from bayesgen.plots._explanation import explanation
from bayesgen.plots._forest import forest
from bayesgen.plots._objective import objective
from bayesgen.plots._pit import pit
from bayesgen.plots._posterior import posterior, prior_posterior
from bayesgen.plots._predictive_check import predictive_check
from bayesgen.plots._smoothing import smoothing_curve

__all__ = [
    "calibration",
    "coefficient_path",
    "comparison",
    "decision_boundary",
    "evidence_curve",
    "explanation",
    "forest",
    "objective",
    "pit",
    "posterior",
    "predictive_check",
    "prior_posterior",
    "rank",
    "relevance",
    "smoothing_curve",
    "smoothing_path",
    "trace",
]
