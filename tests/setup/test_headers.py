"""The headers that are kept for llama.cpp's own drafters: headers alone, whole or absent; no network is no error."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.errors import UserError
from bench.host import pins
from bench.setup import headers
from pti_loop.llama import header_folder
from pti_loop.llama.header_folder import FOLDERS


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """An unpacked llama.cpp."""
    for name in FOLDERS:
        folder = tmp_path / "llama.cpp" / name
        folder.mkdir(parents=True)
        (folder / "speculative.h").write_text(name)
        (folder / "speculative.cpp").write_text("")
    return tmp_path / "llama.cpp"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_headers_alone_are_kept_and_an_older_folder_goes(source, cache):
    folder = header_folder.headers("abc")
    (folder / "old").mkdir(parents=True)
    headers.copy(source, folder)
    assert sorted(str(path.relative_to(folder)) for path in folder.rglob("*.*")) == sorted(
        f"{name}/speculative.h" for name in FOLDERS
    )
    assert header_folder.kept("abc") and not header_folder.kept("abd")
    assert [path.name for path in folder.parent.iterdir()] == ["abc"]


def test_a_copy_that_fails_leaves_nothing(source, cache, monkeypatch):
    def full(*_: object) -> None:
        raise OSError("no space left on the device")

    monkeypatch.setattr(headers.shutil, "copy", full)
    with pytest.raises(OSError, match="no space"):
        headers.copy(source, header_folder.headers("abc"))
    assert list(header_folder.headers("abc").parent.iterdir()) == []


def test_they_are_fetched_once_and_without_a_network_set_up_goes_on(source, cache, monkeypatch, capsys, tmp_path):
    loaded, calls = pins.load(), []

    def refuses(*_: object) -> None:
        calls.append("fetch")
        raise UserError("fetching failed with code 1; the package index cannot be reached\n    and its log")

    monkeypatch.setattr(headers, "fetch", refuses)
    headers.keep(loaded, tmp_path)
    told = capsys.readouterr().out
    assert told == ("llama.cpp's own drafters (method=native) cannot be used: fetching failed with code 1; the package "
                    "index cannot be reached\n")  # fmt: skip
    monkeypatch.setattr(headers, "fetch", lambda *_: calls.append("fetch"))
    monkeypatch.setattr(headers, "unpack", lambda folder: source)
    headers.keep(loaded, tmp_path)
    headers.keep(loaded, tmp_path)
    assert calls == ["fetch", "fetch"]
    assert header_folder.kept(loaded.engine_commit)
