"""Licences, citation and changelog say what is there: every folder, text, version and schema that they name."""

from __future__ import annotations

import re
import tomllib
from fnmatch import fnmatch
from pathlib import Path

import pytest
import yaml
from packaging.licenses import canonicalize_license_expression

from bench.cli import main
from bench.records.rows import SCHEMA

ROOT = Path(__file__).resolve().parent.parent
DOCUMENT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = DOCUMENT["project"]
ROW = re.compile(r"^\| (?P<what>[^|]+) \| (?P<licence>[^|]*\]\((?:LICENSE\)|LICENSES/)[^|]*) \|$", re.MULTILINE)
LINK = re.compile(r"\[(?P<name>[A-Z][\w.-]+)\]\((?P<file>[^)]+)\)")
FIRST_LINES = {
    "MIT": "MIT License",
    "CC-BY-4.0": "Attribution 4.0 International",
    "CC0-1.0": "Creative Commons Legal Code",
    "PSF-2.0": "PYTHON SOFTWARE FOUNDATION LICENSE VERSION 2",
    "Apache-2.0": "Apache License",
}


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def licences() -> dict[str, dict[str, str]]:
    """README's table: path, or '' for all the rest, to the licences there and the files of their texts."""
    table: dict[str, dict[str, str]] = {}
    for row in ROW.finditer(read("README.md")):
        links = {link["name"]: link["file"] for link in LINK.finditer(row["licence"])}
        for path in re.findall(r"`([^`]+)`", row["what"]) or [""]:
            assert path not in table, f"{path} stands twice in README's table of licences"
            table[path] = links
    return table


TABLE = licences()


def of(path: str) -> dict[str, str]:
    """The licences of a path: those of the longest entry that it lies in."""
    return TABLE[max((entry for entry in TABLE if path.startswith(entry)), key=len)]


def test_the_expression_is_that_of_the_wheels_code():
    assert canonicalize_license_expression(PROJECT["license"]) == PROJECT["license"] == "MIT"
    assert not any(name.startswith("License ::") for name in PROJECT.get("classifiers", ())), "PEP 639 forbids both"
    assert PROJECT["license-files"] and all((ROOT / name).is_file() for name in PROJECT["license-files"])
    patterns = DOCUMENT["tool"]["setuptools"]["packages"]["find"]["include"]
    held = {path.name for path in ROOT.iterdir() if any(fnmatch(path.name, pattern) for pattern in patterns)}
    assert held == {"bench", "pti_loop", "kernels"}
    assert not [path for path in TABLE if path.split("/")[0] in held], "a wheel's code is MIT alone"


def test_licensed_folders_are_there_with_their_texts():
    assert {"", "results/reference/", "reports/reference/"} <= set(TABLE)
    for path, links in TABLE.items():
        assert (ROOT / path).exists(), f"README's table of licences names {path}"
        assert links, path
        for name, file in links.items():
            assert file == ("LICENSE" if name == "MIT" else f"LICENSES/{name}.txt"), f"{path}: {name} links to {file}"
            assert canonicalize_license_expression(name) == name


def test_every_text_is_whole_and_somewhere_meant():
    texts = {path.stem: path for path in (ROOT / "LICENSES").iterdir()} | {"MIT": ROOT / "LICENSE"}
    assert set(texts) == set(FIRST_LINES)
    said = read("NOTICE") + read("README.md")
    for name, path in texts.items():
        lines = [line.strip() for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
        assert lines[0] == FIRST_LINES[name] and len(lines) > 10, path
        assert name in said, f"{path} belongs to nothing"


@pytest.mark.parametrize("folder", ["results/reference", "reports/reference", "models/pti-tiny",
                                    "models/smollm2-135m-pydoc"])  # fmt: skip
def test_a_folder_of_data_says_its_licence_itself(folder):
    links = {link["name"]: link["file"] for link in LINK.finditer(read(f"{folder}/README.md"))}
    for name, file in of(f"{folder}/").items():
        assert (ROOT / folder / links[name]).resolve() == ROOT / file, f"{folder}/README.md on {name}"


def test_configs_state_the_licences_of_the_table():
    prompts = sorted((ROOT / "configs/prompts").glob("*.yaml"))
    assert prompts
    for path in prompts:
        document = yaml.safe_load(path.read_text())
        if not document["items"]:  # the user's own: whoever wrote them knows
            assert document["licence"] == "unknown", path
            continue
        stated = document["licence"].split(" AND ")
        assert set(stated) == set(of(path.relative_to(ROOT).as_posix())), path
    shipped = yaml.safe_load(read("configs/model/pti-tiny.yaml"))
    assert shipped["licence"] in of(shipped["file"])


def test_notice_has_the_notices_that_must_go_along():
    notice = read("NOTICE")
    assert "Copyright (c) 2023-2026 The ggml authors" in notice
    permission = read("LICENSE").partition("Permission is")[2]
    assert len(permission) > 800 and permission in notice
    assert "Python Software Foundation; All Rights Reserved" in notice


def test_the_citation_is_valid_and_of_this_version():
    cited = yaml.safe_load(read("CITATION.cff"))
    assert {"cff-version", "message", "title", "authors"} <= set(cited) and cited["cff-version"] == "1.2.0"
    assert cited["title"] == PROJECT["name"] and cited["version"] == PROJECT["version"]
    assert cited["license"] == PROJECT["license"] and cited["type"] == "software"
    (author,) = cited["authors"]
    assert set(author) == {"name"}, "an entity, which has no given and family names"
    assert author["name"] in PROJECT["authors"][0]["name"] and author["name"] in read("LICENSE")


def test_the_changelog_has_the_version_and_the_schema_that_is_written():
    text = read("CHANGELOG.md")
    newest = re.search(r"^## (\d\S*?),? .*?(?=^## )", text, re.MULTILINE | re.DOTALL)
    assert newest and newest[1] == PROJECT["version"]
    assert f"records of schema {SCHEMA}." in newest[0]
    numbers = [int(number) for number in re.findall(r"^### Schema (\d+)$", text, re.MULTILINE)]
    assert numbers == list(range(1, len(numbers) + 1)) and SCHEMA in numbers


def test_the_examples_of_a_foreign_record_pass_the_audit(tmp_path, capsys):
    examples = re.findall(r"^```csv\n(.*?)^```$", read("CONTRIBUTING.md"), re.MULTILINE | re.DOTALL)
    assert len(examples) == 2
    for number, example in enumerate(examples):
        (tmp_path / f"{number}.csv").write_text(example)
        assert main(["audit", str(tmp_path / f"{number}.csv")]) == 0, capsys.readouterr().out
