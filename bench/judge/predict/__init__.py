"""What measured factors predict for other settings, and what that advises."""
