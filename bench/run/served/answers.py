"""How servers are asked for an answer and what their events say: llama-server's own way, and the OpenAI-compatible one.

Ids, times and counts are those that a server gives; where it gives none there are none here. Text is never tokenised
again. It knows nothing about arms.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bench.run.served.client import Client, ServerFault, Stream, events
from bench.run.served.draws import GREEDY, Draws

NATIVE, OPENAI = "llama-server", "openai"
"""Ways to ask."""
PATHS = {NATIVE: "/completion", OPENAI: "/v1/completions"}
DONE = b"[DONE]"
ENDED = ("eos", "stop")
"""What servers say of an answer that ended by itself."""
LEAST = 2
"""Tokens of an answer with a rate."""


@dataclass
class Answer:
    """One answer. Times are of the client's clock in nanoseconds; what a server did not tell is None or empty."""

    sent_ns: int
    finish_ns: int = 0
    ids: list[int | None] = field(default_factory=list[int | None])
    """By position; None where the stream left one out."""
    times: list[int] = field(default_factory=list[int])
    """When each of them came."""
    arrived: list[int] = field(default_factory=list[int])
    """When each event with text or ids came."""
    text: str = ""
    timings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    told: int | None = None
    """Tokens that the server says it made."""
    n_prompt: int | None = None
    n_cached: int | None = None
    model: str = ""
    why: str = ""
    """Why it ended, in the server's word."""

    @property
    def ended(self) -> bool:
        """Whether it ended by itself."""
        return self.why in ENDED

    @property
    def lacks(self) -> bool:
        """Whether the stream left out some ids."""
        return None in self.ids

    @property
    def tokens(self) -> int:
        """Tokens of the answer: by ids, else as the server counts them."""
        return len(self.ids) or int(self.told or 0)

    @property
    def first_ns(self) -> int:
        """When the first token came."""
        return self.times[0] if self.times else self.arrived[0]

    @property
    def last_ns(self) -> int:
        """When the last token came."""
        return self.times[-1] if self.times else self.arrived[-1]

    @property
    def digest(self) -> str:
        """A hash of the text."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:16]


def request(way: str, prompt: Sequence[int] | str, n_predict: int, seed: int, cache_prompt: bool,
            model: str = "", draws: Draws = GREEDY) -> dict[str, Any]:  # fmt: skip
    """The body of a request. Raises `ServerFault` where the way to ask has no words for its draws."""
    if way == NATIVE:
        return {"prompt": list(prompt) if not isinstance(prompt, str) else prompt, "n_predict": n_predict,
                "seed": seed, "cache_prompt": cache_prompt, "return_tokens": True, "stream": True,
                **draws.native()}  # fmt: skip
    text: Any = prompt if isinstance(prompt, str) else list(prompt)
    return {"model": model, "prompt": text, "max_tokens": n_predict, "seed": seed, "stream": True,
            "stream_options": {"include_usage": True}, "return_token_ids": True, **draws.openai()}  # fmt: skip


def ask(client: Client, way: str, body: Mapping[str, Any]) -> Answer:
    """The answer to a request. Raises `ServerFault` for one that is not whole, or contradicts itself."""
    stream = client.stream(PATHS[way], body)
    answer = read(stream, way)
    wanted = int(body["n_predict"] if way == NATIVE else body["max_tokens"])
    _check(answer, wanted, ends=not body["ignore_eos"])
    return answer


def read(stream: Stream, way: str) -> Answer:
    """What the events of a stream say. Raises `ServerFault`."""
    answer, ended = Answer(stream.sent_ns, stream.finish_ns), False
    for when, data in events(stream):
        if data == DONE:
            ended = True
            continue
        try:
            told = json.loads(data)
            if not isinstance(told, dict):
                raise ValueError("no mapping")
        except ValueError as error:
            raise ServerFault(f"streams an event that is no JSON: '{data[:60].decode(errors='replace')}'") from error
        if told.get("error"):
            error_told = told["error"]
            why = error_told.get("message", error_told) if isinstance(error_told, dict) else error_told
            raise ServerFault(f"ends its answer with an error: {str(why)[:200]}")
        try:
            ended = (_native if way == NATIVE else _openai)(answer, when, told) or ended
        except (TypeError, ValueError, LookupError, AttributeError) as error:
            raise ServerFault(f"streams an event of another form: '{data[:60].decode(errors='replace')}'") from error
    if not ended:
        raise ServerFault(f"ends its stream after {answer.tokens or len(answer.arrived)} tokens, before its last event")
    return answer


def _native(answer: Answer, when: int, told: Mapping[str, Any]) -> bool:
    """An event of /completion; returns whether it is the last. One of a begun answer has no token yet."""
    if told.get("stop"):
        answer.timings = dict(told.get("timings") or {})
        answer.told = int(told["tokens_predicted"])
        answer.n_prompt = int(told["tokens_evaluated"])
        cached = answer.timings.get("cache_n", told.get("tokens_cached") if answer.timings == {} else None)
        answer.n_cached = None if cached is None else int(cached)
        answer.model, answer.why = str(told.get("model") or ""), str(told.get("stop_type") or "")
        _add(answer, when, told, answer.told)
        if answer.ids and len(answer.ids) < answer.told:  # an answer that ends in the middle of a letter
            answer.times += [when] * (answer.told - len(answer.ids))
            answer.ids += [None] * (answer.told - len(answer.ids))
        return True
    made = told.get("tokens_predicted")
    _add(answer, when, told, None if made is None else int(made))
    return False


def _add(answer: Answer, when: int, told: Mapping[str, Any], made: int | None) -> None:
    ids, text = [int(one) for one in told.get("tokens") or []], str(told.get("content") or "")
    if not ids and not text:
        return
    # A token whose letter is not whole comes with no event of its own; what it is the event behind does not say.
    missing = max((made or 0) - len(answer.ids) - len(ids), 0) if ids else 0
    answer.ids += [*[None] * missing, *ids]
    answer.times += [when] * (missing + len(ids))
    answer.arrived.append(when)
    answer.text += text


def _openai(answer: Answer, when: int, told: Mapping[str, Any]) -> bool:
    """A chunk of /v1/completions. Ids come where the server is one that gives them when it is asked."""
    answer.model = str(told.get("model") or answer.model)
    if usage := told.get("usage"):
        answer.told, answer.n_prompt = int(usage["completion_tokens"]), int(usage["prompt_tokens"])
        cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens")
        answer.n_cached = None if cached is None else int(cached)
    if timings := told.get("timings"):
        answer.timings = dict(timings)
    for choice in told.get("choices") or []:
        text, ids = str(choice.get("text") or ""), [int(one) for one in choice.get("token_ids") or []]
        answer.ids += ids
        answer.times += [when] * len(ids)
        answer.text += text
        if text or ids:
            answer.arrived.append(when)
        answer.why = str(choice.get("finish_reason") or answer.why)
    return False


def _check(answer: Answer, wanted: int, ends: bool = False) -> None:
    """Raise `ServerFault` for counts that do not fit each other, or what was asked for. `ends`: it may end before."""
    if not answer.arrived:
        raise ServerFault("ends its answer without a token")
    if answer.told is None:
        raise ServerFault("does not say how many tokens its answer has, and events are no tokens")
    if answer.ids and len(answer.ids) != answer.told:
        raise ServerFault(f"says that it made {answer.told} tokens and sends {len(answer.ids)}: it loses or adds some")
    if answer.tokens > wanted:
        raise ServerFault(f"answers with {answer.tokens} tokens, and {wanted} were asked for")
    if ends and answer.ended and answer.tokens < wanted:
        if not answer.ids:
            raise ServerFault("gives no ids, and only these tell an answer that ends by itself; leave out "
                              "ignore_eos=false")  # fmt: skip
        if answer.tokens < LEAST:
            raise ServerFault("ends its answer with the first token, so that it has no rate; take that prompt out, or "
                              "leave out ignore_eos=false")  # fmt: skip
    elif answer.tokens < wanted:
        why = f" ({answer.why})" if answer.why else ""
        raise ServerFault(f"ends its answer after {answer.tokens} of {wanted} tokens{why}")
    made = answer.timings.get("predicted_n")
    if made is not None and int(made) != answer.told:
        raise ServerFault(f"times {made} tokens and says that it made {answer.told}")
    for name, value in answer.timings.items():
        if isinstance(value, (int, float)) and not (math.isfinite(value) and value >= 0):
            raise ServerFault(f"times {name} as {value}")


def ask_whole(client: Client, body: Mapping[str, Any]) -> tuple[list[int], str]:
    """Ids and text of the answer to llama-server's own kind of request, in one piece. Raises `ServerFault`."""
    told = client.json(PATHS[NATIVE], {**body, "stream": False})
    try:
        return [int(one) for one in told["tokens"]], str(told["content"])
    except (TypeError, ValueError, LookupError) as error:
        raise ServerFault("gives an answer in one piece without its tokens") from error


def fill(answer: Answer, ids: Sequence[int], text: str) -> None:
    """Put in the ids that the stream left out, from the same answer in one piece. Raises `ServerFault`."""
    if len(ids) != len(answer.ids):
        raise ServerFault(f"streams {len(answer.ids)} tokens and gives {len(ids)} in one piece, for the same prompt")
    for place, (streamed, whole) in enumerate(zip(answer.ids, ids, strict=True)):
        if streamed is not None and streamed != whole:
            raise ServerFault(f"streams token {streamed} at position {place} and gives {whole} in one piece, for the "
                              "same prompt at temperature 0, so what the stream left out is unknown")  # fmt: skip
    if not text.startswith(answer.text):
        raise ServerFault("loses text in its stream that it gives in one piece, for the same prompt")
    answer.ids = list(ids)
