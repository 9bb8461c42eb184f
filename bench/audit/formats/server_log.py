"""Logs that time one answer after another: llama-server (old and new form) and llama_perf of the command-line tools.

llama-server writes `slot print_timing: id 0 | task 5 | eval time = ..` a line each, or, before build 8000, the prefix
once and the times below it. It judges nothing.
"""

from __future__ import annotations

import re

from bench.audit.blocks import Block, Found, LinesBlock
from bench.audit.formats.llama_timings import SLOT, Timing, note_line
from bench.audit.numbers import real
from bench.audit.trials import Trial

_PROGRESS = re.compile(r"n_(?:gen|decoded) *= *(\d+), *tg *= *([\d.]+) *t/s")
_REST = re.compile(r"statistics +\S+?: .*#gen tokens|llama_perf_|llama_print_timings|common_perf_print|print_timing")
"""Lines of the same printers that say nothing that is judged."""
_PART = re.compile(r"^\s*(draft|target):\s*$")


def sniff(block: Block) -> bool:
    return isinstance(block, LinesBlock)


def read(block: Block) -> Found:
    assert isinstance(block, LinesBlock)
    found = Found("llama.cpp's log")
    reader = _Log(found)
    for line in block.lines:
        if _PART.match(line.text):  # llama-speculative times its two models apart; `speculative` reads that
            reader.elsewhere = True
        if len(line.text) < 2000 and not reader.elsewhere:
            reader.line(line.number, line.text)
        reader.elsewhere &= "total time" not in line.text
    reader.close()
    server = any("task" in trial.label for trial in found.trials)
    found.name = "llama-server's log" if server else "llama.cpp's timings"
    return found


class _Log:
    """Answers as their lines come; those of several slots may be mixed."""

    def __init__(self, found: Found) -> None:
        self.found = found
        self.open: dict[str, Timing] = {}
        self.last = ""
        self.progress: dict[str, tuple[int, int, float]] = {}
        self.told: set[str] = set()
        self.elsewhere = False

    def line(self, number: int, text: str) -> None:
        slot = SLOT.search(text)
        name = f"task {slot[2]}" if slot else self.last
        if slot:
            self.last = name
        running = _PROGRESS.search(text)
        if running:
            self.progress[name] = (number, int(running[1][:15]), real(running[2]))
            self.found.used.add(number)
            return
        timing = self.open.get(name) or Timing(number)
        begins = timing.ended and "prompt eval time" in text
        if begins:
            self._finish(name)
            timing = Timing(number)
        if note_line(timing, text):
            timing.lines.add(number)
            self.found.used.add(number)
            self.open[name] = timing
        elif _REST.search(text):
            self.found.used.add(number)

    def _finish(self, name: str) -> None:
        timing = self.open.pop(name, None)
        if timing is None or not timing.ended:
            return
        self.told.add(name)
        self.found.trials.append(timing.trial(name or f"run {len(self.found.trials) + 1}"))

    def close(self) -> None:
        for name in list(self.open):
            self._finish(name)
        for name, (number, tokens, rate) in self.progress.items():
            if name in self.told:
                continue
            label = f"{name or 'answer'} under way"
            self.found.trials.append(
                Trial(place=f"line {number}", line=number, label=label, emitted=tokens, printed={"tok_s": rate})
            )
            self.found.notes.append(
                f"line {number}: {rate:g} tok/s after {tokens} tokens is a rate so far, not an answer's final one"
            )
        self.found.trials.sort(key=lambda trial: trial.line)
