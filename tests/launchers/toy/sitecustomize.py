"""Makes the toy engine one of the harness's in every process that has this folder on its PYTHONPATH."""

from bench.plan.engines import ENGINES, Listed

ENGINES["toy"] = Listed("toy", "toy_engine", "toy")
