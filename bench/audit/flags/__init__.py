"""What can be wrong with a record, one module a subject."""
