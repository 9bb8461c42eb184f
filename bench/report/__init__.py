"""What the judge said, as tables, figures, a page and a terminal table. Computes no statistic of its own.

It reads no records: everything comes from the `Findings` and the claim rows that it is handed. The same input gives
the same bytes, so that a committed report only changes when the records behind it change.
"""

from __future__ import annotations

from bench.report.page.markdown import write_report
from bench.report.terminal.screen import print_summary

__all__ = ["print_summary", "write_report"]
