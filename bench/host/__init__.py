"""Facts about the machine and the environment. Knows nothing about models, methods or statistics."""
