"""Making the environment and looking at it: builds of the engine, packages, the doctor."""
