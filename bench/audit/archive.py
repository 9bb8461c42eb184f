"""An archive of cells that somebody sent: each cell is unpacked, checked against its manifest, judged and recounted.

One cell in it is audited as its folder would be. Of many, what is told is each comparison and each flag, under the name
of its cell. It knows no cell by heart, and keeps none of what it unpacked.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from bench.audit.options import AuditOptions
from bench.audit.record import read_record
from bench.audit.report import AuditReport
from bench.audit.trials import Flag, Record
from bench.errors import UserError
from bench.records.archives import Unpacked, unpack
from bench.records.cells import has_table, read_part, read_status

FORMAT = "archive of cells"
Judge = Callable[[Record, AuditOptions], AuditReport]


def audit_archive(path: Path, options: AuditOptions, judge: Judge) -> AuditReport:
    """Audit every cell of an archive, each by `judge`. Raises `UserError` for one that holds no cell."""
    with tempfile.TemporaryDirectory(prefix="pti-bench-") as folder:
        found = unpack(path, Path(folder))
        if not found.folders:
            why = f" ({found.faults[0]})" if found.faults else f"; its {found.ignored} files are something else"
            raise UserError(f"{path} has no sound cell in it{why}")
        reports = [(_name(one), _audited(one, options, judge)) for one in found.folders]
        flags = [Flag("ARCHIVE", fault) for fault in found.faults]
        hosts = [_host(one) for one in found.folders]
        if len(reports) == 1:
            name, report = reports[0]
            flags += _placed(report.flags, found.folders[0], name)
            return replace(report, path=f"{path}, {name}", flags=flags)
        states = Counter(str((read_status(one) or {}).get("state", "damaged")) for one in found.folders)
        for (name, report), one in zip(reports, found.folders, strict=True):
            flags += [replace(flag, sentence=f"{name}: {flag.sentence}")
                      for flag in _placed(report.flags, one, name)]  # fmt: skip
        return AuditReport(
            str(path), FORMAT, _answer(reports, states, hosts), [],
            [row | {"label": f"{name}, {row['label']}"} for name, report in reports for row in report.contrasts], [],
            _scope(found, hosts), _notes(found), flags,
        )  # fmt: skip


def _name(folder: Path) -> str:
    return f"{folder.parent.name}/{folder.name}"


def _host(folder: Path) -> tuple[str, str]:
    """Machine and host key of a cell."""
    return folder.parent.name, str((read_part(folder, "env.json") or {}).get("host") or "")


def _audited(folder: Path, options: AuditOptions, judge: Judge) -> AuditReport:
    """One cell. What did not decode is judged by its own checks alone."""
    if has_table(folder, "ledger"):
        try:
            return judge(read_record(folder), options)
        except UserError as error:
            damaged = Flag("DAMAGED", str(error))
            return replace(judge(_empty(folder), AuditOptions()), flags=[damaged], answer="It cannot be read.")
    report = judge(_empty(folder), AuditOptions())
    return replace(report, flags=[flag for flag in report.flags if flag.code != "EMPTY"], answer=_state(folder))


def _empty(folder: Path) -> Record:
    return Record(folder, "cell", ())


def _state(folder: Path) -> str:
    status = read_status(folder) or {}
    reason = f": {status['reason']}" if status.get("reason") else ""
    return f"No run to recount, the cell is {status.get('state', 'damaged')}{reason}."


def _placed(flags: Sequence[Flag], folder: Path, name: str) -> list[Flag]:
    """Flags without the folder that was unpacked into, which nobody can look into any more."""
    return [replace(flag, sentence=flag.sentence.replace(str(folder), name)) for flag in flags]


def _answer(reports: Sequence[tuple[str, AuditReport]], states: Counter[str], hosts: Sequence[tuple[str, str]]) -> str:
    flagged = sum(bool(report.flags) for _, report in reports)
    told = ", ".join(f"{number} {state}" for state, number in sorted(states.items()))
    machines = ", ".join(sorted({machine for machine, _ in hosts}))
    words = f"{flagged} of them with a flag" if flagged else "none of them with a flag"
    return f"{len(reports)} cells of {machines} on {len(set(hosts))} host(s): {told}; {words}."


def _scope(found: Unpacked, hosts: Sequence[tuple[str, str]]) -> list[str]:
    lines = [f"{machine}, host {host or 'unknown'}: {number} cells"
             for (machine, host), number in sorted(Counter(hosts).items())]  # fmt: skip
    kernels = f"kernel records of {', '.join(sorted(one.parent.name for one in found.kernels))} are not audited"
    return [*lines, *([kernels] if found.kernels else [])]


def _notes(found: Unpacked) -> list[str]:
    notes = ["each run, and each flag in full: unpack it below results/, and audit the folder of a cell, or --json"]
    return notes + ([f"{found.ignored} files in it are no part of a cell, and were not read"] if found.ignored else [])
