"""mlx_lm.generate and mlx_lm.benchmark. It judges nothing. `batch_generate` sums an unknown number of answers."""

from __future__ import annotations

import re

from bench.audit.blocks import Block, Found, LinesBlock
from bench.audit.numbers import real
from bench.audit.trials import Trial

_LINE = re.compile(r"(\[batch_generate\] )?\b(Prompt|Generation): *(\d+) tokens, *([\d.]+) tokens-per-sec")
_TRIAL = re.compile(r"Trial +(\d+): .*?prompt_tps=([\d.]+).*?generation_tps=([\d.]+)")
_OTHER = re.compile(r"Peak memory: [\d.]+ GB|^Averages: |^={10}\s*$")


def sniff(block: Block) -> bool:
    return isinstance(block, LinesBlock)


def read(block: Block) -> Found:
    assert isinstance(block, LinesBlock)
    found = Found("mlx_lm")
    prompt: tuple[int, float] | None = None
    runs = 0
    for line in block.lines:
        if len(line.text) > 1000:
            continue
        row, trial = _LINE.search(line.text), _TRIAL.search(line.text)
        if row and row[2] == "Prompt":
            prompt = (int(row[3][:15]), real(row[4]))
        elif row:
            found.trials.append(_answer(line.number, row, prompt, len(found.trials)))
            prompt = None
        elif trial:
            runs += trial[1] == "1"
            found.trials.append(
                Trial(
                    place=f"line {line.number}",
                    line=line.number,
                    label=f"trial {trial[1][:9]}",
                    test="benchmark",
                    block=runs,
                    printed={"tok_s": real(trial[3]), "pp": real(trial[2])},
                )
            )
        elif not _OTHER.search(line.text):
            continue
        found.used.add(line.number)
    if any(trial.unshared for trial in found.trials):
        found.notes.append("batch_generate sums its answers and does not say how many there were")
    return found


def _answer(line: int, row: re.Match[str], prompt: tuple[int, float] | None, block: int) -> Trial:
    tokens, rate = int(row[3][:15]), real(row[4])
    known = tokens and rate > 0
    return Trial(
        place=f"line {line}",
        line=line,
        label=f"answer {block + 1}",
        block=block,
        unshared=bool(row[1]),
        counted=tokens,
        distinct=tokens,
        seconds=tokens / rate if known else float("nan"),
        printed={"tok_s": rate},
        prompt_tokens=prompt[0] if prompt else 0,
        prefill_seconds=prompt[0] / prompt[1] if prompt and prompt[1] > 0 and prompt[0] else float("nan"),
    )
