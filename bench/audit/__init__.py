"""Somebody else's record: read, recounted and flagged, with no model."""
