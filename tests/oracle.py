"""A slow, independent reference for every closed form of the library.

Textbook code in 60-digit arithmetic: float64 inputs are converted exactly, so that a result rounded to
float64 is right to its last digit, also at offsets of 1e12 or counts beyond 2**31. Nothing of the library,
JAX or NumPyro is imported. A model holds hyperparameters; ``model.fit(X, y, K, ...)`` gives a `Fit`, which
answers everything::

    fit = GaussianOracle(m=0, kappa=1, a=2, b=1, shared=True).fit(X, y, 2, w=None, class_alpha=[2, 2])
    fit.evidence_parts()                      # ln p(y), ln p(X | y)
    fit.parameters("map")                     # {"mean": ..., "variance": ...}
    as_float(fit.log_joint(X_new, "exact"))   # (n, K) float64
    as_float(fit.loo())                       # (n, K) by refits

Rows are lists of numbers, a missing cell is NaN or None. Results are (nested lists of) multiple-precision
numbers; `as_float` turns them into float64 arrays. Undefined parameters are NaN; a prediction or evidence
that needs one raises `Undefined`. The numbers belong to the context `ctx` of this module: functions of the
global `mpmath`, `copy.deepcopy` and `pickle` round them to 53 bits.
"""

import copy
import numbers
from fractions import Fraction
from typing import NamedTuple

import mpmath
import numpy as np

# A context of our own, so that the digits of a user's `mpmath.mp` stay as they are.
ctx = mpmath.mp.clone()
ctx.dps = 60
ZERO, ONE, HALF, TWO = ctx.mpf(0), ctx.mpf(1), ctx.mpf(1) / 2, ctx.mpf(2)
NAN, INF = ctx.nan, ctx.inf
PI = +ctx.pi
LOG_PI = ctx.log(PI)
# A pivot below this fraction of its diagonal entry is rounding noise of 60 digits. Columns that are collinear
# up to float64 rounding keep pivots of about 1e-34: they count as non-singular, the truth about that input.
SINGULAR = ctx.mpf(10) ** -45

ROUTES = ("mle", "unbiased", "map", "mean", "exact")


class Undefined(ValueError):
    """The number asked for does not exist (math.md section 1, "Undefined numbers")."""


# ----------------------------------------------------------------------------------------- numbers, arrays


def number(value):
    """One number, exactly: int, float, Fraction, NumPy scalar or multiple precision; None stays None."""
    if value is None:
        return None
    if isinstance(value, Fraction):
        return ctx.mpf(value.numerator) / ctx.mpf(value.denominator)
    if isinstance(value, (bool, np.bool_, numbers.Integral)):
        return ctx.mpf(int(value))
    if isinstance(value, (float, np.floating)):
        return ctx.mpf(float(value))
    return ctx.mpf(value)


def as_float(value):
    """Nested lists (dicts, tuples) of numbers as float64 arrays; one number as a float."""
    if isinstance(value, dict):
        return {key: as_float(part) for key, part in value.items()}
    if hasattr(value, "_fields"):
        return type(value)(*(None if part is None else as_float(part) for part in value))
    if isinstance(value, tuple):
        return tuple(as_float(part) for part in value)
    if isinstance(value, list):
        parts = [as_float(part) for part in value]
        if len({np.shape(part) for part in parts}) > 1:
            return parts  # ragged: categorical features with different numbers of levels
        return np.array(parts, dtype=np.float64)
    return float(value)


def _shape(value):
    if isinstance(value, np.ndarray):
        return value.shape
    if isinstance(value, (list, tuple)):
        return (len(value), *(_shape(value[0]) if len(value) else ()))
    return ()


def per_class_and_feature(value, K, d):
    """Broadcast a scalar, (d,) or (K, d) hyperparameter to K lists of d numbers."""
    shape = _shape(value)
    if shape == ():
        return [[number(value)] * d for _ in range(K)]
    if shape == (d,):
        return [[number(v) for v in value] for _ in range(K)]
    if shape in ((K, d), (K, 1), (1, d)):
        rows = [list(row) * (d if shape[1] == 1 else 1) for row in value] * (K if shape[0] == 1 else 1)
        return [[number(v) for v in row] for row in rows]
    raise ValueError(f"a hyperparameter of shape {shape} does not broadcast to ({K}, {d})")


def per_item(value, n):
    """Broadcast a scalar or (n,) hyperparameter to a list of n numbers."""
    shape = _shape(value)
    if shape == ():
        return [number(value)] * n
    if shape == (n,):
        return [number(v) for v in value]
    raise ValueError(f"a hyperparameter of shape {shape} does not broadcast to ({n},)")


def read_rows(X):
    """Rows as lists of exact numbers, None where the cell is missing."""
    rows = []
    for row in X:
        cells = [number(cell) for cell in (row.tolist() if isinstance(row, np.ndarray) else row)]
        rows.append([None if cell is None or ctx.isnan(cell) else cell for cell in cells])
    return rows


# --------------------------------------------------------------------------------------- special functions


def xlogy(x, y):
    """x ln y with 0 ln y = 0, also for an undefined y."""
    if x == 0:
        return ZERO
    if ctx.isnan(y):
        return NAN
    return x * ctx.log(y) if y > 0 else -INF * x


def safe_log(x):
    """ln x, minus infinity at 0."""
    return xlogy(ONE, x)


def add_up(values):
    """The sum, a multiple-precision 0 if there is nothing to add."""
    return sum(values, ZERO)


def divide(x, y):
    """x / y, NaN for y = 0."""
    return x / y if y != 0 else NAN


def log_rising(z, n):
    """ln (z)_n = ln Gamma(z + n) - ln Gamma(z); minus infinity at z = 0 < n."""
    if n == 0:
        return ZERO
    if z == 0:
        return -INF
    return ctx.loggamma(z + n) - ctx.loggamma(z)


def log_factorial(x):
    return ctx.loggamma(x + 1)


def digamma(x):
    return ctx.digamma(x)


def trigamma(x):
    return ctx.psi(1, x)


def log_multigamma(a, d):
    """ln Gamma_d(a)."""
    return ctx.mpf(d * (d - 1)) / 4 * LOG_PI + add_up(ctx.loggamma(a - ctx.mpf(j) / 2) for j in range(d))


def logsumexp(values):
    values = list(values)
    if any(ctx.isnan(v) for v in values):
        return NAN
    top = max(values)
    if top == -INF:
        return -INF
    return top + ctx.log(add_up(ctx.exp(v - top) for v in values))


def softmax_log(values):
    """Normalised log probabilities; NaN where every value is minus infinity."""
    total = logsumexp(values)
    return [v - total if total != -INF else NAN for v in values]


def dirichlet_mode(alpha):
    """The mode rule of math.md section 1; NaN where there is no unique mode."""
    positive = [max(a - 1, ZERO) for a in alpha]
    return [divide(c, add_up(positive)) for c in positive]


# ------------------------------------------------------------------------------------------ linear algebra


def cholesky(matrix):
    """Lower factor of a symmetric matrix, None if it is not positive definite."""
    d = len(matrix)
    L = [[ZERO] * d for _ in range(d)]
    for i in range(d):
        for j in range(i + 1):
            rest = matrix[i][j] - add_up(L[i][t] * L[j][t] for t in range(j))
            if i == j:
                if not rest > SINGULAR * abs(matrix[i][i]):
                    return None
                L[i][i] = ctx.sqrt(rest)
            else:
                L[i][j] = rest / L[j][j]
    return L


def factor_log_det(L):
    """ln |A| from the Cholesky factor of A."""
    return 2 * add_up(ctx.log(L[i][i]) for i in range(len(L)))


def forward_solve(L, vector):
    """L^-1 vector."""
    z = []
    for i in range(len(vector)):
        z.append((vector[i] - add_up(L[i][t] * z[t] for t in range(i))) / L[i][i])
    return z


def log_det(matrix):
    L = cholesky(matrix)
    return NAN if L is None else factor_log_det(L)


