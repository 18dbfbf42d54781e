"""Values of this library as JSON and arrays, and back, without code in between.

Every value that is written is of a type in a fixed list: plain Python values, arrays, and the frozen dataclasses,
NamedTuples and estimators of this package. Reading looks classes up by name in that list; nothing is imported, called
or evaluated because a file says so.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from bayesgen.own_priors import is_distribution

__all__ = ["Decoder", "Encoder", "inline_array", "read_inline"]

PLAIN = "biufcUSMm"  # kinds of arrays that are their bytes
BIT_GENERATORS = ("MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64")
DISTRIBUTIONS = {  # of numpyro.distributions, with the arguments that make them again
    "Beta": ("concentration1", "concentration0"),
    "Cauchy": ("loc", "scale"),
    "Dirichlet": ("concentration",),
    "Exponential": ("rate",),
    "ExpandedDistribution": ("base_dist", "batch_shape"),
    "Gamma": ("concentration", "rate"),
    "HalfCauchy": ("scale",),
    "HalfNormal": ("scale",),
    "Independent": ("base_dist", "reinterpreted_batch_ndims"),
    "InverseGamma": ("concentration", "rate"),
    "Laplace": ("loc", "scale"),
    "LeftTruncatedDistribution": ("base_dist", "low"),
    "LogNormal": ("loc", "scale"),
    "Normal": ("loc", "scale"),
    "Pareto": ("scale", "alpha"),
    "StudentT": ("df", "loc", "scale"),
    "TwoSidedTruncatedDistribution": ("base_dist", "low", "high"),
    "Uniform": ("low", "high"),
    "Weibull": ("scale", "concentration"),
}
NO_CODE = (
    "a file holds numbers and names, no code. Keep its statistics (statistics_.to_json()), and state the model in code "
    "where they are read (from_statistics); or use pickle, among readers who trust the writer"
)


@cache
def values() -> dict[str, type]:
    """Dataclasses and NamedTuples that may be stored, by name."""
    from bayesgen import (
        class_prior,
        em,
        families,
        fit,
        importance,
        incomplete,
        learning,
        mixture,
        nuts,
        own_priors,
        priors,
        sampled,
        statistics,
    )
    from bayesgen.estimators._shell import Learned
    from bayesgen.families import bernoulli, categorical, diagonal, multinomial, normal_statistics, poisson

    kinds: tuple[type, ...] = (
        *(getattr(families, name) for name in families.__all__ if name not in ("Family", "Labels")),
        bernoulli.BernoulliStats,
        categorical.CategoricalStats,
        diagonal.GaussianStats,
        multinomial.MultinomialStats,
        normal_statistics.MultivariateGaussianStats,
        poisson.PoissonStats,
        class_prior.ClassPrior,
        priors.Gamma,
        priors.NormalInverseGamma,
        priors.NormalInverseWishart,
        own_priors.HierarchicalCovariancePrior,
        own_priors.HierarchicalDirichlet,
        own_priors.Hyperpriors,
        own_priors.LKJPrior,
        learning.Evidence,
        nuts.NUTSOptions,
        nuts.Draws,
        importance.ImportanceOptions,
        sampled.SampledClasses,
        sampled.SampledFeatures,
        em.EMFit,
        em.PlugIn,
        mixture.MixtureFit,
        mixture.SampledMixture,
        mixture._ClassDraws,
        incomplete.IncompleteDraws,
        incomplete.IncompleteFit,
        normal_statistics.PatternStats,
        fit.FeatureFit,
        fit.MixedFit,
        fit.Fit,
        statistics.Columns,
        statistics.Statistics,
        Learned,
    )
    return {kind.__name__: kind for kind in kinds}


@cache
def estimators() -> dict[str, type]:
    """Estimators that may be stored, by name."""
    from bayesgen import estimators as module

    return {name: getattr(module, name) for name in module.__all__}


def field_names(kind: type) -> list[str]:
    """Names of the fields of a dataclass or NamedTuple."""
    named: Any = kind
    return list(named._fields) if hasattr(kind, "_fields") else [f.name for f in dataclasses.fields(named)]


class Encoder:
    """Turns values into what JSON can hold.

    Parameters
    ----------
    store : callable
        Takes an array of plain numbers, texts or dates, and gives the JSON that stands for it.
    what : str
        What is being stored, for messages.
    """

    def __init__(self, store: Callable[[np.ndarray], Any], what: str) -> None:
        self.store = store
        self.what = what
        self.seen: dict[int, int] = {}  # distributions: one that is in two places is one random number
        self.kept: list[Any] = []

    def __call__(self, value: Any, where: str = "value") -> Any:
        """The JSON form of a value; `where` names it in messages."""
        if value is None or isinstance(value, (bool, str)):
            return value if value is None or isinstance(value, bool) else str(value)
        if isinstance(value, np.generic):
            return {"is": "number", "array": self.array(np.asarray(value), where)}
        if isinstance(value, int):
            return value
        if isinstance(value, float):
            return value if np.isfinite(value) else {"is": "float", "text": str(value)}
        if isinstance(value, list):
            return [self(v, f"{where}[{i}]") for i, v in enumerate(value)]
        if isinstance(value, slice):
            return {"is": "slice", "ends": self([value.start, value.stop, value.step], where)}
        if isinstance(value, dict):
            return {"is": "dict", "items": [[self(k, where), self(v, f"{where}[{k!r}]")] for k, v in value.items()]}
        if isinstance(value, (np.random.Generator, np.random.RandomState)):
            return self.random(value, where)
        if is_distribution(value):
            return self.distribution(value, where)
        return self.composite(value, where)

    def composite(self, value: Any, where: str) -> Any:
        """Tuples, arrays, and values of this library."""
        kind = type(value)
        if kind is tuple:
            return {"is": "tuple", "items": [self(v, f"{where}[{i}]") for i, v in enumerate(value)]}
        if values().get(kind.__name__) is kind:
            parts = {name: getattr(value, name) for name in field_names(kind)}
            return {"is": kind.__name__, **{k: self(v, f"{where}.{k}") for k, v in self.state(value, parts).items()}}
        if estimators().get(kind.__name__) is kind:
            return self.estimator(value, where)
        if hasattr(value, "__array__") and not callable(value):
            return self.array(np.asarray(value), where)
        name = getattr(value, "__name__", None) or kind.__name__
        sort = "a function" if callable(value) and not isinstance(value, type) else f"of the type {kind.__module__}"
        raise ValueError(f"cannot store {self.what}: {where} is {name!r}, {sort}; {NO_CODE}")

    def state(self, value: Any, parts: dict[str, Any]) -> dict[str, Any]:
        """The fields of a value, with what took long to compute."""
        made = vars(value) if hasattr(value, "__dict__") else {}
        name = type(value).__name__
        if name == "FeatureFit" and made.get("_learned") is not None:
            family, learned = made["_learned"]
            parts["made"] = (family, learned.value, learned.standard_error, learned.log_evidence, learned.names)
        if name in ("SampledFeatures", "SampledMixture", "IncompleteDraws") and "_run" in made:
            parts |= dict.fromkeys(parts.keys() & {"rows", "unknown"}) | {"made": made["_run"]}  # rows were for the run
        if name == "SampledClasses" and "draws" in made:
            parts["made"] = made["draws"]
        return parts

    def array(self, value: np.ndarray, where: str) -> Any:
        """An array."""
        if value.dtype.kind in PLAIN and value.dtype.names is None:
            return self.store(value)
        if value.dtype.kind != "O":
            raise ValueError(f"cannot store {self.what}: {where} is an array of {value.dtype}")
        cells = [self.cell(v, where) for v in value.ravel().tolist()]
        return {"is": "objects", "shape": list(value.shape), "items": cells}

    def cell(self, value: Any, where: str) -> Any:
        """An entry of an array of objects."""
        if value is None or isinstance(value, (bool, int, float, str, np.generic)):
            return self(value, where)
        raise ValueError(
            f"cannot store {self.what}: {where} holds {value!r}, of type {type(value).__name__}; numbers, texts, NumPy "
            "dates and None can be stored"
        )

    def random(self, value: Any, where: str) -> Any:
        """The state of a generator."""
        legacy = isinstance(value, np.random.RandomState)
        state: Any = value.get_state(legacy=False) if legacy else value.bit_generator.state
        if state["bit_generator"] not in BIT_GENERATORS:
            raise ValueError(f"cannot store {self.what}: {where} is a generator with {state['bit_generator']}")
        return {"is": "random", "legacy": legacy, "state": self(dict(state), where)}

    def distribution(self, value: Any, where: str) -> Any:
        """A NumPyro distribution."""
        if id(value) in self.seen:
            return {"is": "same", "as": self.seen[id(value)]}
        name = type(value).__name__
        if name not in DISTRIBUTIONS:
            raise ValueError(
                f"cannot store {self.what}: {where} is a {name} distribution; those that can be stored are "
                f"{', '.join(DISTRIBUTIONS)}"
            )
        parts = {k: self(getattr(value, k), f"{where}.{k}") for k in DISTRIBUTIONS[name]}
        self.seen[id(value)] = len(self.kept)
        self.kept.append(value)
        return {"is": "distribution", "name": name, "arguments": parts}

    def estimator(self, value: Any, where: str) -> Any:
        """Constructor parameters and what was learned."""
        params = {
            k: self(v, k if where == "value" else f"{where}.{k}") for k, v in value.get_params(deep=False).items()
        }
        out = {"is": "estimator", "class": type(value).__name__, "params": params}
        out["learned"] = self(value.__dict__.get("_learned"), "what was learned")
        output = value.__dict__.get("_sklearn_output_config")
        return out if output is None else out | {"output": self(output, "set_output")}


class Decoder:
    """Turns what `Encoder` made into values again; raises for anything else.

    Parameters
    ----------
    load : callable
        Takes the JSON that stands for an array, and gives the array.
    """

    def __init__(self, load: Callable[[Any], np.ndarray]) -> None:
        self.load = load
        self.distributions: list[Any] = []

    def __call__(self, value: Any) -> Any:
        """The value of a JSON form."""
        if isinstance(value, list):
            return [self(v) for v in value]
        if not isinstance(value, dict):
            return value
        kind = value["is"]
        if not isinstance(kind, str):
            raise ValueError(f"a value of the kind {kind!r}")
        if kind in values():
            return self.own(values()[kind], {k: self(v) for k, v in value.items() if k != "is"})
        read = getattr(self, f"read_{kind}", None)
        if read is None:
            raise ValueError(f"a value of the unknown kind {kind!r}")
        return read(value)

    def own(self, kind: Any, parts: dict[str, Any]) -> Any:
        """A dataclass or NamedTuple of this library."""
        made = parts.pop("made", None)
        unknown = sorted(set(parts) - set(field_names(kind)))
        if unknown:
            raise ValueError(f"{kind.__name__} has no field {unknown[0]!r}")
        out = kind(**parts)
        if made is not None:
            restore(out, made)
        return out

    def read_float(self, value: Any) -> float:
        """NaN and infinities."""
        return {"nan": np.nan, "inf": np.inf, "-inf": -np.inf}[value["text"]]

    def read_tuple(self, value: Any) -> tuple[Any, ...]:
        """A tuple."""
        return tuple(self(v) for v in value["items"])

    def read_dict(self, value: Any) -> dict[Any, Any]:
        """A dict."""
        return {self(k): self(v) for k, v in value["items"]}

    def read_slice(self, value: Any) -> slice:
        """A slice."""
        return slice(*self(value["ends"]))

    def read_number(self, value: Any) -> Any:
        """A NumPy scalar."""
        return self(value["array"])[()]

    def read_array(self, value: Any) -> np.ndarray:
        """An array of numbers, texts or dates."""
        return self.load(value)

    def read_objects(self, value: Any) -> np.ndarray:
        """An array of objects."""
        items = [self(v) for v in value["items"]]
        out = np.empty(len(items), dtype=object)
        out[:] = items
        return out.reshape([int(n) for n in value["shape"]])

    def read_random(self, value: Any) -> Any:
        """A generator in its state."""
        state = self(value["state"])
        if value["legacy"]:
            legacy = np.random.RandomState()
            legacy.set_state(state)
            return legacy
        if state["bit_generator"] not in BIT_GENERATORS:
            raise ValueError(f"a generator with {state['bit_generator']!r}")
        bits = getattr(np.random, state["bit_generator"])()
        bits.state = state
        return np.random.Generator(bits)

    def read_distribution(self, value: Any) -> Any:
        """A NumPyro distribution of the list."""
        import numpyro.distributions as dist

        name = value["name"]
        arguments = [self(value["arguments"][k]) for k in DISTRIBUTIONS[name]]
        out = getattr(dist, name)(*arguments)
        self.distributions.append(out)
        return out

    def read_same(self, value: Any) -> Any:
        """A distribution that was met before."""
        return self.distributions[value["as"]]

    def read_estimator(self, value: Any) -> Any:
        """An estimator, fitted if it was."""
        from bayesgen._restored import check_learned
        from bayesgen.fit import read_only

        kind: Any = estimators()[value["class"]]
        params = {k: self(v) for k, v in value["params"].items()}
        unknown = sorted(set(params) - set(kind._get_param_names()))
        if unknown:
            raise ValueError(f"{kind.__name__} has no parameter {unknown[0]!r}")
        out = kind(**params)
        learned = self(value["learned"])
        if learned is not None:
            check_learned(learned)
            read_only((learned.fit.classes, learned.fit.count, learned.fit.features.stats))
            out._commit(learned)
            out._check_statistics(out.statistics_, definite=False)  # after `forget` rounding may show
        if "output" in value:
            out._sklearn_output_config = self(value["output"])
        return out


def restore(value: Any, made: Any) -> None:
    """Put what took long to compute back into a value."""
    from bayesgen.fit import FeatureFit
    from bayesgen.learning import LearnedPrior
    from bayesgen.sampled import SampledFeatures

    if isinstance(value, FeatureFit):
        family, at, error, log_evidence, names = made

        def curve(values: Any) -> np.ndarray:
            again: Any = value.stated.learn(value.stats)
            return again[1].curve(values)

        value.__dict__["_learned"] = family, LearnedPrior(at, error, log_evidence, names, curve)
    elif isinstance(value, SampledFeatures):
        value.__dict__["_run"] = made
    else:
        value.__dict__["draws"] = made


def inline_array(value: np.ndarray) -> Any:
    """An array as JSON; every float64 keeps all its digits, and dates are their counts of units."""
    if value.dtype.kind in "cS":
        raise ValueError(f"an array of {value.dtype} has no form in JSON: use save and load")
    flat = (value.view("i8") if value.dtype.kind in "Mm" else value).ravel().tolist()
    if value.dtype.kind == "f" and not np.isfinite(value).all():
        flat = [v if np.isfinite(v) else str(v) for v in flat]
    return {"is": "array", "dtype": value.dtype.str, "shape": list(value.shape), "data": flat}


def read_inline(value: Any) -> np.ndarray:
    """See `inline_array`."""
    dtype = np.dtype(value["dtype"])
    if dtype.kind not in "biufUMm":
        raise ValueError(f"an array of {dtype}")
    flat = np.array(value["data"], dtype="i8").view(dtype) if dtype.kind in "Mm" else np.array(value["data"], dtype)
    return flat.reshape([int(n) for n in value["shape"]])
