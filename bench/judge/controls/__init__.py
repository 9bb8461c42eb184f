"""Whether a cell's figures can be believed."""
