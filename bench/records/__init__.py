"""What is left on disk: typed rows, the folder of a cell, records of kernel runs."""
