"""PTI's loop: copies of one answer at staggered positions, one token of each in every decode.

Stream i holds the answer up to i tokens beyond the confirmed one, so that its guess is verified by stream i - 1 of the
same decode. With `emission=published rebuild=none` this is the loop behind 38.1 tok/s: after a full accept every
stream moves on by one token, so a round says N tokens of which N - 1 were said the round before. With
`emission=distinct rebuild=exact` a round emits N tokens once each, and the streams' guesses for the next round are
made by N - 1 single decodes, which is what an honest multi-token round costs. With `rebuild=mtp` the model's nextn head
guesses for the leading stream in place of the last of these decodes; that stream then catches up in the verifying one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pti_loop.draft.mtp import Mtp
from pti_loop.drafter import Source, Target
from pti_loop.engine import Unsupported
from pti_loop.guessing import drafter
from pti_loop.loop import Decoder, Draws, verify
from pti_loop.method import Method
from pti_loop.parameters import Parameter, Spec, Variant
from pti_loop.settings import Settings

SPEC = Spec(
    "stagger", "copies of one answer at staggered positions, {streams} streams",
    help="PTI's loop; emission=published rebuild=none is the one behind 38.1 tok/s, distinct and exact its honest form",
    parameters=(
        Parameter("emission", "published", "published: every stream's token is said each round; distinct: only news",
                  choices=("published", "distinct"), shown=True),
        Parameter("rebuild", "none", "after a full accept: none slides every stream by one token; exact makes new "
                  "guesses by single decodes; mtp lets the nextn head make the leading stream's guess in place of one",
                  choices=("none", "exact", "mtp"),
                  words={"mtp": ", the nextn head guesses for the leading one"}),
        Parameter("draws", "independent", "independent: a guess has a random number of its own; coupled: it shares "
                  "that of the draw it predicts", choices=("independent", "coupled"), warm=True),
        Parameter("stop", "tokens", "tokens: after n_predict confirmed tokens; rounds: after n_predict - 1 rounds, as "
                  "the published loop does, which says guesses last that nothing confirms",
                  choices=("tokens", "rounds")),
    ),
    answers="copies", layout="sequences", most_streams=8,
    variants=(
        Variant({"emission": "published"}, "PTI's published loop, {streams} streams", repeats=True),
        Variant({"emission": "distinct"}, "staggered copies, each token said once, {streams} streams"),
        Variant({"stop": "rounds"}, by_rounds=True),
    ),
)  # fmt: skip


class Loop(Method):
    """Streams that hold one answer to different lengths."""

    def needs(self, settings: Settings) -> Mapping[str, Any]:
        """Hidden states for the head."""
        return {"hidden": settings.rebuild == "mtp"}

    def source(self, target: Target) -> Source | None:
        """The nextn head where it rebuilds."""
        return drafter("mtp").make(target) if target.settings.rebuild == "mtp" else None

    def rounds(self, decoder: Decoder, prompts: Sequence[Sequence[int]]) -> Iterator[None]:
        """Decode one prompt with `settings.streams` staggered copies of it."""
        return _Stagger(decoder, prompts[0]).rounds()


class _Stagger:
    """`done` tokens of the answer are out; stream i will decode `tokens[i]` at answer position `done - 1 + i`."""

    def __init__(self, decoder: Decoder, prompt: Sequence[int]) -> None:
        self.decoder, self.prompt = decoder, prompt
        self.ctx, self.trace, self.clock = decoder.ctx, decoder.trace, decoder.clock
        self.streams = decoder.settings.streams
        self.slides = decoder.settings.rebuild == "none"
        self.publishes = decoder.settings.emission == "published"
        made = decoder.source.drafter(0, decoder.sampler) if decoder.source else None
        self.head = made if isinstance(made, Mtp) else None
        if decoder.ends and decoder.settings.stop == "rounds":
            raise Unsupported("method.stop=rounds ends after so many rounds, and an answer that ends by itself has its "
                              "own number of them; use method.stop=tokens, or ignore_eos=true")  # fmt: skip
        self.startup_rounds = 0
        self.text: list[int] = []
        """The prompt and what is confirmed, the newest token as the last one."""
        self.done = 1
        self.tokens: list[int] = []

    def rounds(self) -> Iterator[None]:
        self.ctx.clear()
        head = self.head

        def seen(start: int, length: int) -> None:
            if head:
                head.watch(start, self.prompt[start : start + length], self.ctx.hidden)

        first = self.decoder.prefill(self.prompt, 0, watch=seen)
        self.text = [*self.prompt, first]
        if head:
            self.decoder.begin(head, self.text, len(self.prompt))
        yield
        self.trace.open_window()
        self._rebuild(0, first, startup=True)
        self.startup_rounds = self.trace.n_rounds
        while not self._finished():
            self._round()
            yield
        self.trace.close_window()

    def _finished(self) -> bool:
        """What was said and never confirmed is no reason to stop."""
        settings = self.decoder.settings
        if settings.stop == "rounds":
            return self.trace.n_rounds - self.startup_rounds >= settings.n_predict - 1
        return self.done >= settings.n_predict or (self.done > 1 and self.text[-1] in self.decoder.ends)

    def _round(self) -> None:
        clock, trace, streams = self.clock, self.trace, self.streams
        began = clock()
        redecoded = 0
        if len(self.tokens) < streams:  # the round before left only its confirmed token: make the guesses again
            self._rebuild(self.source, self.tokens[0])
            redecoded = streams - 1 - bool(self.head)
        drafted = clock()
        width = self._decode()
        decoded = clock()
        text = self.decoder.behind(self.text, self.tokens[1:])
        choices = Draws(self.decoder.reader(), 0, 0, self.done, self._twin, text)
        # Streams that slide say on behind an end that nothing has confirmed.
        ends = () if self.slides else self.decoder.ends
        verified, accepted = verify(self.tokens, choices, trace, self.done, ends)
        drawn = choices.upto(accepted)
        sampled = clock()
        self._emit(drawn)
        emitted = clock()
        self._advance(drawn)
        ended = clock()
        times = (drafted - began, decoded - drafted, sampled - decoded, ended - emitted, ended - began)
        trace.round("steady", width, times, (streams - 1, verified, accepted), redecoded)

    def _decode(self) -> int:
        """The verifying decode. Returns its width: one beyond the streams when the leading one has to catch up."""
        streams, base = self.streams, len(self.prompt) + self.done - 1
        if not self.head:
            self.ctx.decode(self.tokens, range(base, base + streams), range(streams), None)
            return streams
        lead = streams - 1
        tokens = [*self.tokens[:lead], self.tokens[lead - 1], self.tokens[lead]]
        places = [*range(base, base + lead), base + lead - 1, base + lead]
        rows = [*range(lead), lead + 1]
        self.ctx.decode(tokens, places, [*range(lead), lead, lead], rows)
        self.head.watch(base, self.tokens, lambda: self.ctx.hidden()[rows])
        return streams + 1

    def _twin(self, stream: int) -> int:
        """Key of a stream's draw. In a sliding stagger stream i > 0 draws the guess that stream i - 1 draws again."""
        own = self.decoder.settings.draws == "independent"
        return self.decoder.guesses.twin(stream) if self.slides and own else 0

    def _emit(self, drawn: Sequence[int]) -> None:
        """Say what the method says: all accepted draws, or only the confirmed one when the rest is said again later."""
        said = drawn if self.publishes or not self.slides else drawn[:1]
        exact = self.decoder.settings.stop == "tokens"
        for i, token in enumerate(said):
            position = self.done + i
            if exact and position >= self.decoder.settings.n_predict:
                break
            source = "unverified" if self.slides and i > 0 else "verified"
            self.trace.emit(0, position, token, source)
            if token in self.decoder.ends:
                break

    def _advance(self, drawn: Sequence[int]) -> None:
        """Slide by one after a full accept, or leave the confirmed token for the next round to rebuild from.

        A sliding stagger confirms one token a round, stream 0's own draw, also after a miss: what the other streams
        drew is drawn again by stream 0 later, so keeping it would keep another random number's token.
        """
        if self.slides and len(drawn) == self.streams:
            self.done += 1
            self.text.append(drawn[0])
            replace, last = self.decoder.guesses.replace, self.done - 1
            self.tokens = [drawn[0], *(replace(last + i, drawn[i]) for i in range(1, self.streams))]
            return
        confirmed = drawn[:1] if self.slides else drawn
        if self.head:
            self.head.observe(confirmed, [], len(confirmed) - 1)
        self.source = len(confirmed) - 1
        self.done += len(confirmed)
        self.text += confirmed
        self.tokens = [confirmed[-1]]

    def _rebuild(self, source: int, confirmed: int, startup: bool = False) -> None:
        """Stagger the streams again behind `confirmed`, which no stream holds; `source` holds all before it.

        The last stream leads: it decodes the confirmed token and each guess in turn, and is copied to stream i when it
        holds what stream i must hold. Copies are of whole sequences, which every kind of memory can do.
        """
        ctx, lead = self.ctx, self.streams - 1
        if source != lead:
            ctx.drop(lead)
            ctx.copy(source, lead)
        self.tokens = [confirmed]
        for stream in range(lead):
            began = self.clock()
            if stream or source:
                ctx.drop(stream)
                ctx.copy(lead, stream)
            copied = self.clock()
            position = self.done + stream
            asks = self.head and stream == lead - 1
            drawn, decode_ns = self._ask() if asks else self._lead(stream, position)
            self.tokens.append(self.decoder.guesses.replace(position, drawn))
            if startup and not asks:
                ended = self.clock()
                times = (0, decode_ns, ended - copied - decode_ns, copied - began, ended - began)
                self.trace.round("startup", 1, times, (0, 0, 0))

    def _lead(self, stream: int, position: int) -> tuple[int, int]:
        """Decode the newest guess on the leading stream. Returns (its draw behind it, nanoseconds of the decode)."""
        began, place = self.clock(), len(self.prompt) + position - 1
        self.ctx.decode([self.tokens[-1]], [place], [self.streams - 1], None)
        decode_ns = self.clock() - began
        if self.head:
            self.head.watch(place, self.tokens[-1:], self.ctx.hidden)
        key = (0, 0 if self.decoder.settings.draws == "coupled" else stream + 1, position)
        text = self.decoder.behind(self.text, self.tokens[1:])(stream)
        return self.decoder.draws([key], [text])[0].token, decode_ns

    def _ask(self) -> tuple[int, int]:
        """The head's guess behind the newest one. Its time is the loop's own: no decode of the model."""
        assert self.head, "only a stagger with a head asks"
        return self.head.propose_behind(self.tokens[1:]), 0
