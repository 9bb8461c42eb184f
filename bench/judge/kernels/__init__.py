"""Records of kernel runs, judged."""
