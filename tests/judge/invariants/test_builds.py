"""A build's name against the files that are listed beside it."""

from __future__ import annotations

from bench.build_name import digest
from bench.judge.invariants.inputs import not_its_files

FILES = {"libllama.so.0.5.0": "a" * 64, "libggml-cpu.so.0.25.3": "b" * 64}


def test_a_name_is_made_of_its_files() -> None:
    name = f"0.3.36-0c1e57098-cpu+{digest(FILES)}"
    assert not_its_files({"build": name, "libraries": FILES}) is None
    told = not_its_files({"build": name, "libraries": FILES | {"libllama.so.0.5.0": "c" * 64}})
    assert told and name in told and "its libraries make" in told


def test_records_without_a_list_or_without_a_digest_are_not_asked() -> None:
    assert not_its_files({"build": "0.3.36-0c1e57098-cpu", "libraries": FILES}) is None
    assert not_its_files({"build": "0.3.36-0c1e57098-cpu+12345678"}) is None
