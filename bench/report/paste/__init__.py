"""Results to paste into a post, and to parse."""
