"""Making a claim sheet, and telling what would judge it. The format and the judging are `bench.judge.claims`."""
