"""Servers as engines: programs that are started here or addresses that answer, each an arm of a contrast.

What a server does inside is not seen: it has no rounds, no step cost and no logits but those that it tells. So these
are absent from its records.
"""
