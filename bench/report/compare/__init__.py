"""A comparison of results folders in the terminal, as Markdown and as CSV. Computes nothing."""
