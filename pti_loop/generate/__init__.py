"""`python -m pti_loop generate`: options, text as it comes, rates, and a record that `bench audit` reads."""
