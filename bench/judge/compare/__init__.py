"""Two sets of findings side by side: which cells belong together, what may be compared, and what got worse."""
