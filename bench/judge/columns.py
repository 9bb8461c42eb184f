"""What a table of findings is made of: rows, built whole and read by column name, and what a column says of itself.

A table is one frozen dataclass; its fields, made with `column`, carry unit, interval, decimals, heading and the claim
metric that they serve. Whatever else needs to know a column asks for it here. It knows no table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields
from operator import attrgetter
from typing import Any, ClassVar, TypeVar, cast, dataclass_transform

SHARE, DIFFERENCE, BYTES, RATIO = "share", "difference", "bytes", "ratio"
"""Units that are printed in a way of their own: a share of 1, and the difference of two, as a percentage, bytes in MiB;
a ratio has no unit."""
CONDITIONS = "conditions"
"""The column that holds what is true of a whole cell: asked through, never told itself."""
_KEY = "column"


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table."""

    name: str
    help: str
    unit: str = ""
    """`share` and `ratio` are numbers of 1; empty for words, counts and truth values."""
    decimals: int | None = None
    """Digits behind the point where a page shows it, of a share those of the percentage; None: as many as it has, at
    most four significant ones, and bytes as MiB."""
    words: str = ""
    """Heading on a page."""
    low: str = ""
    """Columns of the ends of its 95 % interval; empty where it has none."""
    high: str = ""
    scaled_by: str = ""
    """Where it has no interval of its own: the ratio of the same row whose relative interval it shares."""
    metrics: tuple[str, ...] = ()
    """Claim metrics whose figure it is."""
    written: bool = True
    """Whether the CSV file has it; the others are there for who reads the row."""
    formerly: str = ""
    """Another name by which the column can be asked for."""
    place: int = 0
    """Columns stand in the order of this number, then in that of the fields."""

    @property
    def heading(self) -> str:
        """What stands above it on a page."""
        return self.words or self.name.replace("_", " ")


def column(
    help: str, unit: str = "", *, decimals: int | None = None, words: str = "",
    interval: str | tuple[str, str] = "", scaled_by: str = "", metric: str | tuple[str, ...] = (),
    written: bool = True, formerly: str = "", place: int = 0,
    default: Any = MISSING, default_factory: Any = MISSING,
) -> Any:  # fmt: skip
    """A field of a table. `interval` names the columns of its ends, or their stem: `ci` for `ci_low` and `ci_high`."""
    if isinstance(interval, str):
        interval = (f"{interval}_low", f"{interval}_high") if interval else ("", "")
    metrics = (metric,) if isinstance(metric, str) else metric
    about = Column("", help, unit, decimals, words, *interval, scaled_by, metrics, written, formerly, place)
    if default_factory is not MISSING:
        return field(default_factory=default_factory, metadata={_KEY: about})
    return field(default=default, metadata={_KEY: about})


class Row(Mapping[str, Any]):
    """A row of a table, read like a mapping from column names. What it lacks itself is looked up in its conditions.

    Conditions are what is true of a whole cell (settings of the engine, parameters of the arm): one mapping a cell,
    which its rows share. Building a row with an unknown column, or without a needed one, is a TypeError.
    """

    __slots__ = ()
    columns: ClassVar[Mapping[str, Column]] = {}
    """By name, in the order of the CSV file."""
    attribute_of: ClassVar[Mapping[str, str]] = {}
    """Attribute by every name that a column can be asked for."""
    unpack: ClassVar[Callable[[Any], tuple[Any, ...]]]

    def _conditions(self) -> Mapping[str, Any]:
        return getattr(self, CONDITIONS, None) or {}

    def __getitem__(self, name: str) -> Any:
        if name in self.attribute_of:
            return getattr(self, self.attribute_of[name])
        return self._conditions()[name]

    def get(self, name: str, default: Any = None) -> Any:
        """The value of a column or condition, `default` where there is none of that name."""
        # Rows are asked millions of times in a report: without the detour by __getitem__ and an exception.
        if name in self.attribute_of:
            return getattr(self, self.attribute_of[name])
        return self._conditions().get(name, default)

    def __contains__(self, name: object) -> bool:
        return name in self.attribute_of or name in self._conditions()

    def __iter__(self) -> Iterator[str]:
        yield from (name for name in self.columns if name != CONDITIONS)
        yield from (name for name in self._conditions() if name not in self.attribute_of)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __reduce__(self) -> tuple[Any, ...]:
        """Rows travel from the processes that judge to the one that reports: as a tuple, without their names."""
        return _rebuilt, (type(self), type(self).unpack(self))


R = TypeVar("R", bound=Row)


def _rebuilt(kind: type[R], values: tuple[Any, ...]) -> R:
    return kind(**dict(zip(kind.columns, values, strict=True)))


def changed(row: R, **values: Any) -> R:
    """The row with other values in some columns."""
    return type(row)(**dict(zip(row.columns, type(row).unpack(row), strict=True)) | values)


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(column,))
def table(kind: type[R]) -> type[R]:
    """Make a class of columns the type of a table's rows. Inherited columns come first, but for their `place`.

    Raises TypeError for an interval whose ends are no columns.
    """
    made = dataclass(frozen=True, slots=True, eq=False, kw_only=True)(kind)
    every = {one.name: _column(one.name, one.metadata[_KEY]) for one in fields(cast(Any, made))}
    made.columns = dict(sorted(every.items(), key=lambda item: item[1].place))
    former = {one.formerly: name for name, one in every.items() if one.formerly}
    made.attribute_of = {name: name for name in every} | former
    made.unpack = staticmethod(attrgetter(*made.columns))
    for one in made.columns.values():
        for other in filter(None, (one.low, one.high, one.scaled_by)):
            if other not in every:
                raise TypeError(f"{kind.__name__}.{one.name} has its interval in {other}, which is no column of it")
    return made


def _column(name: str, about: Column) -> Column:
    return Column(name, *(getattr(about, one.name) for one in fields(Column)[1:]))
