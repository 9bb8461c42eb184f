"""Drafters: where the guesses of a speculative loop come from, one module each."""
