"""What a build is called in every row: one that packs, told not to, is another one than itself."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from bench.judge.findings import engine_build, origin


def cell(settings, build="0.3.36-abc-cuda+123"):
    return SimpleNamespace(machine="h200", cell="c", env={"engine": {"build": build}}, config={"engine": settings})


@pytest.mark.parametrize(
    ("settings", "told"),
    [({}, "0.3.36-abc-cuda+123"), ({"repack": True}, "0.3.36-abc-cuda+123"),
     ({"repack": False}, "0.3.36-abc-cuda+123 (repack=false)"), (None, "0.3.36-abc-cuda+123")],
)  # fmt: skip
def test_rows_tell_a_build_that_packs_nothing_as_it_was_asked(settings, told):
    assert origin(cell(settings))["build"] == told
    assert engine_build(cell(settings)) == "0.3.36-abc-cuda+123", "an id is made of the files"


def test_a_cell_without_a_build_has_none():
    assert origin(cell({"repack": False}, build=""))["build"] == ""
