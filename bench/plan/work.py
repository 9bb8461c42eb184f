"""How much a cell decodes, counted in plain decodes, and the seconds that it takes beside: what a guess of its time is.

It counts as the cell will be measured: runs of the blocks and of the controls with the prompt of each, replays, the
texts once more on F16 weights. What wider decodes and a prompt's tokens cost beside a plain decode was read from the
runs of the reference. It knows no machine but whether that decodes on its CPU.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bench.plan.settings import PeersConfig
from bench.plan.treatment import APART
from pti_loop.parameters import declared


@dataclass(frozen=True, slots=True)
class Device:
    """What a decode costs beside one of a single row."""

    row: float
    """Each further row of a decode, up to some eight."""
    prompt: float
    """Each token of a prompt, of which hundreds are computed at once."""


CPU, GPU = Device(0.55, 0.38), Device(0.12, 0.04)
"""Medians of the reference: SmolLM2 on two threads, a 27B shape on an H200."""
ATTENTION = 6.4
"""Of a token of a prompt, what a token before it adds, in what that adds to a plain decode: many rows attend to it."""
LETTERS = 3.8
"""Letters of a token of the usual prompts."""
A_ROUND = 1.5
"""Tokens that a round of a method that guesses gives, roughly."""
WIDE = 2.0
"""Decodes that one on F16 weights takes as long as; the user's own have a quarter to a half of the bytes."""
WORK_OF_COUNTING = 400
"""Decodes that a decode under a profiler takes as long as, roughly."""
SERIES = 9
"""Decodes of one width's turn in a profile, until it is flat."""
CARRIED, KEPT = 3, 6
"""Runs of the carried prompt, and those of a drafter that is kept, with the foreign prompt before it."""
CELL_S, LOAD_GB_S, SERVER_S, DRAW_S = 1.5, 5.0, 0.4, 0.4e-3
"""Seconds of a cell's process without a decode, how fast weights are loaded, seconds of a server's start, and those of
a draw above temperature 0, which the CPU makes whatever decodes."""


def work(kind: str, config: Mapping[str, Any], on_cpu: bool = True, held: float = 0.0) -> float:
    """A guess of a cell's cost in plain decodes of its model. `held` is what a held token adds to one, as a share."""
    device = CPU if on_cpu else GPU
    if kind == "profile":
        return _profile(config, device)
    if kind == "counters":
        return float(sum(config["measure"]["counted_widths"]) * WORK_OF_COUNTING)
    return Runs(config, device, held).decodes()


def beside_s(kind: str, config: Mapping[str, Any], file_bytes: float, on_cpu: bool = True) -> float:
    """Seconds of a cell that are no decodes: its process, loading the weights, servers that start, draws."""
    load = file_bytes / (LOAD_GB_S * 1e9)
    if kind == "served":
        return CELL_S + (Runs(config, CPU).timed + CARRIED + KEPT) * (SERVER_S + load)
    if kind == "profile":
        peers = config["peers"]
        widths = peers.get("widths") or PeersConfig().widths
        starts = peers["pairs"] * (bool(peers["llama_bench"]) + bool(peers["llama_batched_bench"]) * len(widths))
        return float(CELL_S + load * (1 + starts))
    changed = ((config.get("treatment") or {}).get("engine") or {}) if kind == "trial" else {}
    draws = DRAW_S * work(kind, config, on_cpu) if config.get("temperature") else 0.0
    return (CELL_S + load) * (2 if any(key in APART for key in changed) else 1) + draws


def _profile(config: Mapping[str, Any], device: Device) -> float:
    """Widths in two layouts, in passes; a pair of a program beside is both programs' tokens."""
    measure, peers = config["measure"], config["peers"]
    widths = peers.get("widths") or PeersConfig().widths
    widest = measure["step_widths"]
    timed = [width for width in range(1, widest + 1) if width < 9 or width % 4 == 0]
    steps = 2 * measure["step_passes"] * sum(1 + device.row * (width - 1) for width in timed) * SERIES
    alone, beside = bool(peers["llama_bench"]), bool(peers["llama_batched_bench"])
    rows = alone + beside * sum(1 + device.row * (width - 1) for width in widths)
    return float(steps + 2 * peers["pairs"] * peers["n_gen"] * rows)


