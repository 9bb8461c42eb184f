"""What is packed says nothing about who measured it, and is as whole as what was stored."""

from __future__ import annotations

import gzip
import json
import shutil
import tarfile
from pathlib import Path

import pytest
import yaml

from bench import cli
from bench.contributions.private import Private, private_here
from bench.host import devices
from bench.host.pins import ROOT
from bench.records.archives import ABOUT, unpack
from bench.records.bounded import yaml_value
from bench.records.cells import StoredCell, load_cell, read_cell, write_cell
from bench.records.identity import cell_id
from bench.records.rows import Emit
from tests.faults.stored import folder_of

REFERENCE = ROOT / "results" / "reference" / "amd-epyc-2c"
CELL = "089d8099b842"
USER, HOST, HOME = "wilhelmina", "wintermute", "/nfs/people/wilhelmina"
OTHER = "tiberius"
PLANTED = (USER, HOST, HOME, OTHER, "Wilhelmina Murray", "w.murray@example.org", "192.168.17.4", "02:42:ac:11:00:02",
           "GPU-3f1c9a52-7b1e-4c0d-9e57-0a1b2c3d4e5f", "secret-project", "/srv/")  # fmt: skip
TEXT = (
    f"load: {HOME}/secret-project/model.gguf\n{USER}@{HOST} started it, mail w.murray@example.org (Wilhelmina Murray)\n"
    f"peer /home/{OTHER}/bin/llama-bench on 192.168.17.4 02:42:ac:11:00:02 by {OTHER.title()}\n"
    f"'/srv/secret-project/y.gguf' C:\\Users\\{OTHER}\\y GPU-3f1c9a52-7b1e-4c0d-9e57-0a1b2c3d4e5f\n{HOST}.example.org\n"
    "0.01.252.195 I slot: 0.02.100.225 I eval time = 10 ms / 5 tokens, 12.5 tok/s, 1/2, 127.0.0.1:8080, 0.3.36\n"
)


@pytest.fixture
def owner(monkeypatch: pytest.MonkeyPatch) -> None:
    """This machine is somebody's."""
    import platform
    import pwd

    entry = pwd.struct_passwd((USER, "x", 1000, 1000, "Wilhelmina Murray,,,", HOME, "/bin/sh"))
    monkeypatch.setattr(pwd, "getpwuid", lambda _: entry)
    monkeypatch.setattr(platform, "node", lambda: f"{HOST}.example.org")
    for name in ("USER", "LOGNAME"):
        monkeypatch.setenv(name, USER)
    monkeypatch.setenv("HOME", HOME)


def planted(root: Path, machine: str = f"{HOST}-mi50", **config: object) -> Path:
    """A cell that tells of its owner wherever a record has room for a text."""
    stored = load_cell(REFERENCE / CELL)
    config = {**stored.config, "machine": machine, **config}
    env = json.loads(json.dumps(stored.env))
    env["machine"] |= {"name": machine, "os": f"Linux 6.1 {USER}-kernel x86_64"}
    env["engine"] |= {"compiler": f"GCC of {HOME}/gcc", "libraries": {f"{HOME}/libllama.so": "0" * 64}}
    facts = {**stored.facts, "peers": [{"tool": "llama-bench", "reason": TEXT}], "clocks": f"by {USER}"}
    folder = root / machine / cell_id({"schema": 3, **config}, env["engine"]["build"])
    ledger = [Emit(0, 0, 0, 5, -1, "prefill", 10)]
    write_cell(folder, config=config, env=env, facts=facts, tables={"ledger": ledger}, log=TEXT * 3,
               status={"state": "failed", "reason": f"OSError: {HOME}/x is full", "seconds": 1.0})  # fmt: skip
    return folder


def content(path: Path) -> dict[str, bytes]:
    """Every name and every byte of an archive, unpacked to the last."""
    found: dict[str, bytes] = {}
    with tarfile.open(path) as tar:
        for member in tar:
            raw = tar.extractfile(member).read()  # type: ignore[union-attr]
            found[member.name] = raw + (gzip.decompress(raw) if member.name.endswith(".gz") else b"")
            found[f"header of {member.name}"] = f"{member.uname} {member.gname} {member.linkname}".encode()
    return found


def test_nothing_that_was_planted_travels(tmp_path: Path, owner: None) -> None:
    folder = planted(tmp_path / "results")
    assert isinstance(read_cell(folder), StoredCell)
    out = tmp_path / "c.tar.gz"
    assert cli.main(["pack", f"results={tmp_path / 'results'}", "-o", str(out)]) == 0
    whole = b"\n".join(name.encode() + b"\n" + one for name, one in content(out).items()).lower()
    for word in PLANTED:
        assert word.lower().encode() not in whole, word
    assert word_count(whole, b"12.5 tok/s, 1/2, 127.0.0.1:8080, 0.3.36") == 4, "what is no name stays"
    assert word_count(whole, b"0.01.252.195 i slot: 0.02.100.225 i eval time") == 4, "a time is no address"
    assert b"model.gguf" in whole and b"oserror: ~/x is full" in whole


