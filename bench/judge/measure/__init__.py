"""Figures of one cell from its records."""
