"""Claim sheets and their verdicts, from the judge's rows alone."""
