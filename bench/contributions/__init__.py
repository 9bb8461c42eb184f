"""Records that travel: packed into one file without a word about who measured them, or on whose machine."""
