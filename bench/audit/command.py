"""The verb `audit`: its command line, what it prints and the exit code. It judges nothing.

Exit codes: 0 nothing is wrong, 1 the answer is no or something is flagged, 2 the input cannot be used (a UserError,
which `bench.cli` prints), 3 a fault of the harness itself.
"""

from __future__ import annotations

import argparse
import os
import sys

from bench.audit.options import AuditOptions, add_arguments, options_from
from bench.errors import UserError
from bench.plain_text import plain_lines, plain_text

FAULT = 3
TRACE = "BENCH_TRACE"
"""Set to anything to see where a fault of the harness is."""


def main(rest: list[str]) -> int:
    """Run the verb. UserError where the input cannot be used."""
    what = "Read what somebody posted, recount it, and say in one sentence what it says. No model needed."
    parser = argparse.ArgumentParser(
        prog="python -m bench audit",
        description=what,
        epilog="exit codes: 0 nothing is wrong, 1 something is, 2 the input cannot be used, 3 a fault of this program",
    )
    add_arguments(parser)
    arguments = parser.parse_args(rest)
    options = options_from(arguments)
    try:
        return _run(arguments.file, options, arguments.json)
    except (UserError, BrokenPipeError, KeyboardInterrupt):
        raise
    except Exception as error:
        # A full disk is no fault of anybody's, and `bench.cli` says so.
        if os.environ.get(TRACE) or (isinstance(error, OSError) and error.errno is not None):
            raise
        place, why = _place(error), plain_text(str(error))[:200]
        print(
            f"error: a fault of the audit itself ({type(error).__name__}: {why}, at {place}); please "
            "report it with "
            f"the text that was read, {TRACE}=1 shows more",
            file=sys.stderr,
        )
        return FAULT


def _run(files: list[str], options: AuditOptions, as_json: bool) -> int:
    from bench.audit.audit import audit
    from bench.audit.show import format_audit, to_json

    report = audit(files, options)
    text = to_json(report) if as_json else plain_lines(format_audit(report))
    print(text.encode(sys.stdout.encoding or "utf-8", errors="replace").decode(sys.stdout.encoding or "utf-8"))
    return report.exit_code


def _place(error: Exception) -> str:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return f"{os.path.basename(trace.tb_frame.f_code.co_filename)}:{trace.tb_lineno}" if trace else "an unknown place"
