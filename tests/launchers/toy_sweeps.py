"""Sweeps of the toy engine for the tests of launchers: the words, the environment, and who measured what."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

from bench.host.device_lock import VARIABLE
from bench.host.pins import ROOT
from tests.pti_loop.gguf.test_model_memory import write_hybrid

TOY = Path(__file__).parent / "toy"
QUICK = ["model=gguf", "model.engine=toy", "prompts=short", "measure=quick", "n_predict=4", "measure.classes=[prose]",
         "measure.again_blocks=1", "measure.control_tokens=2", "engine.n_ctx=256", "streams=2", "profile=false",
         "engine.threads=1"]  # fmt: skip


class Toy:
    """A folder with a model, results, locks and a log of the cells that were written."""

    def __init__(self, folder: Path, model: str = "toy.gguf") -> None:
        self.folder, self.log = folder, folder / "written"
        self.results, self.model = folder / "results", folder / model
        if not self.model.exists():
            write_hybrid(self.model, layers=4, interval=2)
        (folder / "locks").mkdir(exist_ok=True)
        self.environment = {
            "PYTHONPATH": os.pathsep.join(map(str, (TOY, ROOT))), "TOY_LOG": str(self.log),
            VARIABLE: str(folder / "locks"), "PYTHONUNBUFFERED": "1",
        }  # fmt: skip

    def words(self, *more: str) -> list[str]:
        """Overrides of a sweep into the folder."""
        return [*QUICK, f"model.path={self.model}", f"results={self.results}", *more]

    def start(self, *more: str, **variables: str) -> subprocess.Popen[str]:
        """A sweep as somebody types it."""
        command = [sys.executable, "-m", "bench", "sweep", *self.words(*more)]
        return subprocess.Popen(command, cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                env=os.environ | self.environment | variables, start_new_session=True)  # fmt: skip

    def sweep(self, *more: str, timeout: float = 300, **variables: str) -> subprocess.CompletedProcess[str]:
        """The same, until it has ended."""
        child = self.start(*more, **variables)
        out, err = child.communicate(timeout=timeout)
        return subprocess.CompletedProcess(child.args, child.returncode, out, err)

    def written(self) -> Counter[str]:
        """How often each cell was written."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return Counter(line.split()[0] for line in lines)

    def cells(self) -> list[Path]:
        """The folders of the cells that are there."""
        return sorted(path.parent for path in self.results.glob("*/*/status.json"))