def solve(matrix, vector):
    """matrix^-1 vector through the Cholesky factor."""
    L = cholesky(matrix)
    d = len(vector)
    if L is None:
        return [NAN] * d
    z = forward_solve(L, vector)
    x = [ZERO] * d
    for i in reversed(range(d)):
        x[i] = (z[i] - add_up(L[t][i] * x[t] for t in range(i + 1, d))) / L[i][i]
    return x


def inverse(matrix):
    d = len(matrix)
    columns = [solve(matrix, [ONE if i == j else ZERO for i in range(d)]) for j in range(d)]
    return [[columns[j][i] for j in range(d)] for i in range(d)]


def dot(u, v):
    return add_up(a * b for a, b in zip(u, v, strict=True))


def outer(u, v, scale=ONE):
    return [[scale * a * b for b in v] for a in u]


def add_matrices(*matrices):
    d = len(matrices[0])
    return [[add_up(m[i][j] for m in matrices) for j in range(d)] for i in range(d)]


def scale_matrix(matrix, factor):
    return [[factor * cell for cell in row] for row in matrix]


def block(matrix, index):
    return [[matrix[i][j] for j in index] for i in index]


def zeros(d):
    return [[ZERO] * d for _ in range(d)]


# ------------------------------------------------------------------------------------------- log densities


def log_normal(x, mean, variance):
    return -HALF * ctx.log(TWO * PI * variance) - (x - mean) ** 2 / (2 * variance)


def log_student_t(x, df, mean, scale2):
    """ln t_df(x | mean, scale2), scale2 the squared scale."""
    return (
        ctx.loggamma((df + 1) / 2)
        - ctx.loggamma(df / 2)
        - HALF * ctx.log(df * PI * scale2)
        - (df + 1) / 2 * ctx.log1p((x - mean) ** 2 / (df * scale2))
    )


def log_multivariate_normal(x, mean, cov):
    """ln N(x_O | mean_O, cov_OO), O the observed cells; 0 for an empty O; NaN for a singular matrix."""
    observed = [j for j, cell in enumerate(x) if cell is not None]
    if not observed:
        return ZERO
    L = cholesky(block(cov, observed))
    if L is None:
        return NAN
    z = forward_solve(L, [x[j] - mean[j] for j in observed])
    return -HALF * (len(observed) * ctx.log(TWO * PI) + factor_log_det(L) + dot(z, z))


def log_multivariate_t(x, df, mean, scale):
    """ln t_df(x_O | mean_O, scale_OO): the marginal on the observed cells O keeps the degrees of freedom."""
    observed = [j for j, cell in enumerate(x) if cell is not None]
    if not observed:
        return ZERO
    L, p = cholesky(block(scale, observed)), len(observed)
    if L is None:
        return NAN
    z = forward_solve(L, [x[j] - mean[j] for j in observed])
    return (
        ctx.loggamma((df + p) / 2)
        - ctx.loggamma(df / 2)
        - ctx.mpf(p) / 2 * ctx.log(df * PI)
        - HALF * factor_log_det(L)
        - (df + p) / 2 * ctx.log1p(dot(z, z) / df)
    )


def log_gamma_density(x, a, rate):
    return a * ctx.log(rate) - ctx.loggamma(a) + xlogy(a - 1, x) - rate * x


def log_inverse_gamma(x, a, b):
    """Density of sigma^2 ~ IG(a, b)."""
    return a * ctx.log(b) - ctx.loggamma(a) - (a + 1) * ctx.log(x) - b / x


def log_dirichlet(theta, alpha):
    norm = ctx.loggamma(add_up(alpha)) - add_up(ctx.loggamma(a) for a in alpha)
    return norm + add_up(xlogy(a - 1, t) for a, t in zip(alpha, theta, strict=True))


def log_inverse_wishart(sigma, nu, psi):
    d = len(psi)
    return (
        nu / 2 * log_det(psi)
        - nu * d / 2 * ctx.log(TWO)
        - log_multigamma(nu / 2, d)
        - (nu + d + 1) / 2 * log_det(sigma)
        - HALF * add_up(dot(p, row) for p, row in zip(psi, inverse(sigma), strict=True))
    )


# -------------------------------------------------------------------------------------------- base classes


class Logistic(NamedTuple):
    """score_k(x) = bias[k] + weights[k] . x (+ x' quadratic[k] x): the natural form of section 9."""

    weights: list
    bias: list
    quadratic: list | None


class Elpd(NamedTuple):
    """Leave-one-out sums and rows."""

    joint: object
    conditional: object
    joint_rows: list
    conditional_rows: list


class Oracle:
    """p(x | y, theta) with its conjugate prior; subclasses hold hyperparameters.

    A subclass writes ``_resolve`` (hyperparameters that are None), ``_learn`` (statistics and posterior from
    rows), ``_log_evidence``, ``_parameters``, ``_log_prior`` (density of parameters), and ln p(row | class)
    by ``_log_plugin`` (parameters) and ``_log_predictive`` (parameters integrated out).
    """

    routes = ("mle", "map", "mean", "exact")
    exact_is_mean = False  # True: the predictive is the plug-in of the posterior mean

    def fit(self, X, y, K, w=None, class_alpha=1, class_prior=None, d=None):
        """Condition on rows. `class_alpha`: scalar or (K,); `class_prior`: fixed probabilities instead."""
        rows = read_rows(X)
        y = [int(label) for label in y]
        w = [ONE] * len(rows) if w is None else [number(v) for v in w]
        d = len(rows[0]) if d is None else d
        if not len(rows) == len(y) == len(w) or any(not 0 <= label < K for label in y) or any(v < 0 for v in w):
            raise ValueError("rows, labels and weights do not fit together")
        model = self._resolve(rows, y, w, K, d)
        alpha = per_item(class_alpha, K)
        phi = None if class_prior is None else [number(p) for p in class_prior]
        return Fit(model, rows, y, w, K, d, alpha, phi)

    def _resolve(self, rows, y, w, K, d):
        return self

    def _log_likelihood(self, state, route, params, row):
        """ln p(row | y = k) for every k; `params` are the route's, not used by "exact"."""
        if route == "exact" and not self.exact_is_mean:
            return self._log_predictive(state, row)
        return self._log_plugin(state, route, params, row)

    def _with(self, **changes):
        model = copy.copy(self)
        vars(model).update(changes)
        return model

    def _logistic(self, state, params):
        """Weights (K, .), bias without ln phi, quadratic."""
        raise NotImplementedError

    def _log_likelihood_moments(self, state, k, row):
        """Posterior mean and variance of ln p(row | theta_k)."""
        raise NotImplementedError(f"{type(self).__name__}: no closed form for the log odds moments")

    def _groups(self, state):
        raise NotImplementedError


