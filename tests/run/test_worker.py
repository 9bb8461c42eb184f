"""What a cell's process writes beside its tables."""

from __future__ import annotations

import pytest

from bench.run.worker import _engine_log
from pti_loop.llama import model as llama


@pytest.mark.parametrize(
    ("line", "kept"),
    [("loaded meta data from /home/a b/models/x.gguf (version 3)", "loaded meta data from x.gguf (version 3)"),
     ("adapter '/srv/twins/934951.q2_k.gguf' and /m/b.gguf", "adapter '934951.q2_k.gguf' and b.gguf"),
     ("/a/x.gguf cannot draft for /b c/y.gguf: it differs", "x.gguf cannot draft for y.gguf: it differs"),
     ("12 / 24 layers of /m/b.gguf", "12 / 24 layers of b.gguf"),
     ("12 / 24 layers at 3.5 MiB/s", "12 / 24 layers at 3.5 MiB/s")],
)  # fmt: skip
def test_records_hold_no_folder_of_any_model(monkeypatch, line, kept):
    monkeypatch.setattr(llama.log(), "since", lambda: line)
    assert _engine_log() == kept
