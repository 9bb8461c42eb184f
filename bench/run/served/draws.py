"""How a server is asked to draw its tokens, and whether an answer may end by itself. It asks nobody.

Both sides of a contrast get one seed a run, so that servers of one kind draw from the same random numbers: one that
guesses draws a number for each token that comes out, as one that does not.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from bench.plan.settings import Config
from bench.run.served.client import ServerFault
from bench.run.specs import chain_of
from pti_loop.chain import Chain

ORDER = ["penalties", "top_k", "top_p", "min_p", "temperature"]
"""llama-server's names for what a row of logits goes through; what else its own chain has is left out."""
USUAL = Chain()


@dataclass(frozen=True)
class Draws:
    """Temperature, sampler chain, and whether an end-of-generation token may be drawn."""

    temperature: float = 0.0
    chain: Chain = field(default_factory=Chain)
    ends: bool = False

    @property
    def followed(self) -> bool:
        """Whether the token that comes out is the likeliest by the logits, which a server can be asked for.

        Its random numbers it does not tell, nor what a penalty makes of a logit.
        """
        return not self.temperature and not self.chain.reads_text

    def native(self) -> dict[str, Any]:
        """Fields of a request to llama-server."""
        found: dict[str, Any] = {"temperature": self.temperature, "ignore_eos": not self.ends}
        return found if self.followed else found | self.chain.as_dict() | {"samplers": ORDER}

    def openai(self) -> dict[str, Any]:
        """Fields of an OpenAI-compatible request, with those that others have added to it.

        Raises `ServerFault` for what none of them has.
        """
        found: dict[str, Any] = {"temperature": self.temperature, "ignore_eos": not self.ends}
        if self.followed:
            return found
        if self.chain.reads_text and self.chain.repeat_last_n >= 0:
            raise ServerFault("takes no window of penalties; set repeat_last_n=-1, or ask a llama-server")
        names = {"top_k": "top_k", "top_p": "top_p", "min_p": "min_p", "repeat_penalty": "repetition_penalty",
                 "frequency_penalty": "frequency_penalty", "presence_penalty": "presence_penalty"}  # fmt: skip
        return found | {name: getattr(self.chain, key) for key, name in names.items()
                        if getattr(self.chain, key) != getattr(USUAL, key)}  # fmt: skip


GREEDY = Draws()


def draws_of(config: Config) -> Draws:
    """What a configuration asks for."""
    return Draws(config.temperature, chain_of(config), not config.ignore_eos)