class Fit:
    """A model with its rows: evidence, parameters, predictions, leave-one-out.

    Attributes: `model` (hyperparameters resolved), `n` (class weights n_k), `state` (the model's statistics).
    """

    def __init__(self, model, rows, y, w, K, d, class_alpha, class_prior):
        self.model, self.rows, self.y, self.w, self.K, self.d = model, rows, y, w, K, d
        self.class_alpha, self.class_prior = class_alpha, class_prior
        self.n = [add_up(w[i] for i in range(len(rows)) if y[i] == k) for k in range(K)]
        self.state = model._learn(rows, y, w, K, d)
        self._cache = {}

    def _refit(self, keep):
        """The same hyperparameters on the rows `keep`."""
        rows, y, w = ([values[i] for i in keep] for values in (self.rows, self.y, self.w))
        return Fit(self.model, rows, y, w, self.K, self.d, self.class_alpha, self.class_prior)

    def class_probabilities(self, route="exact"):
        """phi of a route, NaN where undefined (section 2)."""
        if self.class_prior is not None:
            return list(self.class_prior)
        posterior = [a + n for a, n in zip(self.class_alpha, self.n, strict=True)]
        if route in ("mle", "unbiased"):
            return [divide(n, add_up(self.n)) for n in self.n]
        if route == "map":
            return dirichlet_mode(posterior)
        return [divide(a, add_up(posterior)) for a in posterior]

    def parameters(self, route):
        """The parameters of a route as a dict, NaN where undefined; "exact" gives the posterior mean."""
        self._check_route(route)
        route = "mean" if route == "exact" else route
        if route not in self._cache:
            self._cache[route] = self.model._parameters(self.state, route)
        return read_params(self._cache[route])

    def _route_parameters(self, route):
        if isinstance(route, str):
            return self.parameters(route)
        return self.model._parameters(self.state, route)

    def _check_route(self, route):
        if isinstance(route, str) and route not in self.model.routes:
            raise ValueError(f"{type(self.model).__name__} has no route {route!r}")

    def evidence_parts(self):
        """(ln p(y), ln p(X | y))."""
        if self.class_prior is not None:
            log_y = add_up(xlogy(n, p) for n, p in zip(self.n, self.class_prior, strict=True))
        elif any(a <= 0 for a in self.class_alpha):
            raise Undefined("no evidence: the prior of the class probabilities is improper")
        else:
            log_y = add_up(log_rising(a, n) for a, n in zip(self.class_alpha, self.n, strict=True))
            log_y -= log_rising(add_up(self.class_alpha), add_up(self.n))
        return log_y, self.model._log_evidence(self.state)

    def evidence(self):
        """ln p(D)."""
        return add_up(self.evidence_parts())

    def evidence_sequential(self, order=None):
        """ln p(D) as the sum of one-step predictives; unit weights only."""
        if any(w != 1 for w in self.w):
            raise ValueError("the chain of predictives is for unit weights")
        order = list(range(len(self.rows)) if order is None else order)
        total = ZERO
        for t, i in enumerate(order):
            total += self._refit(order[:t])._log_joint_rows([self.rows[i]], "exact")[0][self.y[i]]
        return total

    def _log_joint_rows(self, rows, route, class_route=None, power=ONE):
        if class_route is None:
            class_route = route if isinstance(route, str) else "exact"
        phi = self.class_probabilities(class_route)
        params = self._route_parameters(route)
        table = []
        for row in rows:
            likelihood = self.model._log_likelihood(self.state, route, params, row)
            # A class of probability zero: its parameters are not consulted. At power 0 0 * ln 0 counts as 0.
            table.append(
                [
                    -INF if p == 0 else safe_log(p) + (ZERO if power == 0 else power * v)
                    for p, v in zip(phi, likelihood, strict=True)
                ]
            )
        return table

    def log_likelihood(self, X, route="exact"):
        """ln p(x | y = k), (n, K); NaN where it needs an undefined parameter."""
        self._check_route(route)
        params = self._route_parameters(route)
        return [self.model._log_likelihood(self.state, route, params, row) for row in read_rows(X)]

    def log_joint(self, X, route="exact", class_route=None, power=1):
        """ln p(x, y = k), (n, K).

        `class_route` mixes another route in for phi; `power` raises p(x | y) (section 9, likelihood power).
        Raises `Undefined` if an undefined number is needed.
        """
        self._check_route(route)
        joint = self._log_joint_rows(read_rows(X), route, class_route, number(power))
        if any(ctx.isnan(v) for row in joint for v in row):
            raise Undefined(f"the prediction by {route!r} needs a parameter that is undefined")
        return joint

    def log_proba(self, X, route="exact", class_route=None, power=1):
        """ln p(y = k | x), (n, K); NaN where no class can generate the row."""
        return [softmax_log(row) for row in self.log_joint(X, route, class_route, power)]

    def proba(self, X, route="exact", class_route=None, power=1):
        """p(y = k | x), (n, K)."""
        return [[ctx.exp(v) for v in row] for row in self.log_proba(X, route, class_route, power)]

    def score_samples(self, X, route="exact", class_route=None):
        """ln p(x), (n,)."""
        return [logsumexp(row) for row in self.log_joint(X, route, class_route)]

    def loo(self):
        """ln p(x_i, y = k | D without i), (n, K), by refits, hyperparameters fixed; NaN rows do not exist."""
        table = []
        for i, row in enumerate(self.rows):
            rest = self._refit([t for t in range(len(self.rows)) if t != i])
            joint = rest._log_joint_rows([row], "exact")[0]
            table.append([NAN] * self.K if any(ctx.isnan(v) for v in joint) else joint)
        return table

    def elpd(self):
        """Joint and conditional leave-one-out: sums and rows."""
        table = self.loo()
        joint = [row[label] for row, label in zip(table, self.y, strict=True)]
        conditional = [softmax_log(row)[label] for row, label in zip(table, self.y, strict=True)]
        return Elpd(add_up(joint), add_up(conditional), joint, conditional)

    def logistic(self, route, class_route=None):
        """The logistic form of section 9 for a plug-in route."""
        self._check_route(route)
        weights, bias, quadratic = self.model._logistic(self.state, self.parameters(route))
        phi = self.class_probabilities(route if class_route is None else class_route)
        return Logistic(weights, [b + safe_log(p) for b, p in zip(bias, phi, strict=True)], quadratic)

    def log_odds_moments(self, X, k=1, other=0):
        """Posterior mean and variance of ln [p(y = k | x, phi, theta) / p(y = other | ...)], each (n,)."""
        if self.class_prior is not None:
            mean0, variance0 = safe_log(self.class_prior[k]) - safe_log(self.class_prior[other]), ZERO
        else:
            a, b = (self.class_alpha[c] + self.n[c] for c in (k, other))
            mean0, variance0 = digamma(a) - digamma(b), trigamma(a) + trigamma(b)
        means, variances = [], []
        for row in read_rows(X):
            mean_k, variance_k = self.model._log_likelihood_moments(self.state, k, row)
            mean_o, variance_o = self.model._log_likelihood_moments(self.state, other, row)
            means.append(mean0 + mean_k - mean_o)
            variances.append(variance0 + variance_k + variance_o)
        return means, variances

    def log_density(self, phi, params, X=None, y=None, w=None, prior=True):
        """ln p(phi) + ln p(theta) + sum_i w_i ln [phi_y p(x_i | theta_y)] at any point (sections 1, 10, 11).

        Densities are with respect to the coordinates of the mode rule in section 1. The rows are those of the
        fit unless given; a label of -1 is unknown (the row is a mixture), missing cells are integrated out.
        `params` has the layout of `parameters`. `prior=False` leaves the two prior terms away.
        """
        rows = self.rows if X is None else read_rows(X)
        y = self.y if y is None else [int(label) for label in y]
        w = (self.w if X is None else [ONE] * len(rows)) if w is None else [number(v) for v in w]
        phi, params = [number(p) for p in phi], read_params(params)
        total = ZERO
        if prior:
            total += self.model._log_prior(self.state, params)
            if self.class_prior is None:
                total += log_dirichlet(phi, self.class_alpha)
        for row, label, weight in zip(rows, y, w, strict=True):
            likelihood = self.model._log_plugin(self.state, "mean", params, row)
            joint = [safe_log(p) + v for p, v in zip(phi, likelihood, strict=True)]
            total += weight * (logsumexp(joint) if label == -1 else joint[label])
        return total

    def groups(self):
        """The count vectors of section 12, one per draw of theta (multinomial, categorical, Bernoulli)."""
        return self.model._groups(self.state)


