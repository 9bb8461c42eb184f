"""The verbs of `python -m bench`. Each imports what it needs when it runs, so that the help comes at once.

A `UserError` becomes one line on standard error and exit code 2, any other error one line and exit code 3. It measures
and judges nothing itself.
"""

from __future__ import annotations

import errno
import os
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from bench.errors import UserError, innermost_frame, nearest
from bench.host import interrupts, streams
from bench.plain_text import plain_lines, plain_text

if TYPE_CHECKING:
    from bench.host.device_lock import DeviceLocks

OWN = ("bench", "pti_loop", "kernels")
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
REFUSED = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENAMETOOLONG, errno.ELOOP, errno.EIO, errno.ESTALE,
           errno.ENXIO, errno.ENODEV, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN)  # fmt: skip
"""What the system says of a place or of its own limits; a file that is not there may be a fault of ours."""
USAGE = """usage: python -m bench VERB ...

Is a claimed LLM decoding speed-up real, on this machine, with this model?

  all                 the default sweep, the report, and the verdicts        python -m bench all
  sweep KEY=V,V ..    measure what is missing; Hydra overrides, no -m        python -m bench sweep streams=1,2,3,4
  report KEY=V ..     judge the stored results and write reports/            python -m bench report claims=FILE
  figures KEY=V ..    only the figures                                       python -m bench figures
  advise KEY=V ..     what to use here, from the stored results              python -m bench advise model=smollm2-135m
  audit FILE ..|-     judge what somebody posted, with no model              python -m bench audit post.txt
  collect FOLDER ..   put cells that were measured elsewhere among the results    python -m bench collect cells.tar.xz
  pack CELL .. -o F   one file of cells to send, without names of people     python -m bench pack -o cells.tar.xz
  claims new|check    write a claim sheet; say what would judge it            python -m bench claims check FILE
  rerun CELL          measure a stored cell again and compare the two        python -m bench rerun 0123456789ab
  synth PRESET FILE   a model of a given shape with random weights           python -m bench synth llama-3-8b x.gguf
  kernels ..          check and time the kernels on this GPU                 python -m bench kernels --streams 1,4
  doctor              what this machine can run, and what it cannot          python -m bench doctor
  setup ..            make the environment (`make setup` calls it)           python3 -m bench setup --backend cuda

`python -m bench VERB --help` tells more. docs/ explains how a measurement is made and how to read a verdict.
"""

FIGURES_HELP = """From stored results only. For a paper: PDF with TrueType fonts and PNG of 300 dpi, a page wide in
reports/figures and a column wide in reports/figures/column; of each figure a CSV file with what it shows; captions in
figures.tex. `report` makes the SVG of a page's width alone."""