def word_count(text: bytes, word: bytes) -> int:
    return text.count(word)


def test_what_travels_is_a_whole_cell_of_the_same_measurement(tmp_path: Path, owner: None) -> None:
    folder = planted(tmp_path / "results")
    cli.main(["pack", str(folder), "-o", str(tmp_path / "c.tar.xz")])
    found = unpack(tmp_path / "c.tar.xz", tmp_path / "out")
    theirs, ours = load_cell(folder), load_cell(found.folders[0])
    assert ours.cell == theirs.cell and not ours.note
    assert ours.machine == ours.env["machine"]["name"] == ours.config["machine"] == "amd-epyc-2c", "that of its make"
    assert {**ours.config, "machine": theirs.machine} == theirs.config
    assert ours.env["host"] == theirs.env["host"], "the key of the host is anonymous as it is"
    assert ours.ledger["token"].tolist() == theirs.ledger["token"].tolist()
    assert ours.status["manifest"]["scrubbed"] == ["cell.yaml", "engine.log.gz", "env.json", "facts.json"]


def test_a_cell_with_nothing_to_hide_travels_byte_for_byte(tmp_path: Path, owner: None) -> None:
    folder = tmp_path / "results/amd-epyc-2c" / CELL
    shutil.copytree(REFERENCE / CELL, folder)
    assert cli.main(["pack", CELL, f"results={tmp_path / 'results'}", "-o", str(tmp_path / "c.tar")]) == 0
    found = unpack(tmp_path / "c.tar", tmp_path / "out")
    assert [one.name for one in found.folders] == [CELL]
    for file in folder.iterdir():
        assert (found.folders[0] / file.name).read_bytes() == file.read_bytes()


@pytest.mark.parametrize("item", [
    f"Dear {USER.title()}, the rain had stopped", f"see {HOME}/notes", "tiberius@example.org wrote", "/home/tiberius/x",
])  # fmt: skip
def test_a_prompt_that_names_somebody_stays_at_home(tmp_path: Path, owner: None, item: str,
                                                    capsys: pytest.CaptureFixture[str]) -> None:  # fmt: skip
    prompts = {"items": [{"class": "prose", "id": "p", "text": item}], "name": "own"}
    named = planted(tmp_path / "results", prompts=prompts)
    other = planted(tmp_path / "results")
    assert cli.main(["pack", f"results={tmp_path / 'results'}", "-o", str(tmp_path / "c.tar")]) == 1
    said = capsys.readouterr().err
    assert len(said.splitlines()) == 1 and f"{named.name} is left out: cell.yaml names '" in said
    assert [one.name for one in unpack(tmp_path / "c.tar", tmp_path / "out").folders] == [other.name]


def test_a_server_elsewhere_is_named_in_no_archive(tmp_path: Path, owner: None) -> None:
    stored = load_cell(REFERENCE / CELL).config["engine"]
    for server, code in (("http://gpu7.lab.example:8080", 2), ("http://127.0.0.1:8080", 0), ("llama-server", 0)):
        root = tmp_path / str(code) / server[-4:]
        planted(root, engine={**stored, "server": server})
        assert cli.main(["pack", f"results={root}", "-o", str(tmp_path / "c.tar")]) == code, server


def test_words_of_the_shipped_prompts_are_nobodys(tmp_path: Path) -> None:
    texts = [item["text"] for path in sorted((ROOT / "configs/prompts").glob("*.yaml"))
             for item in yaml_value(path.read_text()).get("items") or ()]  # fmt: skip
    word = next(word for text in texts for word in text.split() if len(word) > 5 and word.isalpha())
    from bench.contributions import packing

    items = [{"class": "prose", "id": "p", "text": text} for text in texts]
    assert not packing._named_in({"prompts": {"items": items}}, Private(users=frozenset({word})))
    assert packing._named_in({"prompts": {"items": [{"text": f"my {word}"}]}}, Private(users=frozenset({word}))) == word


