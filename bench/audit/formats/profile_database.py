"""Databases that profilers write: rocpd's (rocprofv3) and the one that nsys exports. Only kernels are read.

The file is opened read-only, without trust in its own views, and a query that takes too long is given up.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path
from urllib.parse import quote

from bench.audit.formats.profile_rows import short
from bench.audit.launches import Launches
from bench.audit.text import check_file
from bench.audit.trials import Record
from bench.errors import UserError

MOST_STEPS = 20_000_000
"""Instructions of SQLite's machine, in thousands of which it asks whether to go on."""
NSYS = "CUPTI_ACTIVITY_KIND_KERNEL"
_SUMS = (
    'count(*), avg("{end}" - "{start}"), min("{end}" - "{start}"), max("{end}" - "{start}"), sum("{end}" - "{start}")'
)


def read_database(path: Path) -> Record:
    """Kernels of a database. UserError where it has none that is known."""
    check_file(path)
    try:
        connection = sqlite3.connect(f"file:{quote(str(path.resolve()))}?mode=ro&immutable=1", uri=True)
        try:
            rows, tool = _rows(path, connection)
        finally:
            connection.close()
    except sqlite3.Error as error:
        raise UserError(
            f"{path}: cannot be read as a profiler's database ({str(error)[:100]}); export it as CSV"
        ) from error
    total = sum(row[5] or 0 for row in rows) or 1
    launches = [
        Launches(
            kernel=short(str(name)),
            place="database",
            calls=int(calls),
            us=mean / 1e3,
            us_low=low / 1e3,
            us_high=high / 1e3,
            share=whole / total,
        )
        for name, calls, mean, low, high, whole in rows
        if calls and mean is not None
    ]
    if not launches:
        raise UserError(f"{path}: has no launch of a kernel; trace with --kernel-trace")
    return Record(path, tool, (), (), (), tuple(launches))


def _rows(path: Path, connection: sqlite3.Connection) -> tuple[list[tuple[str, int, float, float, float, float]], str]:
    connection.execute("PRAGMA trusted_schema = OFF")
    steps = 0

    def enough() -> int:
        nonlocal steps
        steps += 10_000
        return int(steps > MOST_STEPS)

    connection.set_progress_handler(enough, 10_000)
    tables = [
        str(row[0])
        for row in connection.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view') LIMIT 2000")
    ]
    if NSYS in tables and "StringIds" in tables:
        sums = _SUMS.format(start="start", end="end")
        return connection.execute(
            f'SELECT s.value, {sums} FROM "{NSYS}" k JOIN StringIds s ON s.id = k.shortName '
            "GROUP BY 1 ORDER BY 6 DESC LIMIT 500"
        ).fetchall(), "nsys' database"
    dispatch = next((name for name in tables if name.startswith("rocpd_kernel_dispatch") and '"' not in name), None)
    symbol = next((name for name in tables if name.startswith("rocpd_info_kernel_symbol") and '"' not in name), None)
    if dispatch and symbol:
        sums = _SUMS.format(start="start", end="end")
        columns = {str(row[1]) for row in connection.execute(f'PRAGMA table_info("{symbol}")')}
        name = "display_name" if "display_name" in columns else "kernel_name"
        return connection.execute(
            f'SELECT s."{name}", {sums} FROM "{dispatch}" k JOIN "{symbol}" s ON s.id = k.kernel_id '
            "GROUP BY 1 ORDER BY 6 DESC LIMIT 500"
        ).fetchall(), "rocpd's database"
    raise UserError(
        f"{path}: is a database without a table of kernels that is known (rocpd's, nsys'); export it as CSV"
    )
