"""The posterior of an estimator for ArviZ: draws with named axes, and a table of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesgen._random import generator
from bayesgen.estimators import _labels
from bayesgen.estimators._export_draws import PosteriorDraws, PriorDraws, check_prior, run_shape
from bayesgen.estimators._export_groups import export
from bayesgen.estimators._export_names import TOP, Names, Rows, named_blocks
from bayesgen.estimators._options import check_choice, check_count
from bayesgen.estimators._shell import Learned, Shell

if TYPE_CHECKING:
    from bayesgen.arviz_io import Summary

__all__ = ["Posterior"]

GROUPS = (
    "posterior",
    "sample_stats",
    "prior",
    "prior_predictive",
    "posterior_predictive",
    "log_likelihood",
    "log_prior",
    "observed_data",
)
OF_ROWS = {"prior_predictive", "posterior_predictive", "log_likelihood", "observed_data"}


class Posterior(Shell):
    """Draws with names."""

    def to_arviz(
        self,
        X: Any = None,
        y: Any = None,
        *,
        groups: Sequence[str] | None = None,
        n_draws: int = 1000,
        n_chains: int = 4,
        var_names: Sequence[str] | None = None,
        features: Sequence[Any] | None = None,
        kind: str = "joint",
        random_state: Any = None,
    ) -> Any:
        r"""Posterior draws for ArviZ, with class labels, column names and levels as coordinates.

        Variables have the names of the program's sites: ``class_prob`` (class), ``feature_prob`` (class, feature),
        for levels ``feature_prob_{column}`` (class, category_{column}), ``mean``, ``variance``, ``covariance``
        (feature, feature_bis), ``rate``, and random hyperparameters such as ``alpha``. In a mixed model names and
        axes of columns are prefixed, ``block.mean`` and ``block.feature``.

        Parameters
        ----------
        X, y : see `fit`, optional
            Rows for the groups that are about rows.
        groups : sequence of str, optional
            Of ``posterior`` (always there), ``sample_stats`` (after NUTS, there unless others are named), ``prior``,
            ``prior_predictive``, ``posterior_predictive``, ``log_likelihood``, ``log_prior``, ``observed_data``.
            Default: the first two, and with X and y also ``log_likelihood`` and ``observed_data``.
        n_draws, n_chains : int
            Independent draws of each chain. NUTS runs keep the chains and draws they have.
        var_names : sequence of str, optional
            Only these variables.
        features : sequence of str or int, optional
            Only these columns, by name or position: wide models need a choice.
        kind : {"joint", "conditional"}, default="joint"
            What the only variable of ``log_likelihood`` is, for each draw and row:
            :math:`\ln p(y_i, x_i \mid \theta)`, the density of a generative model; or
            :math:`\ln p(y_i \mid x_i, \theta)`. For the latter the draws are still those given all of (x, y), so
            that ``az.loo`` of it weights them as if x were not part of the data: it is not the ``elpd_conditional`` of
            `loo`.
        random_state : int, Generator, RandomState or None
            None: the estimator's own.

        Returns
        -------
        arviz.InferenceData or xarray.DataTree
            Under ArviZ 0.23 and under 1.x; groups, variables, axes and coordinates are the same.

        Raises
        ------
        UndefinedNumberError
            For plug-in routes, which have no posterior, and where it (or the prior asked for) is improper.
        ValueError
            If a group would need more than 1 GiB.

        Notes
        -----
        ``y`` and ``x`` in the groups about rows are as in the program: positions in the coordinate ``class``, and
        columns in the family's form (positions of levels). Predictive groups draw as many rows as X has (documents of
        the same lengths), labels and columns both.

        Examples
        --------
        >>> from bayesgen import GaussianNB
        >>> model = GaussianNB(random_state=0).fit([[1.0], [1.4], [5.2], [6.0]], ["a", "a", "b", "b"])
        >>> draws = model.to_arviz()["posterior"]
        >>> draws["mean"].dims, draws["mean"].shape
        (('chain', 'draw', 'class', 'feature'), (4, 1000, 2, 1))
        >>> float(draws["mean"].sel({"class": "b"}).mean().round(1))
        5.6
        """
        check_choice("kind", kind, ("joint", "conditional"))
        asked = self._groups(groups, X, y)
        n_draws, n_chains = check_count("n_draws", n_draws), check_count("n_chains", n_chains)
        learned = self._state()
        fit = learned.fit
        fit.check_posterior()
        if asked & {"prior", "prior_predictive", "log_prior"}:
            check_prior(fit)
        blocks = named_blocks(learned, features)
        wanted = wanted_names(var_names)
        rows = self._exported_rows(learned, X, y) if asked & OF_ROWS else None
        rng = generator(self._seed(random_state))
        shape = run_shape(fit, n_chains, n_draws)
        names = Names(fit.classes, blocks, wanted, shape)
        names.check_wanted()

        from bayesgen import __version__, arviz_io

        arviz_io.load()
        attrs = {"inference_library": "bayesgen", "inference_library_version": __version__, "inference": self._route}
        out: dict[str, dict[str, Any]] = {}
        n = shape[0] * shape[1]
        needs_all = bool(asked & {"log_likelihood", "log_prior", "posterior_predictive"})
        posterior = PosteriorDraws(fit, blocks, rng, n, narrow=not needs_all)
        out |= export(posterior, names, rows, asked, "posterior", kind)
        if "sample_stats" in asked:
            out["sample_stats"] = names.sample_stats()
        if asked & {"prior", "prior_predictive"}:
            prior = PriorDraws(fit, blocks, rng, n, narrow="prior_predictive" not in asked)
            out |= export(prior, names, rows, asked, "prior", kind)
        if "observed_data" in asked and rows is not None:
            out["observed_data"] = names.observed(rows, insist=groups is not None)
        coords = names.coords()
        made = {g: arviz_io.dataset(out[g], coords, attrs) for g in GROUPS if out.get(g)}
        return arviz_io.container(made)

    def summary(
        self,
        var_names: Sequence[str] | None = None,
        features: Sequence[Any] | None = None,
        top: int | None = None,
        prob: float = 0.94,
        *,
        n_draws: int = 1000,
        n_chains: int = 4,
        random_state: Any = None,
    ) -> Summary:
        r"""Posterior means, intervals and convergence of the variables of `to_arviz`, one a row.

        Parameters
        ----------
        var_names, features : see `to_arviz`
        top : int, optional
            For words: this many for each class, those with the largest posterior mean log odds against the other
            classes, :math:`\mathrm E[\ln\theta_{kj}] - \frac1{K-1}\sum_{l\ne k}\mathrm E[\ln\theta_{lj}]` (for
            presence, of the log odds of :math:`\theta`).
        prob : float
            Posterior probability of the equal-tailed interval.
        n_draws, n_chains, random_state : see `to_arviz`

        Returns
        -------
        pandas.DataFrame
            Columns ``mean``, ``sd``, ``eti_3%``, ``eti_97%`` (as `prob` says), ``mcse_mean``, ``ess_bulk``,
            ``ess_tail``, ``r_hat``, under either ArviZ. Shown with four significant digits, held in full. A number
            that is constant over the draws has sd 0, and its effective sizes and R-hat are undefined: NaN.

        Notes
        -----
        Without `features` and `top` there are at most 200 rows: of more words the top 5 of each class are shown, of
        other columns the first ones, and what was left out is said under the table.

        Examples
        --------
        >>> from bayesgen import BernoulliNB
        >>> model = BernoulliNB(class_prior=[0.5, 0.5], random_state=0)
        >>> model = model.fit([[1, 0], [1, 1], [1, 0], [0, 1], [0, 1], [0, 1]], [0, 0, 0, 1, 1, 1])
        >>> model.summary(features=[0])["mean"].round(1).to_dict()
        {'class_prob[0]': 0.5, 'class_prob[1]': 0.5, 'feature_prob[0, 0]': 0.8, 'feature_prob[1, 0]': 0.2}

        References
        ----------
        Vehtari et al. 2021, *Rank-normalization, folding, and localization: an improved R-hat*.
        """
        n_draws, n_chains = check_count("n_draws", n_draws), check_count("n_chains", n_chains)
        top = None if top is None else check_count("top", top)
        if not isinstance(prob, (float, np.floating)) or not 0 < prob < 1:
            raise ValueError(f"prob must be a number between 0 and 1; got {prob!r}")
        learned = self._state()
        fit = learned.fit
        fit.check_posterior()
        shape = run_shape(fit, n_chains, n_draws)
        names = Names(fit.classes, named_blocks(learned, features), wanted_names(var_names), shape)
        names.check_wanted()
        whole = names.n_rows()
        names, shown = names.readable(features is None, top)
        rng = generator(self._seed(random_state))
        draws = PosteriorDraws(fit, names.blocks, rng, shape[0] * shape[1], narrow=True)
        found = export(draws, names, None, {"posterior"}, "posterior", "joint")["posterior"]
        return table(found, names, shown, whole, top, float(prob))

    def _groups(self, groups: Any, X: Any, y: Any) -> set[str]:
        if groups is None:
            rows = () if X is None or y is None else ("log_likelihood", "observed_data")
            return {"posterior", "sample_stats", *rows}
        groups = (groups,) if isinstance(groups, str) else tuple(groups)
        unknown = [g for g in groups if g not in GROUPS]
        if unknown:
            raise ValueError(f"groups are any of {', '.join(map(repr, GROUPS))}; got {unknown[0]!r}")
        missing = [g for g in groups if g in OF_ROWS and X is None]
        missing += [g for g in groups if g in ("log_likelihood", "observed_data") and y is None]
        if missing:
            raise ValueError(f"the group {missing[0]!r} is about rows: pass X and y")
        return {"posterior", *groups}

    def _exported_rows(self, learned: Learned, X: Any, y: Any) -> Rows:
        x = self._encode(self._read(X, learned.columns)[0], learned.columns)
        parts = x if isinstance(x, tuple) else (x,)
        codes = None
        if y is not None:
            y = _labels.check_labels(y)
            _labels.check_rows(X, y)
            codes = _labels.encode_labels(y, learned.fit.classes)
        return Rows(parts, codes, parts[0].shape[0])

    def _seed(self, random_state: Any) -> Any:
        return self.random_state if random_state is None else random_state


def wanted_names(var_names: Any) -> tuple[str, ...] | None:
    """Names of variables as a tuple, of one name or several; None: all."""
    if var_names is None:
        return None
    return (var_names,) if isinstance(var_names, str) else tuple(map(str, var_names))


def table(
    found: dict[str, Any], names: Names, shown: dict[str, np.ndarray], whole: int, top: int | None, prob: float
) -> Summary:
    """A `bayesgen.arviz_io.Summary` of draws by name, (chains, draws, ...); of words only those shown of each class."""
    from bayesgen import arviz_io

    coords = names.coords()
    labels: list[str] = []
    parts = []
    for name, (dims, value) in found.items():
        axes = [coords.get(dim, np.arange(n)) for dim, n in zip(dims[2:], value.shape[2:], strict=True)]
        cells = np.array(list(np.ndindex(*value.shape[2:])), dtype=np.int64)
        best = next((at for p, at in shown.items() if dims[2:] == ("class", f"{p}feature")), None)
        if best is not None:
            cells = np.array([(k, j) for k, words in enumerate(best) for j in words])
        labels += [label(name, [axis[i] for axis, i in zip(axes, cell, strict=True)]) for cell in cells]
        parts.append(value[(slice(None), slice(None), *cells.T)].reshape(*value.shape[:2], -1))
    out = arviz_io.Summary(arviz_io.summarise(np.concatenate(parts, axis=2), prob), index=labels)
    notes = []
    if (out["sd"] == 0).any():
        notes.append("sd 0: constant over the draws; effective sizes and R-hat are undefined (NaN)")
    if len(out) < whole:
        what = f" (words: the top {TOP if top is None else top} of each class by log odds)" if shown else ""
        choose = f"features=, {'top=, ' if shown else ''}var_names="
        notes.append(f"{whole - len(out)} of {whole} numbers left out{what}: choose with {choose}")
    out.notes = tuple(notes)
    return out


def label(name: str, cell: Sequence[Any]) -> str:
    """The name of one number, such as ``mean[setosa, petal length]``."""
    return f"{name}[{', '.join(map(str, cell))}]" if len(cell) else name
