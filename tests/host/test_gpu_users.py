"""Who else is on a card, from what the kernel tells; there is no card in the tests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bench.host import gpu_users
from bench.host.devices import Gpu


@pytest.fixture
def card(monkeypatch):
    monkeypatch.setattr(gpu_users.devices, "visible", lambda: [Gpu("amd", 0, "0x1", "MI50")])


def process(kfd: Path, pid: int, held: str) -> None:
    (kfd / str(pid)).mkdir(parents=True)
    (kfd / str(pid) / "vram_4711").write_text(held)


def test_processes_that_hold_memory_of_an_amd_card_are_named(card, tmp_path):
    kfd, proc = tmp_path / "kfd", tmp_path / "proc"
    process(kfd, 70001, "24000000000\n")
    process(kfd, 70002, "0\n")
    process(kfd, 70003, "12\n")
    process(kfd, os.getpid(), "5\n")
    process(kfd, os.getppid(), "5\n")
    (proc / "70001").mkdir(parents=True)
    (proc / "70001" / "comm").write_text("llama-server\n")
    assert gpu_users.others(proc, kfd) == ["llama-server (70001)", "a process (70003)"]


def test_nobody_is_known_where_nothing_tells(card, tmp_path, monkeypatch):
    assert gpu_users.others(kfd=tmp_path / "none") == []
    monkeypatch.setattr(gpu_users.devices, "visible", lambda: [])
    process(tmp_path, 70001, "24")
    assert gpu_users.others(kfd=tmp_path) == [], "another card than those that are measured on"
