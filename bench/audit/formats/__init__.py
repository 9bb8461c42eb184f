"""Readers of foreign records, one a format."""