def read_params(value):
    """A copy of parameters with exact numbers (`copy.deepcopy` would round them to 53 bits)."""
    if isinstance(value, dict):
        return {key: read_params(part) for key, part in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [read_params(part) for part in value]
    return number(value)


def soften(X, R, w=None):
    """Soft labels R (n, K) as weighted rows: ``model.fit(*soften(X, R)[:2], K, w=soften(X, R)[2])``."""
    rows, labels, weights = [], [], []
    for i, (row, r) in enumerate(zip(X, R, strict=True)):
        for k, share in enumerate(r):
            rows.append(row)
            labels.append(k)
            weights.append(number(share) * (ONE if w is None else number(w[i])))
    return rows, labels, weights


def class_sums(rows, y, w, K, d, value):
    """sum_i w_i value(x_ij) over the observed cells of each class and column, (K, d)."""
    return [
        [
            add_up(w[i] * value(row[j]) for i, row in enumerate(rows) if y[i] == k and row[j] is not None)
            for j in range(d)
        ]
        for k in range(K)
    ]


# --------------------------------------------------------------------------- section 3: Bernoulli features


class BernoulliOracle(Oracle):
    """x_j in {0, 1}, p_kj ~ Beta(a, b); a, b scalar, (d,) or (K, d). Parameters: "p" (K, d)."""

    exact_is_mean = True

    def __init__(self, a=1, b=1):
        self.a, self.b = a, b

    def _learn(self, rows, y, w, K, d):
        return {
            "a": per_class_and_feature(self.a, K, d),
            "b": per_class_and_feature(self.b, K, d),
            "ones": class_sums(rows, y, w, K, d, lambda x: x),
            "zeros": class_sums(rows, y, w, K, d, lambda x: 1 - x),
            "K": K,
            "d": d,
        }

    def _cells(self, state):
        for k in range(state["K"]):
            for j in range(state["d"]):
                yield tuple(state[name][k][j] for name in ("a", "b", "ones", "zeros"))

    def _log_evidence(self, state):
        total = ZERO
        for a, b, n1, n0 in self._cells(state):
            if a <= 0 or b <= 0:
                raise Undefined("no evidence: a Beta prior is improper")
            total += log_rising(a, n1) + log_rising(b, n0) - log_rising(a + b, n1 + n0)
        return total

    def _parameters(self, state, route):
        rule = {
            "mle": lambda a, b, n1, n0: divide(n1, n1 + n0),
            "map": lambda a, b, n1, n0: dirichlet_mode([a + n1, b + n0])[0],
            "mean": lambda a, b, n1, n0: divide(a + n1, a + b + n1 + n0),
        }[route]
        flat = [rule(*cell) for cell in self._cells(state)]
        d = state["d"]
        return {"p": [flat[k * d : (k + 1) * d] for k in range(state["K"])]}

    def _log_prior(self, state, params):
        flat = [q for pk in params["p"] for q in pk]
        cells = zip(flat, self._cells(state), strict=True)
        return add_up(log_dirichlet([q, 1 - q], [a, b]) for q, (a, b, _, _) in cells)

    def _log_plugin(self, state, route, params, row):
        return [
            add_up(xlogy(x, q) + xlogy(1 - x, 1 - q) for x, q in zip(row, pk, strict=True) if x is not None)
            for pk in params["p"]
        ]

    def _logistic(self, state, params):
        p = params["p"]
        weights = [[safe_log(q) - safe_log(1 - q) for q in pk] for pk in p]
        return weights, [add_up(safe_log(1 - q) for q in pk) for pk in p], None

    def _log_likelihood_moments(self, state, k, row):
        mean = variance = ZERO
        for j, x in enumerate(row):
            if x is None:
                continue
            a, b = state["a"][k][j] + state["ones"][k][j], state["b"][k][j] + state["zeros"][k][j]
            cell = a if x == 1 else b
            mean += digamma(cell) - digamma(a + b)
            variance += trigamma(cell) - trigamma(a + b)
        return mean, variance

    def _groups(self, state):
        return [[n1, n0] for _, _, n1, n0 in self._cells(state)]


# ------------------------------------------------------------------------ section 4: multinomial documents


class MultinomialOracle(Oracle):
    """A document of counts c, theta_k ~ Dir(alpha_k); alpha scalar, (V,) or (K, V).

    Parameters: "theta" (K, V). `coef=False`: p(x) is the probability of the token sequence; True: of the
    count vector.
    """

    def __init__(self, alpha=1, coef=False):
        self.alpha, self.coef = alpha, coef

    def _learn(self, rows, y, w, K, d):
        base = add_up(weight * self._log_coefficient(row) for weight, row in zip(w, rows, strict=True))
        return {
            "alpha": per_class_and_feature(self.alpha, K, d),
            "N": class_sums(rows, y, w, K, d, lambda x: x),
            "base": base,
            "K": K,
        }

    def _log_coefficient(self, row):
        if any(c is None for c in row):
            raise ValueError("missing counts are an error for the multinomial")
        if not self.coef:
            return ZERO
        return log_factorial(add_up(row)) - add_up(log_factorial(c) for c in row)

    def _posterior(self, state, k):
        return [a + n for a, n in zip(state["alpha"][k], state["N"][k], strict=True)]

    def _log_evidence(self, state):
        total = state["base"]
        for alpha, N in zip(state["alpha"], state["N"], strict=True):
            if any(a <= 0 for a in alpha):
                raise Undefined("no evidence: a Dirichlet prior is improper")
            total += add_up(log_rising(a, n) for a, n in zip(alpha, N, strict=True))
            total -= log_rising(add_up(alpha), add_up(N))
        return total

    def _parameters(self, state, route):
        theta = []
        for k in range(state["K"]):
            posterior, N = self._posterior(state, k), state["N"][k]
            if route == "mle":
                theta.append([divide(n, add_up(N)) for n in N])
            elif route == "map":
                theta.append(dirichlet_mode(posterior))
            else:
                theta.append([divide(a, add_up(posterior)) for a in posterior])
        return {"theta": theta}

    def _log_prior(self, state, params):
        return add_up(log_dirichlet(t, a) for t, a in zip(params["theta"], state["alpha"], strict=True))

    def _log_plugin(self, state, route, params, row):
        base = self._log_coefficient(row)
        return [base + add_up(xlogy(c, t) for c, t in zip(row, tk, strict=True)) for tk in params["theta"]]

    def _log_predictive(self, state, row):
        base = self._log_coefficient(row)
        out = []
        for k in range(state["K"]):
            posterior, L = self._posterior(state, k), add_up(row)
            if L > 0 and add_up(posterior) == 0:
                out.append(NAN)
                continue
            urn = add_up(log_rising(a, c) for a, c in zip(posterior, row, strict=True))
            out.append(base + urn - log_rising(add_up(posterior), L))
        return out

    def _logistic(self, state, params):
        return [[safe_log(t) for t in tk] for tk in params["theta"]], [ZERO] * state["K"], None

    def _log_likelihood_moments(self, state, k, row):
        posterior, L = self._posterior(state, k), add_up(row)
        A = add_up(posterior)
        mean = add_up(c * (digamma(a) - digamma(A)) for a, c in zip(posterior, row, strict=True) if c != 0)
        variance = add_up(c * c * trigamma(a) for a, c in zip(posterior, row, strict=True) if c != 0)
        return mean, variance - (L * L * trigamma(A) if L != 0 else ZERO)

    def _groups(self, state):
        return [list(N) for N in state["N"]]


# ------------------------------------------------------------------------- section 5: categorical features


class CategoricalOracle(Oracle):
    """x_j in {0..s_j - 1}, theta_kj ~ Dir(alpha_kj). Parameters: "theta", a list over features of (K, s_j).

    `alpha`: the concentration of every level, scalar, (d,) or (K, d); `alpha_levels`, if given, replaces it:
    one scalar, (s_j,) or (K, s_j) array per feature. `n_levels`: (d,), or None for the largest code + 1.
    `handle_unknown`: "predictive", "ignore" or "error". `map_unknown`: under "map" an unknown level has
    alpha_new / (A + alpha_new + n) ("formula", section 5 to the letter) or the mode rule's number ("mode").
    """

    exact_is_mean = True

    def __init__(self, alpha=1, n_levels=None, handle_unknown="predictive", alpha_levels=None, map_unknown="formula"):
        self.alpha, self.n_levels, self.alpha_levels = alpha, n_levels, alpha_levels
        self.handle_unknown, self.map_unknown = handle_unknown, map_unknown

    def _resolve(self, rows, y, w, K, d):
        if self.n_levels is not None:
            return self._with(n_levels=[int(s) for s in self.n_levels])
        top = [max((int(row[j]) for row in rows if row[j] is not None), default=-1) for j in range(d)]
        return self._with(n_levels=[t + 1 for t in top])

    def _learn(self, rows, y, w, K, d):
        flat = per_class_and_feature(self.alpha, K, d)
        alpha, counts = [], []
        for j, s in enumerate(self.n_levels):
            if self.alpha_levels is None:
                alpha.append([[flat[k][j]] * s for k in range(K)])
            else:
                alpha.append(per_class_and_feature(self.alpha_levels[j], K, s))
            n = [[ZERO] * s for _ in range(K)]
            for row, label, weight in zip(rows, y, w, strict=True):
                if row[j] is not None:
                    n[label][int(row[j])] += weight
            counts.append(n)
        return {"alpha": alpha, "counts": counts, "K": K, "d": d}

    def _cells(self, state):
        for alpha, counts in zip(state["alpha"], state["counts"], strict=True):
            yield from zip(alpha, counts, strict=True)

    def _log_evidence(self, state):
        total = ZERO
        for alpha, counts in self._cells(state):
            if any(a <= 0 for a in alpha):
                raise Undefined("no evidence: a Dirichlet prior is improper")
            total += add_up(log_rising(a, n) for a, n in zip(alpha, counts, strict=True))
            total -= log_rising(add_up(alpha), add_up(counts))
        return total

    @staticmethod
    def _theta(alpha, counts, route):
        posterior = [a + n for a, n in zip(alpha, counts, strict=True)]
        if route == "mle":
            return [divide(n, add_up(counts)) for n in counts]
        if route == "map":
            return dirichlet_mode(posterior)
        return [divide(a, add_up(posterior)) for a in posterior]

    def _parameters(self, state, route):
        return {
            "theta": [
                [self._theta(a, n, route) for a, n in zip(alpha, counts, strict=True)]
                for alpha, counts in zip(state["alpha"], state["counts"], strict=True)
            ]
        }

    def _known(self, j, level):
        known = 0 <= level < self.n_levels[j] and level == int(level)
        if not known and self.handle_unknown == "error":
            raise ValueError(f"unknown level {level} in column {j}")
        return known

    def _log_prior(self, state, params):
        total = ZERO
        for alpha, theta in zip(state["alpha"], params["theta"], strict=True):
            total += add_up(log_dirichlet(t, a) for t, a in zip(theta, alpha, strict=True))
        return total

    def _log_plugin(self, state, route, params, row):
        out = []
        for k in range(state["K"]):
            total = ZERO
            for j, level in enumerate(row):
                if level is None or (not self._known(j, level) and self.handle_unknown == "ignore"):
                    continue
                alpha, counts = state["alpha"][j][k], state["counts"][j][k]
                if self._known(j, level):
                    theta = params["theta"][j][k][int(level)]
                else:
                    new = ZERO if route == "mle" else add_up(alpha) / len(alpha)
                    if route == "mle":
                        theta = divide(ZERO, add_up(counts))
                    elif route == "map" and self.map_unknown == "mode":
                        theta = self._theta([*alpha, new], [*counts, ZERO], "map")[-1]
                    else:
                        theta = divide(new, add_up(alpha) + new + add_up(counts))
                total += xlogy(ONE, theta)
            out.append(total)
        return out

    def _logistic(self, state, params):
        weights = [[safe_log(t) for theta in params["theta"] for t in theta[k]] for k in range(state["K"])]
        return weights, [ZERO] * state["K"], None

    def _log_likelihood_moments(self, state, k, row):
        mean = variance = ZERO
        for j, level in enumerate(row):
            if level is None or (not self._known(j, level) and self.handle_unknown == "ignore"):
                continue
            alpha, counts = state["alpha"][j][k], state["counts"][j][k]
            posterior = [a + n for a, n in zip(alpha, counts, strict=True)]
            if not self._known(j, level):
                posterior.append(add_up(alpha) / len(alpha))
                level = -1
            A = add_up(posterior)
            mean += digamma(posterior[int(level)]) - digamma(A)
            variance += trigamma(posterior[int(level)]) - trigamma(A)
        return mean, variance

    def _groups(self, state):
        return [list(counts) for _, counts in self._cells(state)]


# ------------------------------------------------------------------------------- section 6: Poisson counts


class PoissonOracle(Oracle):
    """x_j ~ Poisson(lambda_kj), lambda_kj ~ Gamma(a, rate b); scalar, (d,) or (K, d). Parameters: "rate"."""

    def __init__(self, a=1, b=1):
        self.a, self.b = a, b

    def _learn(self, rows, y, w, K, d):
        cells = [(weight, x) for weight, row in zip(w, rows, strict=True) for x in row if x is not None]
        return {
            "a": per_class_and_feature(self.a, K, d),
            "b": per_class_and_feature(self.b, K, d),
            "S": class_sums(rows, y, w, K, d, lambda x: x),
            "n": class_sums(rows, y, w, K, d, lambda x: ONE),
            "base": -add_up(weight * log_factorial(x) for weight, x in cells),
            "K": K,
            "d": d,
        }

    def _cell(self, state, k, j):
        return tuple(state[name][k][j] for name in ("a", "b", "S", "n"))

    def _log_evidence(self, state):
        total = state["base"]
        for k in range(state["K"]):
            for j in range(state["d"]):
                a, b, S, n = self._cell(state, k, j)
                if a <= 0 or b <= 0:
                    raise Undefined("no evidence: a Gamma prior is improper")
                total += log_rising(a, S) - a * ctx.log1p(n / b) - S * ctx.log(b + n)
        return total

    def _parameters(self, state, route):
        rule = {
            "mle": lambda a, b, S, n: divide(S, n),
            "map": lambda a, b, S, n: divide(max(a + S - 1, ZERO), b + n),
            "mean": lambda a, b, S, n: divide(a + S, b + n),
        }[route]
        return {"rate": [[rule(*self._cell(state, k, j)) for j in range(state["d"])] for k in range(state["K"])]}

    def _log_prior(self, state, params):
        total = ZERO
        for k in range(state["K"]):
            for j in range(state["d"]):
                total += log_gamma_density(params["rate"][k][j], state["a"][k][j], state["b"][k][j])
        return total

    def _log_plugin(self, state, route, params, row):
        return [
            add_up(xlogy(x, r) - r - log_factorial(x) for x, r in zip(row, rk, strict=True) if x is not None)
            for rk in params["rate"]
        ]

    def _log_predictive(self, state, row):
        out = []
        for k in range(state["K"]):
            total = ZERO
            for j, x in enumerate(row):
                if x is not None:
                    a, b, S, n = self._cell(state, k, j)
                    total += self._log_negative_binomial(x, a + S, b + n)
            out.append(total)
        return out

    @staticmethod
    def _log_negative_binomial(x, a, b):
        if not (a > 0 and b > 0):
            return NAN
        return log_rising(a, x) - log_factorial(x) - a * ctx.log1p(1 / b) - x * ctx.log1p(b)

    def _logistic(self, state, params):
        rate = params["rate"]
        return [[safe_log(r) for r in rk] for rk in rate], [-add_up(rk) for rk in rate], None

    def evidence_slopes(self, fit):
        """(d/da, d/db) of ln p(X | y) for a common a and b (end of section 12)."""
        slope_a = slope_b = ZERO
        for k in range(fit.K):
            for j in range(fit.d):
                a, b, S, n = self._cell(fit.state, k, j)
                slope_a += digamma(a + S) - digamma(a) - ctx.log1p(n / b)
                slope_b += a / b - (a + S) / (b + n)
        return slope_a, slope_b


# ------------------------------------------------------------------------- section 7: Gaussian naive Bayes


def weighted_mean(values, weights):
    """(n, mean), NaN at n = 0. Shifted by a data point, so that constant values are not rounded."""
    pairs = [(v, w) for v, w in zip(values, weights, strict=True) if w > 0]
    n = add_up(w for _, w in pairs)
    if not pairs:
        return ZERO, NAN
    shift = pairs[0][0]
    return n, shift + add_up(w * (v - shift) for v, w in pairs) / n


def weighted_moments(values, weights):
    """(n, mean, sum of w (x - mean)^2)."""
    n, mean = weighted_mean(values, weights)
    return n, mean, add_up(w * (v - mean) ** 2 for v, w in zip(values, weights, strict=True) if w > 0)


def column_moments(rows, y, w, K, d):
    """moments[k][j] over the observed cells of class k, column j."""

    def cells(k, j):
        pairs = [(row[j], w[i]) for i, row in enumerate(rows) if y[i] == k and row[j] is not None]
        return [v for v, _ in pairs], [u for _, u in pairs]

    return [[weighted_moments(*cells(k, j)) for j in range(d)] for k in range(K)]


def _location_and_spread(rows, y, w, K, d):
    """The overall mean and the default variance v_j of each column (section 8, "Defaults")."""
    within = column_moments(rows, y, w, K, d)
    overall = column_moments(rows, [0] * len(rows), w, 1, d)[0]
    location, spread = [], []
    for j in range(d):
        n, mean, S = overall[j]
        pooled = add_up(within[k][j][2] for k in range(K))
        # A column without one observed cell is not covered by the text: location 0, spread 1.
        location.append(mean if n > 0 else ZERO)
        spread.append(pooled / n if pooled > 0 else S / n if S > 0 else ONE)
    return location, spread


def default_nig(X, y, K, w=None, mean=None, mean_precision=0.01, shape=1.5, scale=None):
    """The data-scaled normal-inverse-gamma prior: m (d,), kappa, a, b (d,); given parts are kept."""
    rows = read_rows(X)
    d, w = len(rows[0]), [ONE] * len(rows) if w is None else [number(v) for v in w]
    location, spread = _location_and_spread(rows, y, w, K, d)
    a = per_item(shape, d)
    return {
        "m": location if mean is None else mean,
        "kappa": mean_precision,
        "a": shape,
        "b": [(aj - 1) * v for aj, v in zip(a, spread, strict=True)] if scale is None else scale,
    }


def reference_nig(K, shared):
    """The improper prior 1 / sigma^2 as keywords of `GaussianOracle`."""
    return {"m": 0, "kappa": 0, "a": Fraction(-K, 2) if shared else Fraction(-1, 2), "b": 0, "shared": shared}


class GaussianOracle(Oracle):
    """x_j ~ N(mu_kj, sigma^2), mu | sigma^2 ~ N(m, sigma^2 / kappa), sigma^2 ~ IG(a, b).

    `m`, `kappa`: scalar, (d,) or (K, d); `a`, `b`: the same, with `shared=True` scalar or (d,). `m=None`,
    `b=None`: the data-scaled defaults. Parameters: "mean" (K, d), "variance" (K, d) or, shared, (d,).
    """

    routes = ROUTES

    def __init__(self, m=None, kappa=0.01, a=1.5, b=None, shared=False):
        self.m, self.kappa, self.a, self.b, self.shared = m, kappa, a, b, shared

    def _resolve(self, rows, y, w, K, d):
        if self.m is not None and self.b is not None:
            return self
        prior = default_nig(rows, y, K, w, self.m, self.kappa, self.a, self.b)
        return self._with(m=prior["m"], b=prior["b"])

    def _learn(self, rows, y, w, K, d):
        moments = column_moments(rows, y, w, K, d)
        m, kappa = per_class_and_feature(self.m, K, d), per_class_and_feature(self.kappa, K, d)
        if self.shared:
            a, b = ([per_item(value, d)] * K for value in (self.a, self.b))
        else:
            a, b = per_class_and_feature(self.a, K, d), per_class_and_feature(self.b, K, d)
        kappa_post, mean, Q = ([[None] * d for _ in range(K)] for _ in range(3))
        for k in range(K):
            for j in range(d):
                n, xbar, S = moments[k][j]
                kappa_post[k][j] = kp = kappa[k][j] + n
                if n == 0:
                    mean[k][j], Q[k][j] = (m[k][j] if kp > 0 else NAN), ZERO
                else:
                    delta = xbar - m[k][j]
                    mean[k][j] = m[k][j] + n / kp * delta
                    Q[k][j] = HALF * S + kappa[k][j] * n / (2 * kp) * delta**2
        n = [[moments[k][j][0] for j in range(d)] for k in range(K)]
        # One list per variance block: the classes that share it. N, scatter and posterior of each block.
        members = [list(range(K))] * K if self.shared else [[k] for k in range(K)]
        N = [[add_up(n[t][j] for t in members[k]) for j in range(d)] for k in range(K)]
        scatter = [[add_up(moments[t][j][2] for t in members[k]) for j in range(d)] for k in range(K)]
        a_post = [[a[k][j] + N[k][j] / 2 for j in range(d)] for k in range(K)]
        b_post = [[b[k][j] + add_up(Q[t][j] for t in members[k]) for j in range(d)] for k in range(K)]
        filled = [[sum(1 for t in members[k] if n[t][j] > 0) for j in range(d)] for k in range(K)]
        return {
            "K": K,
            "d": d,
            "n": n,
            "xbar": [[moments[k][j][1] for j in range(d)] for k in range(K)],
            "N": N,
            "scatter": scatter,
            "filled": filled,
            "m0": m,
            "kappa0": kappa,
            "a0": a,
            "b0": b,
            "kappa": kappa_post,
            "m": mean,
            "a": a_post,
            "b": b_post,
        }

    def _log_evidence(self, state):
        K, d = state["K"], state["d"]
        total = ZERO
        for k in range(K):
            for j in range(d):
                if state["kappa0"][k][j] <= 0 or state["a0"][k][j] <= 0 or state["b0"][k][j] <= 0:
                    raise Undefined("no evidence: a normal-inverse-gamma prior is improper")
                total -= HALF * ctx.log1p(state["n"][k][j] / state["kappa0"][k][j])
        for k in range(1 if self.shared else K):
            for j in range(d):
                a, b, b_post, N = (state[name][k][j] for name in ("a0", "b0", "b", "N"))
                total += log_rising(a, N / 2) - a * ctx.log(b_post / b) - N / 2 * ctx.log(TWO * PI * b_post)
        return total

    def _variance(self, state, route, k, j):
        S, N, filled, a, b = (state[name][k][j] for name in ("scatter", "N", "filled", "a", "b"))
        size = state["K"] if self.shared else 1  # means that share this variance
        numerator, denominator = {
            "mle": (S, N),
            "unbiased": (S, N - filled),
            "map": (b, a + 1 + ctx.mpf(size) / 2),
            "mean": (b, a - 1),
        }[route]
        return numerator / denominator if numerator > 0 and denominator > 0 else NAN

    def _parameters(self, state, route):
        K, d = state["K"], state["d"]
        variance = [[self._variance(state, route, k, j) for j in range(d)] for k in range(K)]
        mean = state["xbar" if route in ("mle", "unbiased") else "m"]
        return {"mean": [list(row) for row in mean], "variance": variance[0] if self.shared else variance}

    def _log_prior(self, state, params):
        K, d = state["K"], state["d"]
        variance = [params["variance"]] * K if self.shared else params["variance"]
        total = ZERO
        for k in range(K):
            for j in range(d):
                mu, v, m, kappa = (
                    params["mean"][k][j],
                    variance[k][j],
                    state["m0"][k][j],
                    state["kappa0"][k][j],
                )
                total += log_normal(mu, m, v / kappa)
                if k == 0 or not self.shared:
                    total += log_inverse_gamma(v, state["a0"][k][j], state["b0"][k][j])
        return total

    def _log_plugin(self, state, route, params, row):
        K = len(params["mean"])
        variance = [params["variance"]] * K if self.shared else params["variance"]
        out = []
        for mean_k, variance_k in zip(params["mean"], variance, strict=True):
            total = ZERO
            for x, mean, v in zip(row, mean_k, variance_k, strict=True):
                if x is not None:
                    total += NAN if ctx.isnan(mean) or ctx.isnan(v) else log_normal(x, mean, v)
            out.append(total)
        return out

    def _log_predictive(self, state, row):
        out = []
        for k in range(state["K"]):
            total = ZERO
            for j, x in enumerate(row):
                if x is not None:
                    m, kappa, a, b = (state[name][k][j] for name in ("m", "kappa", "a", "b"))
                    proper = kappa > 0 and a > 0 and b > 0
                    total += log_student_t(x, 2 * a, m, b * (kappa + 1) / (a * kappa)) if proper else NAN
            out.append(total)
        return out

    def _logistic(self, state, params):
        K, d = state["K"], state["d"]
        mean = params["mean"]
        variance = [params["variance"]] * K if self.shared else params["variance"]
        weights = [[mean[k][j] / variance[k][j] for j in range(d)] for k in range(K)]
        bias = [-add_up(mean[k][j] ** 2 / (2 * variance[k][j]) for j in range(d)) for k in range(K)]
        if self.shared:
            return weights, bias, None
        bias = [bias[k] - HALF * add_up(safe_log(variance[k][j]) for j in range(d)) for k in range(K)]
        quadratic = [
            [[-1 / (2 * variance[k][i]) if i == j else ZERO for j in range(d)] for i in range(d)] for k in range(K)
        ]
        return weights, bias, quadratic


# --------------------------------------------------------------- section 8: Gaussian discriminant analysis


def default_niw(X, y, K, w=None, mean=None, mean_precision=0.01, df=None, scale=None):
    """The data-scaled normal-inverse-Wishart prior {"m0": (d,), "kappa0", "nu0", "Psi0": (d, d)}."""
    rows = read_rows(X)
    d, w = len(rows[0]), [ONE] * len(rows) if w is None else [number(v) for v in w]
    location, spread = _location_and_spread(rows, y, w, K, d)
    nu0 = ctx.mpf(d + 2) if df is None else number(df)
    diagonal = [[(nu0 - d - 1) * spread[i] if i == j else ZERO for j in range(d)] for i in range(d)]
    return {
        "m0": location if mean is None else mean,
        "kappa0": mean_precision,
        "nu0": nu0,
        "Psi0": diagonal if scale is None else scale,
    }


def reference_niw(K, d, shared):
    """The independence Jeffreys prior as keywords of `GDAOracle`."""
    return {"m0": 0, "kappa0": 0, "nu0": -K if shared else -1, "Psi0": zeros(d), "shared": shared}


class GDAOracle(Oracle):
    """x | y = k ~ N(mu_k, Sigma), mu_k | Sigma ~ N(m0, Sigma / kappa0), Sigma ~ IW(nu0, Psi0).

    `m0`: scalar, (d,) or (K, d); `kappa0`: scalar or (K,); `nu0`, `Psi0`: a number and (d, d), with
    `shared=False` also (K,) and (K, d, d). None: the data-scaled defaults. Parameters: "mean" (K, d),
    "covariance" (d, d) or, per class, (K, d, d).
    """

    routes = ROUTES

    def __init__(self, m0=None, kappa0=0.01, nu0=None, Psi0=None, shared=True):
        self.m0, self.kappa0, self.nu0, self.Psi0, self.shared = m0, kappa0, nu0, Psi0, shared

    def _resolve(self, rows, y, w, K, d):
        if self.m0 is not None and self.nu0 is not None and self.Psi0 is not None:
            return self
        prior = default_niw(rows, y, K, w, self.m0, self.kappa0, self.nu0, self.Psi0)
        return self._with(m0=prior["m0"], nu0=prior["nu0"], Psi0=prior["Psi0"])

    def _learn(self, rows, y, w, K, d):
        if any(x is None for row in rows for x in row):
            raise ValueError("a full covariance has no closed form with missing cells at fit")
        m0, kappa0 = per_class_and_feature(self.m0, K, d), per_item(self.kappa0, K)
        blocks = 1 if self.shared else K
        nu0 = per_item(self.nu0, blocks)
        Psi0 = list(self.Psi0) if len(_shape(self.Psi0)) == 3 else [self.Psi0] * blocks
        Psi0 = [[[number(v) for v in row] for row in matrix] for matrix in Psi0]
        n, xbar, scatter, kappa, m, between = [], [], [], [], [], []
        for k in range(K):
            own = [i for i in range(len(rows)) if y[i] == k and w[i] > 0]
            weights = [w[i] for i in own]
            centre = [weighted_mean([rows[i][j] for i in own], weights)[1] for j in range(d)]
            S = zeros(d)
            for i in own:
                e = [rows[i][j] - centre[j] for j in range(d)]
                S = add_matrices(S, outer(e, e, w[i]))
            nk = add_up(weights)
            kk = kappa0[k] + nk
            if nk == 0:
                mk, B = (list(m0[k]) if kk > 0 else [NAN] * d), zeros(d)
            else:
                delta = [centre[j] - m0[k][j] for j in range(d)]
                mk = [m0[k][j] + nk / kk * delta[j] for j in range(d)]
                B = outer(delta, delta, kappa0[k] * nk / kk)
            for collection, value in zip(
                (n, xbar, scatter, kappa, m, between), (nk, centre, S, kk, mk, B), strict=True
            ):
                collection.append(value)
        members = [list(range(K))] if self.shared else [[k] for k in range(K)]
        return {
            "K": K,
            "d": d,
            "n": n,
            "xbar": xbar,
            "m0": m0,
            "kappa0": kappa0,
            "nu0": nu0,
            "Psi0": Psi0,
            "kappa": kappa,
            "m": m,
            # One entry per covariance block.
            "members": members,
            "N": [add_up(n[k] for k in own) for own in members],
            "scatter": [add_matrices(*(scatter[k] for k in own)) for own in members],
            "nu": [nu0[b] + add_up(n[k] for k in own) for b, own in enumerate(members)],
            "Psi": [
                add_matrices(Psi0[b], *(scatter[k] for k in own), *(between[k] for k in own))
                for b, own in enumerate(members)
            ],
        }

    def _log_evidence(self, state):
        d, total = state["d"], ZERO
        for b, own in enumerate(state["members"]):
            nu0, Psi0, nu, Psi, N = (state[name][b] for name in ("nu0", "Psi0", "nu", "Psi", "N"))
            if any(state["kappa0"][k] <= 0 for k in own) or nu0 <= d - 1 or cholesky(Psi0) is None:
                raise Undefined("no evidence: the normal-inverse-Wishart prior is improper")
            total -= N * d / 2 * LOG_PI
            total -= ctx.mpf(d) / 2 * add_up(ctx.log1p(state["n"][k] / state["kappa0"][k]) for k in own)
            total += nu0 / 2 * log_det(Psi0) - nu / 2 * log_det(Psi)
            total += log_multigamma(nu / 2, d) - log_multigamma(nu0 / 2, d)
        return total

    def _covariance(self, state, route, b):
        d, own = state["d"], state["members"][b]
        filled = sum(1 for k in own if state["n"][k] > 0)
        matrix, denominator = {
            "mle": (state["scatter"][b], state["N"][b]),
            "unbiased": (state["scatter"][b], state["N"][b] - filled),
            "map": (state["Psi"][b], state["nu"][b] + d + 1 + len(own)),
            "mean": (state["Psi"][b], state["nu"][b] - d - 1),
        }[route]
        if denominator <= 0 or cholesky(matrix) is None:
            return [[NAN] * d for _ in range(d)]
        return scale_matrix(matrix, 1 / denominator)

    def _parameters(self, state, route):
        covariance = [self._covariance(state, route, b) for b in range(len(state["members"]))]
        mean = state["xbar" if route in ("mle", "unbiased") else "m"]
        return {
            "mean": [list(row) for row in mean],
            "covariance": covariance[0] if self.shared else covariance,
        }

    def _log_prior(self, state, params):
        K = state["K"]
        covariance = [params["covariance"]] * K if self.shared else params["covariance"]
        total = add_up(
            log_inverse_wishart(covariance[own[0]], state["nu0"][b], state["Psi0"][b])
            for b, own in enumerate(state["members"])
        )
        for k in range(K):
            sigma = scale_matrix(covariance[k], 1 / state["kappa0"][k])
            total += log_multivariate_normal(params["mean"][k], state["m0"][k], sigma)
        return total

    def _log_plugin(self, state, route, params, row):
        K = state["K"]
        covariance = [params["covariance"]] * K if self.shared else params["covariance"]
        out = []
        for mean, sigma in zip(params["mean"], covariance, strict=True):
            undefined = any(ctx.isnan(v) for v in mean) or ctx.isnan(sigma[0][0])
            if undefined and any(x is not None for x in row):
                out.append(NAN)
            else:
                out.append(log_multivariate_normal(row, mean, sigma))
        return out

    def _log_predictive(self, state, row):
        K, d = state["K"], state["d"]
        if all(x is None for x in row):
            return [ZERO] * K
        proper = [cholesky(Psi) is not None for Psi in state["Psi"]]
        out = []
        for k in range(K):
            b = 0 if self.shared else k
            kappa, df = state["kappa"][k], state["nu"][b] - d + 1
            if not (kappa > 0 and df > 0 and proper[b]):
                out.append(NAN)
                continue
            scale = scale_matrix(state["Psi"][b], (kappa + 1) / (kappa * df))
            out.append(log_multivariate_t(row, df, state["m"][k], scale))
        return out

    def _logistic(self, state, params):
        K = state["K"]
        mean = params["mean"]
        covariance = [params["covariance"]] * K if self.shared else params["covariance"]
        weights = [solve(covariance[k], mean[k]) for k in range(K)]
        bias = [-HALF * dot(mean[k], weights[k]) for k in range(K)]
        if self.shared:
            return weights, bias, None
        bias = [bias[k] - HALF * log_det(covariance[k]) for k in range(K)]
        return weights, bias, [scale_matrix(inverse(covariance[k]), -HALF) for k in range(K)]


# -------------------------------------------------------------------------------------- mixed column types


class MixedOracle(Oracle):
    """Independent blocks given the class: ``MixedOracle([(model, columns), ...])``.

    A route may be a list, one per block (then phi takes "exact" unless `class_route` says otherwise).
    `parameters` gives {"blocks": [dict, ...]}.
    """

    routes = ROUTES

    def __init__(self, blocks):
        self.blocks = [(model, list(columns)) for model, columns in blocks]

    @staticmethod
    def _take(rows, columns):
        return [[row[j] for j in columns] for row in rows]

    def _resolve(self, rows, y, w, K, d):
        return MixedOracle([(m._resolve(self._take(rows, cols), y, w, K, len(cols)), cols) for m, cols in self.blocks])

    def _learn(self, rows, y, w, K, d):
        states = [m._learn(self._take(rows, cols), y, w, K, len(cols)) for m, cols in self.blocks]
        return {"states": states, "K": K}

    def _log_evidence(self, state):
        return add_up(m._log_evidence(s) for (m, _), s in zip(self.blocks, state["states"], strict=True))

    def _parameters(self, state, route):
        parts = []
        for (model, _), s, r in zip(self.blocks, state["states"], self._routes(route), strict=True):
            parts.append(model._parameters(s, "mean" if r == "exact" else r))
        return {"blocks": parts}

    def _routes(self, route):
        return [route] * len(self.blocks) if isinstance(route, str) else list(route)

    def _log_prior(self, state, params):
        blocks = zip(self.blocks, state["states"], params["blocks"], strict=True)
        return add_up(model._log_prior(s, p) for (model, _), s, p in blocks)

    def _log_likelihood(self, state, route, params, row):
        total = [ZERO] * state["K"]
        blocks = zip(self.blocks, state["states"], self._routes(route), params["blocks"], strict=True)
        for (model, columns), s, r, p in blocks:
            part = model._log_likelihood(s, r, p, [row[j] for j in columns])
            total = [a + b for a, b in zip(total, part, strict=True)]
        return total

    _log_plugin = _log_likelihood

    def _log_likelihood_moments(self, state, k, row):
        mean = variance = ZERO
        for (model, columns), s in zip(self.blocks, state["states"], strict=True):
            part = model._log_likelihood_moments(s, k, [row[j] for j in columns])
            mean, variance = mean + part[0], variance + part[1]
        return mean, variance

    def _logistic(self, state, params):
        """Weights in block order; only for blocks that are linear."""
        weights, bias = [[] for _ in range(state["K"])], [ZERO] * state["K"]
        for (model, _), s, p in zip(self.blocks, state["states"], params["blocks"], strict=True):
            W, b, quadratic = model._logistic(s, p)
            if quadratic is not None:
                raise NotImplementedError("a block with its own covariance per class is not linear")
            weights = [u + v for u, v in zip(weights, W, strict=True)]
            bias = [u + v for u, v in zip(bias, b, strict=True)]
        return weights, bias, None


# ----------------------------------------------------------------------------- section 12: empirical Bayes


def _read_groups(groups):
    return [[number(n) for n in group] for group in groups]


def dirichlet_evidence(alpha, groups):
    """ell(alpha) of section 12 for a symmetric concentration; each group has its own V; alpha may be inf."""
    groups = _read_groups(groups)
    alpha = number(alpha)
    if alpha == INF:
        return -add_up(add_up(g) * ctx.log(len(g)) for g in groups)
    return add_up(add_up(log_rising(alpha, n) for n in g) - log_rising(len(g) * alpha, add_up(g)) for g in groups)


def dirichlet_evidence_slope(alpha, groups):
    """ell'(alpha)."""
    groups, alpha = _read_groups(groups), number(alpha)
    total = ZERO
    for g in groups:
        V = len(g)
        total += add_up(digamma(alpha + n) - digamma(alpha) for n in g)
        total -= V * (digamma(V * alpha + add_up(g)) - digamma(V * alpha))
    return total


def dirichlet_evidence_vector(alpha, groups):
    """ell of a full concentration vector alpha (V,)."""
    alpha = [number(a) for a in alpha]
    total = ZERO
    for g in _read_groups(groups):
        total += add_up(log_rising(a, n) for a, n in zip(alpha, g, strict=True))
        total -= log_rising(add_up(alpha), add_up(g))
    return total


def dispersion_t(groups):
    """T of section 12: ell'(alpha) -> -T / (2 alpha^2) for large alpha."""
    total = ZERO
    for g in _read_groups(groups):
        N = add_up(g)
        total += add_up(n * (n - 1) for n in g) - N * (N - 1) / len(g)
    return total


def dirichlet_concentration(groups, points=240):
    """The global maximiser over [0, inf] and its ell: a scan of ln alpha, then bisection at each peak."""
    groups = _read_groups(groups)
    if all(add_up(g) <= 1 for g in groups):
        raise Undefined("every group has at most one count: the evidence does not depend on alpha")
    if all(sum(1 for n in g if n > 0) <= 1 for g in groups):
        return ZERO, -add_up(ctx.log(len(g)) for g in groups if add_up(g) > 0)
    grid = [ctx.mpf(10) ** (ctx.mpf(-8) + 20 * ctx.mpf(t) / points) for t in range(points + 1)]
    slopes = [dirichlet_evidence_slope(a, groups) for a in grid]
    candidates = [(dirichlet_evidence(INF, groups), INF)] if dispersion_t(groups) <= 0 else []
    for low, high, s_low, s_high in zip(grid[:-1], grid[1:], slopes[:-1], slopes[1:], strict=True):
        if s_low > 0 >= s_high:
            for _ in range(90):
                middle = ctx.sqrt(low * high)
                low, high = (middle, high) if dirichlet_evidence_slope(middle, groups) > 0 else (low, middle)
            candidates.append((dirichlet_evidence(low, groups), low))
    value, alpha = max(candidates, key=lambda pair: pair[0])
    return alpha, value
