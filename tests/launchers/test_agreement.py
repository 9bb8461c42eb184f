"""Hosts that measure with something else are told so before they measure, whoever comes first; boards are whole."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bench.errors import UserError
from bench.host.pins import ROOT
from bench.launchers.agreement import agree
from bench.launchers.board import FolderBoard
from bench.run.share import facts

FACTS = {"build llama stock": "0.3.36-cpu+aa", "weights m.gguf": "ab" * 32, "commit pti-bench": "0123456789ab",
         "machine lab": "AMD EPYC, 2 CPUs", "key 5f": "boot-1", "name node-1": "5f"}  # fmt: skip


def test_hosts_that_agree_say_nothing(tmp_path: Path) -> None:
    board = FolderBoard(tmp_path)
    other = {key: value for key, value in FACTS.items() if not key.startswith(("key", "name"))}
    assert agree(FACTS, board, "host a") == [] == agree(FACTS, board, "host a")
    # Another make under its own name, another model and another build of a further engine are no differences.
    more = {"machine box": "Xeon", "build hf stock": "x", "weights n.gguf": "cd", "key 6a": "boot-2",
            "name node-2": "6a"}  # fmt: skip
    assert agree(other | more, board, "host b") == []


@pytest.mark.parametrize(("key", "value", "words"), [
    ("build llama stock", "0.3.36-cpu+bb", "host b has the build 0.3.36-cpu+bb of the engine (llama stock), and host a "
                                           "has 0.3.36-cpu+aa"),
    ("weights m.gguf", "cd" * 32, "host b has another model file m.gguf (cdcdcdcdcdcd..) than host a (abababababab..)"),
    ("commit pti-bench", "ba9876543210-dirty", "have both at the same commit"),
    ("machine lab", "Xeon, 8 CPUs", "host b is called lab as host a is, and has Xeon, 8 CPUs where that has AMD EPYC"),
    ("key 5f", "boot-2", "host b and host a are two hosts and say that they are one (5f)"),
])  # fmt: skip
def test_a_host_that_differs_is_one_sentence(tmp_path: Path, key: str, value: str, words: str) -> None:
    board = FolderBoard(tmp_path)
    agree(FACTS, board, "host a")
    with pytest.raises(UserError) as told:
        agree(FACTS | {key: value}, board, "host b")
    assert words in str(told.value) and "what was measured is kept" in str(told.value)
    assert agree(FACTS, board, "host c") == [], "whoever was refused has changed nothing"


def test_two_hosts_of_one_name_are_told_and_go_on(tmp_path: Path) -> None:
    board = FolderBoard(tmp_path)
    agree(FACTS, board, "host node-1")
    rest = {key: value for key, value in FACTS.items() if not key.startswith(("key", "name"))}
    (warning,) = agree(rest | {"key 6a": "boot-2", "name node-1": "6a"}, board, "host node-1")
    assert warning.startswith("two hosts are called node-1 (keys 5f and 6a)")


FIRST = """import sys
from pathlib import Path
from bench.launchers.board import FolderBoard
board = FolderBoard(Path(sys.argv[1]))
print("ready", flush=True)
sys.stdin.readline()
for n in range(200):
    print(*board.first(f"key {n}", sys.argv[2], sys.argv[2]))
"""


def test_of_many_at_once_one_was_first_for_all(tmp_path: Path) -> None:
    children = [subprocess.Popen([sys.executable, "-c", FIRST, str(tmp_path), str(n)], stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE, text=True, cwd=ROOT) for n in range(4)]  # fmt: skip
    for child in children:
        assert child.stdout is not None and child.stdout.readline()
    for child in children:
        assert child.stdin is not None
        child.stdin.write("\n")
        child.stdin.flush()
    said = [child.communicate(timeout=60)[0] for child in children]
    assert len(set(said)) == 1 and len(said[0].splitlines()) == 200
    assert not list(tmp_path.glob("tmp*"))


def test_a_board_tells_how_far_shards_are_and_whether_to_stop(tmp_path: Path) -> None:
    board, other = FolderBoard(tmp_path), FolderBoard(tmp_path)
    board.tell(3, 1, "a cell")
    board.tell(3, 2, "another cell")
    (tmp_path / "shard-4.json").write_text("[1")
    assert other.told() == {3: (2, "another cell")} and not other.is_stopped()
    board.stop()
    assert other.is_stopped() and FolderBoard(tmp_path / "gone").is_stopped()
    board.mark("word")
    assert other.is_marked("word") and not other.is_marked("words") and not FolderBoard(ROOT).is_marked("word")


def test_files_of_one_name_and_several_contents_are_no_fact() -> None:
    class Planned:
        def __init__(self, path: str, weights: str) -> None:
            self.config = {"model": {"path": path}, "weights": weights}

    environment = {"machine": {"name": "lab", "cpu": "EPYC", "cores": 2, "gpus": [{"name": "MI50"}]},
                   "engine": {"build": "b"}, "harness_commit": "c", "host": "5f"}  # fmt: skip
    cells = [Planned("x.gguf", "1"), Planned("y.gguf", "1"), Planned("y.gguf", "2"), Planned("x.gguf", "1")]
    found = facts(cells, {"llama stock": environment})  # type: ignore[arg-type]
    assert found["weights x.gguf"] == "1" and "weights y.gguf" not in found
    assert found["machine lab"] == "EPYC, 2 CPUs, MI50" and found["build llama stock"] == "b"
