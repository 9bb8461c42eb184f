"""The table of servers: what a client saw of their answers beside what they say of themselves."""

from __future__ import annotations

from bench.judge.columns import RATIO, SHARE, column, table
from bench.judge.tables.base import ArmFact

NAN = float("nan")


@table
class ServerAnswers(ArmFact):
    """An arm of a contrast of servers, or one of its runs apart: rates by both clocks, guesses, and what was cached.

    The rows of runs apart are no speed of the server: an answer that it gives again may be a replay of the first.
    """

    cell: str = column("id of the cell")
    arm: str = column("arm of the contrast: baseline, treatment or a control")
    when: str = column("`blocks`: the runs that the ratio rests on. Of the carried prompt: first of all, directly "
                       "again, last of all. Of a server that is kept: cold, again, after a foreign prompt, again after "
                       "it")  # fmt: skip
    runs: int = column("runs of the row")
    tok_s: float = column("distinct tokens a second after the first, by the client's clock", "tok/s", decimals=1)
    own_tok_s: float = column("the same by the servers' own times, tokens but the first over the answer's time",
                              "tok/s", decimals=1, words="by its own clock", default=NAN)  # fmt: skip
    over_first: float = column("rate over that of the first such row of the cell", RATIO, decimals=2,
                               words="over the first")  # fmt: skip
    drafted: int | None = column("guesses, as the server counts them; nothing where it says nothing of any",
                                 default=None)  # fmt: skip
    accepted: int | None = column("guesses that were right", default=None)
    acceptance: float = column("the quotient of the two", SHARE, decimals=1, default=NAN)
    prefill_ms: float = column("from the request to the first token", "ms", decimals=1, words="first token ms")
    own_prompt_ms: float = column("the server's own time for the prompt", "ms", decimals=1, words="its prompt ms",
                                  default=NAN)  # fmt: skip
    cached: int = column("prompt tokens that it did not evaluate", "tokens", default=0)
    prompt_tokens: int = column("prompt tokens in all", "tokens", default=0)
    started: str = column("whether its server was fresh for each run, kept, or is at an address", words="server")
    compared_by: str = column("what its answers were compared by: token ids, or text", words="compared by")
