"""Every edit of the catalogue, in whatever file it is told."""

from __future__ import annotations

from tests.faults import agreeing, beside, consistent, edits, models, records, served, sharp

FAULTS = records.FAULTS
"""The files put theirs into one list when they are imported."""
FILES = (records, sharp, edits, served, agreeing, models, consistent, beside)
