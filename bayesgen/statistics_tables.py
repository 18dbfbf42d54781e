"""Sufficient statistics as text, as a long table, and from the groups of a database; see `bayesgen.Statistics`."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bayesgen._codec import Decoder, Encoder, inline_array, read_inline
from bayesgen._values import check_count, python_value, python_values
from bayesgen.families.bernoulli import BernoulliStats
from bayesgen.families.categorical import CategoricalStats
from bayesgen.families.diagonal import GaussianStats
from bayesgen.families.multinomial import MultinomialStats
from bayesgen.families.normal_statistics import MultivariateGaussianStats, PatternStats
from bayesgen.families.poisson import PoissonStats
from bayesgen.statistics import Columns, Statistics
from bayesgen.statistics_checks import check_columns, check_statistics

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["from_json", "from_parquet", "from_table", "to_json", "to_parquet", "to_table"]

FORMAT, VERSION = "bayesgen statistics", 1
MOST_POSITIONS = 1 << 24  # columns or levels that a table may mean by its largest number
KEYS = ("class", "feature", "level", "feature_bis")
SECOND_MOMENTS = ("scatter", "var_pop", "var_samp", "covar_pop", "covar_samp")
NAMES = {  # what may be in a table, by the statistic that says which model it is of
    "word_count": {"word_count", "log_coefficient"},
    "present": {"present", "absent"},
    "level_count": {"level_count"},
    "total": {"total", "observed", "log_base"},
    "mean": {"weight", "mean", "mean_low", *SECOND_MOMENTS},
}


# ------------------------------------------------------------------------------- JSON


def to_json(statistics: Statistics) -> str:
    """See `Statistics.to_json`."""
    value = Encoder(inline_array, "these statistics")(statistics)
    return json.dumps({"format": FORMAT, "format_version": VERSION, "value": value}, allow_nan=False)


def from_json(text: str | bytes) -> Statistics:
    """See `Statistics.from_json`."""
    out = _decoded(text)
    check_statistics(out)
    return out


def _decoded(text: str | bytes) -> Statistics:
    """The value that is written in a text."""
    expected = "expected the text that Statistics.to_json() makes"
    try:
        content = json.loads(text)
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise ValueError("it is something else")
        if check_count("format_version", content["format_version"]) > VERSION:
            raise ValueError(f"it has version {content['format_version']} of the format: upgrade bayesgen")
        out = Decoder(read_inline)(content["value"])
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, RecursionError, OverflowError) as error:
        raise ValueError(f"{expected}: {error}") from error
    if not isinstance(out, Statistics):
        raise ValueError(f"{expected}; it holds a {type(out).__name__}")
    return out


# ------------------------------------------------------------------------------- a long table


class Cells(NamedTuple):
    """One statistic as rows of a table."""

    name: str
    value: np.ndarray
    axes: tuple[str, ...]


def cells_of(features: Any) -> list[Cells]:
    """The statistics of a family, with the names of their axes."""
    axes: dict[type, dict[str, tuple[str, ...]]] = {
        CategoricalStats: {"level_count": ("class", "level")},
        MultivariateGaussianStats: {
            "weight": ("class",),
            "scatter": ("class", "feature", "feature_bis")[-np.ndim(getattr(features, "scatter", 0)) :],
        },
    }
    own = axes.get(type(features), {})
    return [
        Cells(name, np.asarray(value), own.get(name, ("class", "feature")[: np.ndim(value)]))
        for name, value in features._asdict().items()
    ]


def columns_of(statistics: Statistics) -> dict[str, list[Any]]:
    """The columns of the long table."""
    if statistics.columns.blocks is not None:
        raise ValueError(
            "the statistics of a mixed model are of several kinds, one for each block: write them with to_json(), or "
            "those of the blocks, blocks_[i][1].statistics_"
        )
    if isinstance(statistics.features, PatternStats):
        raise ValueError(
            "the statistics of rows with missing cells are by pattern of observed columns, which no long table holds: "
            "write them with to_json()"
        )
    names = statistics.columns.names
    features = list(range(statistics.columns.n_features)) if names is None else python_values(names)
    own_levels = [python_values(own) for own in statistics.columns.levels or ()]
    sides: dict[str, dict[str, list[Any]]] = {
        "class": {"class": python_values(statistics.classes)},
        "feature": {"feature": features},
        "feature_bis": {"feature_bis": features},
        "level": {
            "feature": [j for j, own in zip(features, own_levels, strict=False) for _ in own],
            "level": [v for own in own_levels for v in own],
        },
    }
    parts: dict[str, list[Any]] = {key: [] for key in (*KEYS, "statistic", "value")}
    for cells in [Cells("class_count", statistics.class_count, ("class",)), *cells_of(statistics.features)]:
        size = cells.value.size
        at = np.indices(cells.value.shape).reshape(len(cells.axes), size)
        row = {key: np.full(size, None) for key in KEYS}
        for axis, where in zip(cells.axes, at, strict=True):
            row |= {key: objects(labels)[where] for key, labels in sides[axis].items()}
        row |= {"statistic": np.full(size, cells.name, dtype=object), "value": cells.value.ravel().astype(float)}
        for key, values in row.items():
            parts[key].append(values)
    out = {key: np.concatenate(values).tolist() for key, values in parts.items()}
    used = [key for key in KEYS if key in ("class", "feature") or any(v is not None for v in out[key])]
    return {key: out[key] for key in (*used, "statistic", "value")}


def objects(values: list[Any]) -> np.ndarray:
    """Values as they are, in an array."""
    out = np.empty(len(values), dtype=object)
    out[:] = values
    return out


def to_table(statistics: Statistics) -> pd.DataFrame:
    """See `Statistics.to_table`."""
    from bayesgen.comparison import import_pandas

    pd = import_pandas("to_table")
    columns = columns_of(statistics)
    return pd.DataFrame({k: pd.Series(v, dtype=object if k in KEYS else None) for k, v in columns.items()})


class Reader:
    """The rows of a long table, put into arrays.

    Parameters
    ----------
    table : data frame, Arrow table or mapping of str to sequence
    features, levels : see `Statistics.from_table`
    """

    def __init__(self, table: Any, features: Any, levels: Any) -> None:
        present = column_names(table)
        for needed in ("class", "feature", "statistic", "value"):
            if needed not in present:
                raise ValueError(f"table must have the columns class, feature, statistic and value; it has {present}")
        self.keys = {k: plain_list(table[k]) for k in KEYS if k in present}
        self.name = [str(v) for v in plain_list(table["statistic"])]
        lengths = {k: len(plain_list(table[k])) for k in (*self.keys, "statistic", "value")}
        if len(set(lengths.values())) > 1:
            raise ValueError(f"the columns of table must have one length; they have {lengths}")
        try:
            self.value = np.array(plain_list(table["value"]), dtype=float)
        except (TypeError, ValueError, OverflowError):
            raise ValueError("the column value of table must hold numbers") from None
        bad = np.flatnonzero(np.isnan(self.value))
        bad = bad[[self.name[i] not in ("log_base", "log_coefficient") for i in bad]] if bad.size else bad
        if bad.size:
            raise ValueError(f"the column value of table is missing in row {int(bad[0])} ({self.name[bad[0]]})")
        self.kind = self._kind()
        self.classes = self._classes()
        self.features, self.columns = self._columns(features, levels)

    def _kind(self) -> str:
        found = set(self.name)
        kinds = [kind for kind in NAMES if kind in found]
        if len(kinds) != 1:
            raise ValueError(
                f"the column statistic of table must hold class_count and one of {', '.join(NAMES)}; it holds "
                f"{sorted(found)}"
            )
        strange = sorted(found - NAMES[kinds[0]] - {"class_count"})
        if strange:
            raise ValueError(f"the statistic {strange[0]!r} does not go with {kinds[0]!r}, beside which it is given")
        if "class_count" not in found:
            raise ValueError("table has no rows with the statistic class_count: how many rows each class has")
        return kinds[0]

    def _classes(self) -> np.ndarray:
        labels = [k for k, s in zip(self.keys["class"], self.name, strict=True) if s == "class_count"]
        if any(label is None for label in labels):
            raise ValueError("a row of table with the statistic class_count has no class")
        return np.unique(np.array(labels))

    def _columns(self, features: Any, levels: Any) -> tuple[list[Any], Columns]:
        seen = {j for key in ("feature", "feature_bis") for j in self.keys.get(key, []) if j is not None}
        if features is None:
            numbers = all(isinstance(j, int) and j >= 0 for j in seen)
            if numbers and max(seen, default=0) >= MOST_POSITIONS:
                raise ValueError(
                    f"table has the feature {max(seen)}, and positions 0..{max(seen)} are too many columns: name the "
                    "columns that there are with features="
                )
            features = range(max(seen, default=-1) + 1) if numbers else sorted(seen, key=str)
        if isinstance(features, (str, bytes, dict)) or not hasattr(features, "__iter__"):
            raise ValueError(f"features must be a sequence of all columns in their order; got {features!r:.100}")
        features = [_plain(j) for j in features]
        if len(set(features)) < len(features):
            twice = next(j for i, j in enumerate(features) if j in features[:i])
            raise ValueError(f"features has {twice!r} twice")
        strange = sorted(map(str, seen - set(features)))
        if strange:
            raise ValueError(f"table has the feature {strange[0]!r}, which is not among the features given")
        names = None if features == list(range(len(features))) else np.array(features, dtype=object)
        if self.kind != "level_count":
            return features, Columns(len(features), names)
        if "level" not in self.keys:
            raise ValueError("table holds level_count, and has no column level")
        found: dict[Any, set[Any]] = {j: set() for j in features}
        for j, v in zip(self.keys["feature"], self.keys["level"], strict=True):
            if j is not None:
                found[j].add(v)
        given = levels or {}
        own = tuple(np.asarray(given[j]) if j in given else sorted_levels(found[j]) for j in features)
        return features, Columns(len(features), names, own)

    def array(self, name: str, axes: tuple[str, ...], fill: Any = 0.0) -> np.ndarray:
        """One statistic as an array over the axes; cells that the table does not have are `fill`."""
        places = {"class": index(python_values(self.classes)), "feature": index(self.features)}
        places["feature_bis"] = places["feature"]
        if "level" in axes:
            own = zip(self.features, self.columns.levels or (), strict=True)
            places["level"] = index([(j, v) for j, levels in own for v in python_values(levels)])
        out = np.full([len(places[axis]) for axis in axes], np.nan)
        for i in [i for i, s in enumerate(self.name) if s == name]:
            row = {key: values[i] for key, values in self.keys.items()}
            row["level"] = (row["feature"], row.get("level"))
            try:
                at = tuple(places[axis][row[axis]] for axis in axes)
            except KeyError as error:
                raise ValueError(
                    f"row {i} of table, with the statistic {name!r}, has {error.args[0]!r} where one of the classes, "
                    "features or levels is expected"
                ) from None
            if not np.isnan(out[at]):
                raise ValueError(f"table has {name!r} twice for {', '.join(str(row[axis]) for axis in axes)}")
            out[at] = self.value[i]
        return np.where(np.isnan(out), fill, out)

    def moment(self, name: str, axes: tuple[str, ...], needed: np.ndarray) -> np.ndarray:
        """A mean or scatter; it may be absent, and is 0 then, where it is not needed (no weight)."""
        return self.present(name, axes, self.array(name, axes, np.nan), needed)

    def present(self, name: str, axes: tuple[str, ...], value: np.ndarray, needed: np.ndarray) -> np.ndarray:
        """The value, with 0 for what is absent; raises where that is needed."""
        absent = np.isnan(value)
        lacking = np.argwhere(absent & needed)
        if lacking.size:
            labels = {"class": python_values(self.classes), "feature": self.features, "feature_bis": self.features}
            where = ", ".join(f"{axis} {labels[axis][i]!r}" for axis, i in zip(axes, lacking[0], strict=True))
            raise ValueError(f"table has no row with the statistic {name!r} for {where}, which has weight")
        return np.where(absent, 0.0, value)

    def has(self, name: str) -> bool:
        """Whether the table has a statistic."""
        return name in self.name

    def number(self, name: str, default: float) -> np.ndarray:
        """A statistic that is one number."""
        return self.array(name, (), default)

    def scatter(self, weight: np.ndarray, axes: tuple[str, ...], names: Sequence[str]) -> np.ndarray:
        """Scatter, as given or from a (co)variance with divisor n or n - 1; weight has the shape of the result."""
        found = [n for n in names if self.has(n)]
        if len(found) != 1:
            raise ValueError(f"table must have one of the statistics {', '.join(names)}; it has {found or 'none'}")
        kind = found[0].rpartition("_")[2]
        divisor = {"pop": weight, "samp": np.maximum(weight - 1.0, 0.0)}.get(kind, 1.0)
        value = self.array(found[0], axes, np.nan)
        if "feature_bis" in axes:  # one triangle is enough
            value = np.where(np.isnan(value), np.swapaxes(value, -1, -2), value)
        needed = weight > (1.0 if kind == "samp" else 0.0)
        return self.present(found[0], axes, value, np.broadcast_to(needed, value.shape)) * divisor


def from_table(table: Any, features: Any = None, levels: Any = None, pool: bool = False) -> Statistics:
    """See `Statistics.from_table`."""
    read = Reader(table, features, levels)
    count = read.array("class_count", ("class",))
    cells, every = ("class", "feature"), np.repeat(count[:, None], len(read.features), axis=1)
    out: Any
    if read.kind == "word_count":
        out = MultinomialStats(read.array("word_count", cells), read.number("log_coefficient", 0.0))
    elif read.kind == "present":
        present = read.array("present", cells)
        if not read.has("absent") and (present > every).any():
            raise ValueError("present is larger than class_count in a class: it counts rows, not occurrences")
        out = BernoulliStats(present, read.array("absent", cells) if read.has("absent") else every - present)
    elif read.kind == "level_count":
        out = CategoricalStats(read.array("level_count", ("class", "level")))
    elif read.kind == "total":
        observed = read.array("observed", cells) if read.has("observed") else every
        out = PoissonStats(read.array("total", cells), observed, read.number("log_base", np.nan))
    elif any(v is not None for v in read.keys.get("feature_bis", [])):
        out = _multivariate(read, count, pool)
    else:
        weight = read.array("weight", cells) if read.has("weight") else every
        scatter = read.scatter(weight, cells, ("scatter", "var_pop", "var_samp"))
        out = GaussianStats(weight, read.moment("mean", cells, weight > 0), read.array("mean_low", cells), scatter)
    made = Statistics(read.classes, count, out, read.columns)
    check_statistics(made)
    return made


def _multivariate(read: Reader, count: np.ndarray, pool: bool) -> MultivariateGaussianStats:
    cells = ("class", "feature")
    second = [i for i, s in enumerate(read.name) if s in SECOND_MOMENTS]
    pooled = all(read.keys["class"][i] is None for i in second)
    axes = ("feature", "feature_bis") if pooled else ("class", "feature", "feature_bis")
    weight = np.asarray(count.sum()) if pooled else count[:, None, None]
    scatter = read.scatter(weight, axes, ("scatter", "covar_pop", "covar_samp"))
    if pool and not pooled:
        scatter = scatter.sum(axis=0)
    own = read.array("weight", ("class",)) if read.has("weight") else count
    mean = read.moment("mean", cells, np.broadcast_to(own[:, None] > 0, (len(count), len(read.features))))
    return MultivariateGaussianStats(own, mean, read.array("mean_low", cells), scatter)


def index(values: Sequence[Any]) -> dict[Any, int]:
    """Position of each value."""
    return {v: i for i, v in enumerate(values)}


def sorted_levels(found: set[Any]) -> np.ndarray:
    """Levels in order; whole numbers are codes 0..max."""
    if found and all(isinstance(v, int) and not isinstance(v, bool) and v >= 0 for v in found):
        if max(found) >= MOST_POSITIONS:
            raise ValueError(
                f"table has the level {max(found)}, and codes 0..{max(found)} are too many: name the levels that there "
                "are with levels="
            )
        return np.arange(max(found) + 1)
    return np.array(sorted(found, key=lambda v: (type(v).__name__, v)))


def column_names(table: Any) -> list[Any]:
    """Names of the columns of a data frame, an Arrow table or a mapping."""
    for found in (getattr(table, "column_names", None), getattr(table, "keys", None), getattr(table, "columns", None)):
        if found is not None:
            return list(found() if callable(found) else found)
    raise ValueError(
        "table must be a data frame, an Arrow table, or a dict with the columns class, feature, statistic and value; "
        f"got {type(table).__name__}"
    )


def plain_list(column: Any) -> list[Any]:
    """A column as Python values; what is missing is None, and whole floats are whole numbers."""
    if isinstance(column, (str, bytes)) or not hasattr(column, "__iter__"):
        raise ValueError(f"a column of table must be a sequence; got {column!r:.100}")
    values = column.to_pylist() if hasattr(column, "to_pylist") else list(column)
    return [_plain(v) for v in values]


def _plain(v: Any) -> Any:
    if v is None or type(v).__name__ in ("NAType", "NaTType") or v != v:
        return None
    if type(v).__name__ in ("Timestamp", "Timedelta") and getattr(v, "tzinfo", None) is None:  # of pandas
        v = v.to_numpy()
    v = python_value(v)
    return int(v) if isinstance(v, float) and v.is_integer() else v


# ------------------------------------------------------------------------------- Parquet


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise ImportError("statistics in Parquet need the package pyarrow: pip install pyarrow") from error
    return pa, pq


def to_parquet(statistics: Statistics, path: Any) -> None:
    """See `Statistics.to_parquet`."""
    pa, pq = _pyarrow()
    columns: dict[str, Any] = dict(columns_of(statistics))
    for key in KEYS:
        kinds = {type(v) for v in columns.get(key, []) if v is not None}
        if len(kinds) > 1 or not kinds <= {str, int, float, bool}:
            columns[key] = [None if v is None else str(v) for v in columns[key]]
    empty = Statistics(statistics.classes, np.zeros(len(statistics.classes)), None, statistics.columns)
    about = {b"bayesgen": to_json(empty).encode()}
    pq.write_table(pa.table(columns).replace_schema_metadata(about), str(path))


def from_parquet(path: Any, features: Any = None, levels: Any = None, pool: bool = False) -> Statistics:
    """See `Statistics.from_parquet`."""
    pa, pq = _pyarrow()
    if not isinstance(path, (str, os.PathLike)):
        raise ValueError(f"path must be the path of a Parquet file; got {path!r:.100}")
    if not os.path.isdir(path):  # as some engines write one table
        open(path, "rb").close()  # a file that is not there is an error of its own
    try:
        table = pq.read_table(str(path))
        columns = {key: table[key].to_pylist() for key in table.column_names}
    except (OSError, pa.ArrowException, IndexError, UnicodeDecodeError, MemoryError) as error:
        raise ValueError(f"{str(path)!r} is not a Parquet file, or it is damaged: {error}") from error
    about = (table.schema.metadata or {}).get(b"bayesgen")
    if about is None:
        return from_table(table, features, levels, pool)
    try:
        return _exact(columns, _decoded(about), pool)
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        raise ValueError(f"{str(path)!r} does not hold what to_parquet() writes: {error!r}") from error


def _exact(exact: dict[str, list[Any]], known: Statistics, pool: bool) -> Statistics:
    """The statistics in a table, with the types and orders of those known without their numbers."""
    check_columns(known.columns)
    names = range(known.columns.n_features) if known.columns.names is None else python_values(known.columns.names)
    restore = {
        "class": {str(v): v for v in python_values(known.classes)},
        "feature": {str(v): v for v in names},
        "feature_bis": {str(v): v for v in names},
    }
    for key, labels in restore.items():
        exact[key] = [None if v is None else labels.get(str(v), v) for v in exact.get(key, [])]
    given = None
    if known.columns.levels is not None:
        given = dict(zip(names, known.columns.levels, strict=True))
        places = {j: {str(v): v for v in python_values(own)} for j, own in given.items()}
        pairs = zip(exact["feature"], exact["level"], strict=True)
        exact["level"] = [None if v is None else places[j].get(str(v), v) for j, v in pairs]
    if not exact["feature_bis"]:
        del exact["feature_bis"]
    out = from_table(exact, names, given, pool)
    return Statistics(known.classes, out.class_count, out.features, known.columns)
