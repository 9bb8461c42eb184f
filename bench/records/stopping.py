"""Words for why a cell got no further block. Knows nothing about the rule that says so."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

FIXED, NARROW, DECIDED, BUDGET = "fixed", "narrow", "decided", "budget"
"""The plan had so many; the interval is as narrow as was asked for; it lies on one side of 1.00; time was up."""
STOPPED = (NARROW, DECIDED, BUDGET)
"""Those that a rule chose by looking at the blocks."""


def looked(config: Mapping[str, Any]) -> bool:
    """Whether the measure of a cell's configuration has a rule that looks at the blocks."""
    return bool((config.get("measure") or {}).get("until"))