def main(argv: Sequence[str]) -> int:
    """Run a verb; returns the exit code.

    0 well, 1 the answer is no, 2 something to mend, 3 a fault of the harness, 130 interrupted, 141 nobody reads on.
    """
    streams.open_missing()
    try:
        code = _run(argv)
        sys.stdout.flush()  # here, where a full disk is still a sentence
        return code
    except UserError as error:
        return _refuse(str(error))
    except KeyboardInterrupt:
        print("\ninterrupted; every finished cell is kept, the same command goes on from there", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader of our output has gone, as `| head` does
        _drop_output()
        return 141
    except Exception as error:
        if isinstance(error, ModuleNotFoundError) and (error.name or "").split(".")[0] not in OWN:
            lacks = f"{sys.executable} lacks {error.name}"
            return _refuse(f"{lacks}; run `make setup`, then use .venv/bin/python in its place")
        if isinstance(error, OSError) and error.errno in NO_ROOM:
            _drop_output()
            what = error.filename or "a file or the output"
            return _refuse(f"{what} cannot be written ({error.strerror}); free some room and type the same again")
        if isinstance(error, OSError) and error.errno in REFUSED:
            what = str(error.filename or "something that is needed")
            return _refuse(f"{what[:200]}: the system refuses it ({error.strerror}); give another, or mend that first")
        if isinstance(error, MemoryError):
            return _refuse("there is not enough memory for it; end something else, or give it less at once")
        return _refuse(str(error)) if isinstance(error, _sentences()) else _fault(error)


def _sentences() -> tuple[type[Exception], ...]:
    """Errors of the loop that are a sentence for the user; one whose module nobody has imported was not raised."""
    named = (("pti_loop.engine", "EngineError"), ("pti_loop.gguf.header", "ModelFileError"))
    return tuple(getattr(sys.modules[module], name) for module, name in named if module in sys.modules)


def _run(argv: Sequence[str]) -> int:
    if not argv or argv[0] in ("-h", "--help", "help"):
        print(USAGE, end="")
        return 0
    verb, rest = argv[0], list(argv[1:])
    interrupts.answer()
    if verb not in VERBS:
        raise UserError(f"unknown verb '{verb}'; {nearest(verb, VERBS)}")
    return VERBS[verb](rest)


def _refuse(sentence: str) -> int:
    """Say what is to be mended; returns exit code 2."""
    print(f"error: {plain_lines(sentence)}", file=sys.stderr)
    return 2


def _fault(error: Exception) -> int:
    """Say that an error is ours, so that exit code 1 always means that the answer is no; returns exit code 3."""
    if os.environ.get("BENCH_TRACEBACK"):
        traceback.print_exception(error)
    said = plain_text(f"{type(error).__name__}: {' '.join(str(error).split())[:300]}".removesuffix(": "))
    print(f"error: a fault of the harness, please report it: {said} ({innermost_frame(error)}); the same with "
          "BENCH_TRACEBACK=1 in front shows the traceback", file=sys.stderr)  # fmt: skip
    return 3


def _drop_output() -> None:
    """Send what standard output still holds nowhere: the interpreter would try again at its end, and complain."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _help(verb: str, rest: Sequence[str], text: str) -> bool:
    if any(word in ("-h", "--help") for word in rest):
        print(f"usage: python -m bench {verb} {text}")
        return True
    return False


def _sweep(rest: list[str]) -> int:
    from bench import sweeping

    return sweeping.main(rest)


def _all(rest: list[str]) -> int:
    from bench import sweeping

    return 0 if _help("all", rest, sweeping.ALL_HELP) else sweeping.everything(rest)


def _report(rest: list[str]) -> int:
    from bench import reporting

    return 0 if _help("report", rest, reporting.HELP) else reporting.main(rest)


def _figures(rest: list[str]) -> int:
    if _help("figures", rest, "[KEY=VALUE ..]\n\n" + FIGURES_HELP):
        return 0
    from bench.host.cpus import available_cpus
    from bench.report.figures.drawing import write_figures
    from bench.reporting import judged_of, options, summary_of, told, without_collector

    asked = options(rest)
    with without_collector():
        found = judged_of(asked)
        for path in write_figures(found.findings, found.claims, asked.reports, available_cpus()):
            print(path)
    return told(found, summary_of(found))


def _audit(rest: list[str]) -> int:
    from bench.audit.command import main as audit

    return audit(rest)


def _pack(rest: list[str]) -> int:
    from bench.contributions import command

    return 0 if _help("pack", rest, command.HELP) else command.main(rest)


def _collect(rest: list[str]) -> int:
    from bench import collecting

    return 0 if _help("collect", rest, collecting.HELP) else collecting.main(rest)


def _advise(rest: list[str]) -> int:
    text = """[model=NAME] [results=FOLDER] [machine=NAME]

Which way of decoding to use for which text, what that is worth, what is not worth it and why, the best draft length,
and which measurement would say more. From stored results only: this machine's, then those that come along."""
    if _help("advise", rest, text):
        return 0
    from bench.advise import main as advise

    return advise(rest)


def _claims(rest: list[str]) -> int:
    from bench.sheets.command import HELP
    from bench.sheets.command import main as claims

    if _help("claims", rest, HELP):
        return 0
    from bench.sweeping import load_engine

    load_engine(rest)
    return claims(rest)


def _rerun(rest: list[str]) -> int:
    text = """CELL [model.path=FILE] [results=FOLDER] [wait=SECONDS]

Measures one cell, its folder or its id, again from its record alone, and prints the ratio with its interval of both.
Exit code 1 where they come to different conclusions. With results=FOLDER the second measurement is kept there."""
    if _help("rerun", rest, text):
        return 0
    from pti_loop.load_first import load_first

    load_first()
    from bench.rerun import main as rerun

    return rerun(rest)


def _synth(rest: list[str]) -> int:
    from bench.synth.command import main as synth

    return synth(rest)


def _kernels(rest: list[str]) -> int:
    from kernels.bench import main as kernels

    if not any(word.split("=")[0] in ("--out", "-h", "--help") for word in rest):
        from bench.host import provenance
        from bench.plan.settings import Config
        from bench.records.kernels import FOLDER

        rest = [*rest, "--out", str(Path(Config().results) / provenance.machine()["name"] / FOLDER)]
    waits = [word for word in rest if word.startswith("wait=")]
    rest = [word for word in rest if word not in waits]
    if any(word in ("-h", "--help") for word in rest):
        return kernels(rest)
    with _kernel_locks(waits):
        return kernels(rest)


def _kernel_locks(waits: list[str]) -> DeviceLocks:
    """The locks of the GPUs that this process may use: kernels are timed on them."""
    from bench.host import devices
    from bench.host.device_lock import DeviceLocks

    try:
        wait = float(waits[-1].removeprefix("wait=")) if waits else 0.0
    except ValueError:
        raise UserError(f"{waits[-1]} is no number of seconds; write wait=600") from None
    return DeviceLocks([gpu.id for gpu in devices.visible()] or ["gpu"], alone=False, wait=wait)


def _doctor(rest: list[str]) -> int:
    from bench.setup.doctor import main as doctor

    return doctor(rest)


def _setup(rest: list[str]) -> int:
    from bench.setup.setup import main as setup

    return setup(rest)


VERBS = {
    "all": _all, "sweep": _sweep, "report": _report, "figures": _figures, "audit": _audit, "advise": _advise,
    "collect": _collect, "pack": _pack, "claims": _claims, "rerun": _rerun, "doctor": _doctor, "setup": _setup,
    "synth": _synth, "kernels": _kernels,
}  # fmt: skip
