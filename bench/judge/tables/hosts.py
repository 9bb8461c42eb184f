"""The table of hosts: several machines of one make, and whether what one of them measured speaks for another."""

from __future__ import annotations

from bench.judge.columns import RATIO, column, table
from bench.judge.tables.base import Fact

NAN = float("nan")
FIRST, AGREES, DIFFERS, CANNOT_TELL, NOT_COMPARED = "first", "agrees", "differs", "cannot tell", "not compared"


@table
class Host(Fact):
    """A/A between hosts: a machine beside another of its make, on one build, by the decodes that both profiles timed.

    Only hosts that agree are pooled. Where one does not, its rows stand under a name of their own in every table.
    """

    host: str = column("key of the host, made of its machine id or its cards' serials; empty for records without one")
    against: str = column("key of the host that it is held against: the one with most cells that has a profile")
    result: str = column(f"`{FIRST}` that others are held against, `{AGREES}`, `{DIFFERS}`, `{CANNOT_TELL}` where the "
                         f"interval is wider than the band, or `{NOT_COMPARED}` without a profile of both")  # fmt: skip
    pooled: bool = column("whether its records count together with those of `against`")
    step_ratio: float = column("its step time over that of `against`, of the decode in which they differ most", RATIO,
                               decimals=3, words="step time over", interval="ci", default=NAN)  # fmt: skip
    ci_low: float = column("lower end of the interval of `step_ratio`", RATIO, default=NAN)
    ci_high: float = column("upper end of the interval of `step_ratio`", RATIO, default=NAN)
    width: int | None = column("tokens in that decode", "tokens", default=None)
    layout: str = column("its layout, `sequences` or `tokens`", default="")
    compared: int = column("decodes that both profiles timed", default=0)
    sentence: str = column("what it says", words="what it says")
