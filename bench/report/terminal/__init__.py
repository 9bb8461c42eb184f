"""What a verb prints."""
