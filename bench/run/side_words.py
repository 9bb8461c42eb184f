"""What a side of a contrast and whoever tells it what to do say to each other. Knows neither of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # a side loads the engine's library before anything that brings numpy along
    from bench.run.arms import Prompt
    from pti_loop.settings import Settings

VALUE, ROW, END, FAULT = "value", "row", "end", "fault"
"""What comes back: the one value of a call, or its rows and their end; or the error that it ended with."""


@dataclass(frozen=True)
class About:
    """What a side says of its model."""

    model: dict[str, Any]
    sizes: dict[str, Any]
    prompts: list[Prompt]
    clocks: str
    build: str
    """Name of the engine's build that this side has loaded, by its files."""


@dataclass(frozen=True)
class Opened:
    """What a side says of its arms."""

    settings: Settings
    rollback: dict[str, Any]
    controls: list[str]
    evaluates: str = ""
    """Why each run evaluates what all prompts begin with; empty where it restores it, or nothing is common."""
