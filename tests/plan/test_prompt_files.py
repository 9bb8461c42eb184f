"""Prompts by path: the shapes that benchmarks have, ids by content, and damage as a sentence with its place."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bench.errors import UserError
from bench.plan.cells import cells
from bench.plan.compose import compose_points
from bench.plan.model_files import model_path

SPEC = (
    '{"question_id": 81, "category": "writing", "turns": ["Compose a post about Hawaii.", "Rewrite it."]}\n'
    '{"question_id": 82, "category": "math", "turns": ["What is 2 + 2?"], "reference": ["4"]}\n\n'
    '{"question_id": 161, "category": "translation", "turns": ["Translate German to English: Der Hund\\u2028bellt."]}\n'
)
SPEED = (
    '{"question_id": "a1-7f", "category": "coding", "sub_category": "python", "turns": ["Sort a list."], "source": "x",'
    ' "src_id": "9", "difficulty": "", "multiturn": false}\n'
)
IK = '{"id":"task+1","name":"math","category":"reasoning","prompt":"Solve 12.","max_tokens":64}\n{"prompt":"Go on."}\n'
CHAT = (
    '{"messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": [{"type": "text", "text": '
    '"Why?"}]}, {"role": "assistant", "content": "Because."}, {"role": "user", "content": "And?"}]}\n'
    '{"conversations": [{"from": "human", "value": "Hi"}], "task": "chat", "uid": 7}\n'
    '{"task_id": "HumanEval/0", "prompt": "def f():"}\n{"instruction": "Add.", "input": "1, 2"}\n'
)


def items(*overrides: str) -> list[dict]:
    (config,) = compose_points(list(overrides))
    return config.prompts.items


def planned(path: Path, *overrides: str) -> list:
    configs = compose_points([f"prompts={path}", "profile=false", "method=lookup", *overrides])
    return cells(configs, Path("r"), "m", "build", {model_path(config): "ab" * 32 for config in configs})


def write(folder: Path, name: str, text: str) -> Path:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


def test_spec_bench_has_its_ids_classes_and_first_turns(tmp_path):
    assert items(f"prompts={write(tmp_path, 'question.jsonl', SPEC)}") == [
        {"id": "81", "class": "writing", "text": "Compose a post about Hawaii."},
        {"id": "82", "class": "math", "text": "What is 2 + 2?"},
        {"id": "161", "class": "translation", "text": "Translate German to English: Der Hund\u2028bellt."},
    ]


def test_speed_bench_ik_and_chats(tmp_path):
    files = [write(tmp_path, f"{place}.jsonl", text) for place, text in enumerate((SPEED, IK, CHAT))]
    found = [items(f"prompts={file}") for file in files]
    assert found[0] == [{"id": "a1-7f", "class": "coding", "text": "Sort a list."}]
    assert found[1] == [{"id": "task-1", "class": "reasoning", "text": "Solve 12."},
                        {"id": "2", "class": "text", "text": "Go on."}]  # fmt: skip
    assert found[2] == [
        {"id": "1", "class": "text", "text": "Why?", "system": "Be brief."}, {"id": "7", "class": "chat", "text": "Hi"},
        {"id": "HumanEval/0", "class": "text", "text": "def f():"},
        {"id": "4", "class": "text", "text": "Add.\n\n1, 2"},
    ]  # fmt: skip


def test_a_set_of_ours_by_path_has_the_texts_of_the_set(tmp_path):
    shutil.copy("configs/prompts/short.yaml", tmp_path / "mine.yaml")
    assert items(f"prompts={tmp_path / 'mine.yaml'}") == items("prompts=short")
    as_json = write(tmp_path, "mine.json", json.dumps(items("prompts=short")))
    assert items(f"prompts={as_json}") == items("prompts=short")


def test_a_folder_has_classes_by_its_folders_and_passes_over_what_is_about_it(tmp_path):
    for name, text in {"b.txt": "Two\r\nlines\r\n", "code/a.py": "def f(x):\n", "README.md": "about", ".hidden": "x",
                       "set/q.jsonl": SPEC}.items():  # fmt: skip
        write(tmp_path, name, text)
    found = items(f"prompts={tmp_path}")
    assert [(one["id"], one["class"]) for one in found] == [
        ("b", "text"), ("code/a", "code"), ("set/q/81", "writing"), ("set/q/82", "math"), ("set/q/161", "translation"),
    ]  # fmt: skip
    assert [one["text"] for one in found[:2]] == ["Two\nlines", "def f(x):"]


def test_names_with_commas_spaces_and_quotes_and_sweeps_beside_sets(tmp_path, monkeypatch):
    odd = write(tmp_path, "it's a, (b)=c #1.txt", "Text.")
    assert items(f"prompts={odd}")[0]["text"] == "Text."
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "short", "Mine.")
    assert len(items("prompts=short")) > 1, "a set's name is the set"
    assert items("prompts=./short")[0]["text"] == "Mine."
    write(tmp_path, "q.jsonl", SPEC)
    assert [one.prompts.name for one in compose_points(["prompts=short,q.jsonl", "temperature=0,0.7"])] == [
        "short", "short", "q", "q"]  # fmt: skip
    assert items("prompts.path=q.jsonl")[0]["id"] == "81"


def test_the_id_is_of_the_texts_that_are_decoded_and_of_no_name(tmp_path):
    (first,) = planned(write(tmp_path, "a.jsonl", SPEC))
    (moved,) = planned(write(tmp_path, "elsewhere/b.jsonl", SPEC))
    (longer,) = planned(write(tmp_path, "c.jsonl", SPEC + '{"question_id": 9, "category": "math", "turns": ["3?"]}\n'))
    (other,) = planned(write(tmp_path, "d.jsonl", SPEC.replace("2 + 2", "2 + 3")))
    assert first.id == moved.id == longer.id != other.id
    assert first.config["prompts"]["path"] == "a.jsonl" and str(tmp_path) not in json.dumps(first.config)
    assert first.config["prompts"]["sha256"] != longer.config["prompts"]["sha256"]
    (named,) = planned(tmp_path / "a.jsonl", "prompts.name=mine")
    assert named.id != first.id
    assert planned(tmp_path / "c.jsonl", "measure.per_class=2")[0].id != longer.id


def test_the_digest_that_is_asked_for_is_compared(tmp_path):
    path = write(tmp_path, "a.jsonl", SPEC)
    (config,) = compose_points([f"prompts={path}"])
    assert items(f"prompts={path}", f"prompts.sha256={config.prompts.sha256}")
    with pytest.raises(UserError, match="has SHA-256"):
        items(f"prompts={path}", f"prompts.sha256={'0' * 64}")


def test_a_file_that_changed_is_read_again(tmp_path):
    path = write(tmp_path, "a.txt", "One.")
    assert items(f"prompts={path}")[0]["text"] == "One."
    write(tmp_path, "a.txt", "Another.")
    assert items(f"prompts={path}")[0]["text"] == "Another."


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("q.jsonl", SPEC + '{"question_id": 5, "turns": ["a"]', r"q\.jsonl line 5 is no JSON .*column 34\); mend it"),
        ("q.jsonl", SPEC + "[1]\n", r"line 5 is a list, and an object is expected"),
        ("q.jsonl", SPEC + '{"question_id": 82, "turns": ["again"]}', r"line 5 has the id '82' of .*line 2; give each"),
        ("q.jsonl", '{"question_id": 5, "category": "math"}', r"line 1 has no text: none of turns, .*add one"),
        ("q.jsonl", '{"turns": []}', r"line 1: turns is empty"),
        ("q.jsonl", '{"prompt": "  \\n"}', r"line 1: prompt is empty"),
        ("q.jsonl", '{"prompt": 7}', r"line 1: prompt is 7, and a text"),
        ("q.jsonl", '{"prompt": "a", "category": ["x"]}', r"line 1: category is a list, and a word"),
        ("q.jsonl", '{"prompt": "a", "id": "x\\ny"}', r"line 1: id is 'x\\ny'; give it letters"),
        ("q.jsonl", '{"prompt": "\\ud800"}', r"line 1: its text has half of a letter"),
        ("q.jsonl", '{"messages": [{"role": "assistant", "content": "x"}]}', r"messages has no message of a user"),
        ("q.jsonl", '{"messages": [{"role": "user", "content": null}]}', r"a message of messages has no content"),
        ("q.jsonl", "[" * 100_000, r"line 1 is no JSON that can be read"),
        ("q.jsonl", "\n\n", r"q\.jsonl has no prompts; put one a line"),
        ("q.json", SPEC, r"Extra data.*let its name end in \.jsonl"),
        ("q.yaml", "items:\n- id: a\n  text: [", r"q\.yaml line \d is no YAML"),
        ("q.yaml", "name: x\n", r"holds an object, and a list of prompts is expected"),
        ("q.yaml", "items:\n- {id: a, class: b}\n", r"q\.yaml entry 1 has no text"),
        ("q.txt", "", r"q\.txt: text is empty"),
        ("q.txt", "a\n\0b", r"q\.txt line 2 has a NUL"),
        ("q.parquet", "PAR1", r"is Parquet, which is not read here; write it as JSON lines"),
    ],
)
def test_damage_is_one_sentence_with_its_place(name, text, sentence, tmp_path):
    with pytest.raises(UserError, match=sentence):
        items(f"prompts={write(tmp_path, name, text)}")


def test_bytes_that_are_no_text_and_files_that_are_not_there(tmp_path):
    (tmp_path / "q.jsonl").write_bytes(b'{"prompt": "a"}\n{"prompt": "\xff"}\n')
    with pytest.raises(UserError, match=r"q\.jsonl line 2 is no UTF-8 \(byte 0xff\); save"):
        items(f"prompts={tmp_path / 'q.jsonl'}")
    with pytest.raises(UserError, match=r"no such file or folder; did you mean 'q\.jsonl'"):
        items(f"prompts={tmp_path / 'p.jsonl'}")
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match="has no file of prompts"):
        items(f"prompts={tmp_path / 'empty'}")
    with pytest.raises(UserError, match="neither a file nor a folder"):
        items("prompts=/dev/null")
    with pytest.raises(UserError, match=r"'file' has no prompts; .*give a file or a folder"):
        planned(Path("file"))
    with pytest.raises(UserError, match=r"there is no such prompts in .*given by their path, as in prompts=\./FILE"):
        items("prompts=nowhere")


def test_a_byte_order_mark_is_no_letter(tmp_path):
    (tmp_path / "q.jsonl").write_bytes(b"\xef\xbb\xbf" + IK.replace("\n", "\r\n").encode())
    assert [one["id"] for one in items(f"prompts={tmp_path / 'q.jsonl'}")] == ["task-1", "2"]


def test_a_plan_tells_how_many_are_decoded_and_a_damaged_line_ends_it(tmp_path):
    path = write(tmp_path, "q.jsonl", SPEC)
    words = [sys.executable, "-m", "bench", "sweep", "--plan", f"prompts={path}", "method=lookup", "profile=false"]
    found = subprocess.run(words, capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    assert "prompts of q.jsonl: 3 of 3 are decoded, 3 classes (writing, math, translation)" in found.stdout
    write(tmp_path, "q.jsonl", SPEC + "{\n")
    found = subprocess.run(words, capture_output=True, text=True)
    assert found.returncode == 2 and "q.jsonl line 5 is no JSON" in found.stderr and "Traceback" not in found.stderr
