"""Findings as rows and words: CSV files, values, conditions."""