class Runs:
    """The runs of a contrast, a trial or a cell of servers, by its configuration as it is stored.

    `prompt` are the tokens of a prompt, guessed from its letters, without those that all have before them (`depth`).
    `held` is what a held token adds to a plain decode: the bytes that attention reads of it, over those of the weights.
    """

    def __init__(self, config: Mapping[str, Any], device: Device, held: float = 0.0) -> None:
        self.measure: Mapping[str, Any] = config["measure"]
        self.device, self._config = device, config
        self.method, items = config["method"], config["prompts"]["items"]
        self.declared, parameters = self.method["declaration"], self.method["parameters"]
        self.streams, self.n_predict = int(config["streams"]), int(config["n_predict"])
        one = self.declared["answers"] == "one"
        self.answers = self.streams if self.declared["answers"] == "independent" else 1
        self.wide = self.streams > 1 and not one
        self.guesses = bool(self.declared["guesses"])
        copies = self._copies = self.declared["answers"] == "copies"
        # Copies guess by what they are; all others by as many tokens as they may draft, half of which are not drafted.
        most = parameters.get("draft", parameters.get("window", 4))
        self.draft = float(most) / 2 if self.guesses and not copies else 0
        self.rebuilt = copies and parameters.get("rebuild", "none") != "none"
        said = sum(len(str(item.get("text") or "")) + len(str(item.get("system") or "")) for item in items)
        self.prompt, self.depth, self.held = said / max(len(items), 1) / LETTERS, int(config.get("depth") or 0), held
        heads = declared()[self.method["name"]].hidden  # which have to see every row of a prompt
        self.restores = self.depth > 0 and config["kind"] != "served" and not heads
        counted = Counter(item["class"] for item in items)
        classes = self.measure.get("classes") or sorted(counted)
        self.tasks = sum(min(int(self.measure["per_class"]), counted[name]) for name in classes)
        self.blocks = self.tasks * int(self.measure["blocks_per_prompt"])
        self.again = min(int(self.measure["again_blocks"]), self.blocks)
        self.controlled = min(int(self.measure["control_blocks"]), self.blocks) if self.guesses or self.wide else 0

    @property
    def timed(self) -> int:
        """Runs of both arms in the blocks, and of the second baseline."""
        return 4 * self.blocks + 2 * self.again

    def decodes(self) -> float:
        """Plain decodes of all that is measured, and of what is decoded again to say what differences were worth."""
        plain, treated = self._plain(), self._treated()
        timed = 2 * self.blocks * (plain + treated) + 2 * self.again * plain + self._controls(plain, treated)
        kept = KEPT * ("type" in self.method["parameters"])  # the engine's own drafters, which remember
        once = (CARRIED + kept + self.measure.get("texts", 0)) * treated + 4 * self._prefill()
        once += 2 * (1 + WIDE * bool(self.measure.get("sharp"))) * self._beginning() * self.restores
        pair = (plain + treated) / self.answers
        again = self.measure["noise_prompts"] * pair + 2 * self._differ(self.blocks) * pair
        wide = WIDE * (self.tasks * (plain + treated) + (1 + self._differ(self.tasks)) * pair)
        draws = 2 * self.measure.get("distribution", 0) * self._decode(self._width)
        return float(timed + once + again + wide * bool(self.measure.get("sharp")) + draws)

    def _controls(self, plain: float, treated: float) -> float:
        """Oracle and sabotage, the answers that they know, the wide context alone, and both arms with no row alone."""
        short = min(self.measure["control_tokens"] or self.n_predict, self.n_predict) / self.n_predict
        guessing = 4 * (self._prefill() + short * (treated - self._prefill())) + 2 * treated
        padded = (plain + treated) * self._decode(2) if self.declared["answers"] == "one" else 0.0
        return self.controlled * (self.guesses * (guessing + padded) + self.wide * 2 * plain)

    def _differ(self, texts: int) -> int:
        """Texts of the treatment that are another than the baseline's: what nothing verified, above temperature 0."""
        drawn = self._config["temperature"] and self.method["parameters"].get("draws", "independent") == "independent"
        return texts if drawn and self.declared["repeats"] else 0

    def _prefill(self) -> float:
        """The prompts of a run, behind what all begin with, whose state is restored or which is evaluated."""
        own = self.device.prompt * self.prompt * (1 + ATTENTION * self.held * self.depth)
        return self.answers * (1 + own + self._beginning() * (not self.restores))

    def _beginning(self) -> float:
        """What all prompts begin with, evaluated once."""
        return self.device.prompt * self.depth * (1 + ATTENTION * self.held * self.depth / 2)

    def _decode(self, width: float) -> float:
        return 1 + self.device.row * (width - 1) + self.held * self.depth

    @property
    def _width(self) -> float:
        return self.streams if self._copies else self.answers * (1 + self.draft)

    def _plain(self) -> float:
        """A run of the baseline, which decodes answer after answer."""
        return self._prefill() + self.answers * self.n_predict * self._decode(1)

    def _treated(self) -> float:
        if self.rebuilt:  # guesses made by decoding are right: one decode each, and one of all of them
            both = (self.streams - 1) * self._decode(1) + self._decode(self._width)
            return self._prefill() + self.n_predict / self.streams * both
        return self._prefill() + self.n_predict / (A_ROUND if self.draft else 1) * self._decode(self._width)
