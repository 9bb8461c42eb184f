"""`python -m bench synth PRESET FILE.gguf [KEY=VALUE ..] [--force]`: what is asked for, and how far it is.

It knows nothing about how a file is made (`bench.synth.writer`).
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from bench.durations import clock_text
from bench.errors import UserError, nearest
from bench.run.progress import Estimate

SECONDS_A_LINE = 10.0
_OPTIONS = ("--force", "--help")


def main(words: Sequence[str]) -> int:
    """Write the model that the words ask for; returns the exit code. Raises `UserError`."""
    if not words or any(word in ("-h", "--help") for word in words):
        print(usage())
        return 0 if words else 2
    for word in words:
        if word.startswith("-") and word not in _OPTIONS:
            raise UserError(f"synth has no option {word} (settings are key=value); {nearest(word, _OPTIONS)}")
    names = [word for word in words if "=" not in word and not word.startswith("-")]
    if len(names) != 2:
        from bench.synth.shape import presets

        what = f"got {len(names)} of them ({' '.join(names)})" if names else "got none"
        raise UserError(f"synth needs a preset and a file, {what}; the presets are {', '.join(presets())}")
    return _write(names[0], Path(names[1]), [word for word in words if "=" in word], "--force" in words)


def usage() -> str:
    """Help, with the presets and formats that there are."""
    from bench.synth.formats import FORMATS
    from bench.synth.shape import OTHER_KEYS, keys, presets

    return f"""usage: python -m bench synth PRESET FILE.gguf [KEY=VALUE ..] [--force]

A GGUF file of a model's shape with random weights, to measure what a step costs without downloading the model. What
such a model says is no evidence: claims about acceptance, losslessness and quality are not judged on it. Examples:
  python -m bench synth qwen3.6-27b FILE.gguf format=UD-Q6_K_XL
  python -m bench synth llama-3-8b FILE.gguf layers=2 vocabulary=4096 seed=7
  python -m bench sweep model=gguf model.name=qwen3.6-27b model.path=FILE.gguf
presets (configs/synth): {", ".join(presets())}
formats: {", ".join(FORMATS)}
keys: {", ".join((*OTHER_KEYS, *keys()))}
--force replaces a file that exists."""


def _write(preset: str, target: Path, overrides: Sequence[str], force: bool) -> int:
    from bench.synth import writer
    from bench.synth.formats import check_format
    from bench.synth.shape import order

    asked = order(preset, overrides)
    check_format(asked.format)
    began = time.monotonic()
    try:
        with _shown(writer.size_of(asked), target.name) as progress:
            size = writer.write(asked, target, force=force, progress=progress)
    except KeyboardInterrupt:
        print(f"\ninterrupted; nothing was left at {target.parent}", file=sys.stderr)
        return 130
    seconds = time.monotonic() - began
    print(f"{target}: {asked.preset} with random weights, {asked.format}, {size / 1e9:.3f} GB in {seconds:.1f} s")
    return 0


@contextmanager
def _shown(total: int, name: str) -> Iterator[Callable[[int], None]]:
    """A bar on a terminal, elsewhere a line every ten seconds."""
    if sys.stdout.isatty():
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn
        from rich.progress import TransferSpeedColumn as Speed

        with Progress(TextColumn(name), BarColumn(bar_width=24), DownloadColumn(), Speed(), TimeRemainingColumn(),
                      transient=True) as bar:  # fmt: skip
            task = bar.add_task("", total=total)
            yield lambda added: bar.advance(task, added)
        return
    estimate, told = Estimate(total), [time.monotonic()]
    last = [time.monotonic()]

    def advance(added: int) -> None:
        moment = time.monotonic()
        estimate.add(added, moment - last[0])
        last[0] = moment
        if moment - told[0] >= SECONDS_A_LINE:
            told[0] = moment
            left = estimate.left(0.0, 0.0, 0.0)
            print(f"{name}: {estimate.done / 1e9:.1f} of {total / 1e9:.1f} GB"
                  + (f", about {clock_text(left)} left" if left else ""), flush=True)  # fmt: skip

    yield advance
