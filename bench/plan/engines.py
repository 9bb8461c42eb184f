"""The engines that there are: one line each, and the module that is loaded when a cell needs it.

A new engine is a module with the functions of `bench.run.engines.Engine`, and a line here. It loads none of them.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Listed:
    """What is known of an engine before it is loaded."""

    name: str
    """As in `model.engine`."""
    module: str
    label: str = ""
    """What a cell's label says of it; nothing for the usual one."""
    packages: tuple[str, ...] = ()
    """What a record lists beside the harness's own packages."""
    peers: bool = False
    """Whether programs of the same engine can run beside the loop."""
    trials: bool = False
    """Whether a build or a setting of it can be on trial."""


ENGINES = {
    one.name: one for one in (
        Listed("llama", "bench.run.engines.llama", peers=True, trials=True),
        Listed("hf", "bench.run.engines.hf", "transformers", ("torch", "transformers", "accelerate")),
        Listed("server", "bench.run.engines.server", "servers", trials=True),
    )
}  # fmt: skip
"""The usual one first."""