def test_a_damaged_cell_stays_at_home_and_the_others_travel(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for cell in (CELL, "0da9772b8122"):
        shutil.copytree(folder_of(cell), tmp_path / "r/amd-epyc-2c" / cell)
    (tmp_path / "r/amd-epyc-2c" / CELL / "facts.json").write_text("{}")
    assert cli.main(["pack", str(tmp_path / "r/amd-epyc-2c"), "-o", str(tmp_path / "c.tar.xz")]) == 1
    assert "facts.json: it was changed after it was written" in capsys.readouterr().err
    assert len(unpack(tmp_path / "c.tar.xz", tmp_path / "out").folders) == 1


def test_the_archive_tells_what_is_in_it(tmp_path: Path, owner: None) -> None:
    folder = planted(tmp_path / "results")
    cli.main(["pack", f"results={tmp_path / 'results'}", "-o", str(tmp_path / "c.tar")])
    about = json.loads(content(tmp_path / "c.tar")[ABOUT])
    assert list(about["cells"]) == [f"amd-epyc-2c/{folder.name}"]
    (environment,) = about["environments"].values()
    assert environment["machine"]["cpu"] == load_cell(folder).env["machine"]["cpu"] and environment["packages"]


@pytest.mark.parametrize(("words", "said"), [
    (["-o", "c.zip"], "c.zip is no name of an archive"), ([], "pack needs the file to write"),
    (["-o"], "-o needs a file"), (["nothing", "-o", "c.tar"], "'nothing' is the folder or id of no cell"),
    (["machine=mi5", "-o", "c.tar"], "has no cell of the machine mi5"), (["--all", "-o", "c.tar"], "nothing that pack"),
    (["results=none", "-o", "c.tar"], "there is no results folder none"),
    (["result=x", "-o", "c.tar"], "did you mean 'results'"),
])  # fmt: skip
def test_bad_words_are_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], said: str,
                                    capsys: pytest.CaptureFixture[str]) -> None:  # fmt: skip
    shutil.copytree(REFERENCE / CELL, tmp_path / "results/amd-epyc-2c" / CELL)
    monkeypatch.chdir(tmp_path)
    assert cli.main(["pack", *words]) == 2
    error = capsys.readouterr().err
    assert said in error and len(error.splitlines()) == 1
    assert not list(tmp_path.glob("*.tar*"))


def test_an_archive_is_audited_cell_by_cell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for cell in (CELL, "16476fce18bc"):
        shutil.copytree(folder_of(cell), tmp_path / "r/amd-epyc-2c" / cell)
    whole, single = tmp_path / "two.tar.xz", tmp_path / "one.tar.gz"
    cli.main(["pack", f"results={tmp_path / 'r'}", "-o", str(whole)])
    cli.main(["pack", CELL, f"results={tmp_path / 'r'}", "-o", str(single)])
    capsys.readouterr()
    cli.main(["audit", str(whole)])
    said = capsys.readouterr().out
    assert "2 cells of amd-epyc-2c on 2 host(s): 2 done" in said and f"amd-epyc-2c/{CELL}, treatment" in said
    cli.main(["audit", str(tmp_path / "r/amd-epyc-2c" / CELL)])
    alone = capsys.readouterr().out.splitlines()
    cli.main(["audit", str(single)])
    of_archive = capsys.readouterr().out.splitlines()
    assert of_archive[0] == alone[0] and len(of_archive) == len(alone) and str(tmp_path / "r") not in said


def test_an_edited_cell_in_an_archive_is_flagged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "r/amd-epyc-2c" / CELL
    shutil.copytree(REFERENCE / CELL, source)
    config = yaml.safe_load((source / "cell.yaml").read_text())
    (source / "cell.yaml").write_text(yaml.safe_dump(config | {"temperature": 0.5}))
    with tarfile.open(tmp_path / "c.tar.xz", "w:xz") as tar:
        tar.add(tmp_path / "r", ".")
    assert cli.main(["audit", str(tmp_path / "c.tar.xz")]) == 1
    assert "DAMAGED  cell.yaml: it was changed after it was written" in capsys.readouterr().out
    assert cli.main(["audit", str(tmp_path / "c.tar.xz"), str(tmp_path / "c.tar.xz")]) == 2
    assert "audit it alone" in capsys.readouterr().err


def test_a_host_is_told_by_no_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "present", lambda *_: [])
    assert devices.host_key(tmp_path) == "", "nothing but its name would tell it, and that is found by trying names"
    cards = [devices.Gpu("nvidia", 0, "GPU-2", "x"), devices.Gpu("nvidia", 1, "GPU-1", "x")]
    monkeypatch.setattr(devices, "present", lambda *_: cards)
    by_cards = devices.host_key(tmp_path)
    cards.reverse()
    assert by_cards == devices.host_key(tmp_path) and len(by_cards) == 12
    (tmp_path / "machine-id").write_text("0123\n")
    assert devices.host_key(tmp_path) not in ("", by_cards)


def test_this_machine_has_names_to_hide(monkeypatch: pytest.MonkeyPatch, owner: None) -> None:
    found = private_here()
    assert USER in found.users and HOST in found.hosts and HOME in found.homes
    assert found.scrubbed(f"{HOME}/x {HOME}s") == "~/x s" or "wilhelminas" in found.scrubbed(f"{HOME}/x {HOME}s")
