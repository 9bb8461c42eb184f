"""What a sweep measures: configuration, cells and their ids, model files."""
