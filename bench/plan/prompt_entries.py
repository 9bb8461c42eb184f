"""The prompts of one file: a set in YAML, JSON lines as benchmarks of speculative decoding have them, or plain text.

Known shapes of a line: Spec-Bench and SPEED-Bench (`question_id`, `category`, `turns`), ik_llama.cpp's
`llama-spec-bench` (`id`, `category`, `prompt`), chats (`messages`), and what most others call these. Sources:
https://github.com/hemingkx/Spec-Bench, https://huggingface.co/datasets/nvidia/SPEED-Bench,
https://github.com/ikawrakow/ik_llama.cpp/tree/main/examples/spec-bench. It knows nothing about where files lie.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.errors import UserError

IDS = ("question_id", "id", "task_id", "prompt_id", "uid", "name")
CLASSES = ("category", "class", "task", "subset", "type")
TEXTS = ("turns", "messages", "conversations", "prompt", "text", "question", "instruction", "content", "query")
"""Where a text stands, by how much it tells."""
LINES, SETS, ONE = (".jsonl", ".ndjson"), (".yaml", ".yml"), (".json",)
NOT_READ = {
    ".parquet": "Parquet, which is not read here; write it as JSON lines, as pandas does with "
                "`read_parquet(FILE).to_json('prompts.jsonl', orient='records', lines=True)`",
    ".csv": "a table, which is not read here; write one JSON object a line into a file that ends in .jsonl",
    ".tsv": "a table, which is not read here; write one JSON object a line into a file that ends in .jsonl",
    ".gguf": "a model's weights, and no prompts; give it as model.path=FILE",
}  # fmt: skip
MEND = "mend it, or take it out"
USER, SYSTEM = ("user", "human"), ("system", "developer")


@dataclass(frozen=True, slots=True)
class Entry:
    """A prompt and its place, as a sentence names it."""

    item: dict[str, Any]
    """`id`, `class`, `text`, and `system` where a chat has such a message."""
    where: str


def read(file: Path, name: str, before: str, usual: str) -> Iterator[Entry]:
    """The prompts of a file in its order. A text file is one, called `name`; `before` stands before the others' ids.

    `usual` is the class of what names none. Raises `UserError` with file, line and what to do.
    """
    suffix = file.suffix.lower()
    if suffix in NOT_READ:
        raise UserError(f"{file} is {NOT_READ[suffix]}")
    text = _text(file)
    if suffix in LINES:
        entries = _lines(file, text)
    elif suffix in SETS:
        entries = _set(file, text)
    elif suffix in ONE:
        entries = _array(file, text)
    else:
        entries = iter([(f"{file}", {"id": name, "text": text.removesuffix("\n")})])
        before = ""
    count = 0
    for count, (where, entry) in enumerate(entries, start=1):
        yield Entry(_item(where, entry, before, str(count), usual), where)
    if not count:
        raise UserError(f"{file} has no prompts; put one a line into it, or give another file")


def _text(file: Path) -> str:
    try:
        data = file.read_bytes()
    except OSError as error:
        raise UserError(f"{file} cannot be read ({error.strerror}); give a file of prompts that can") from error
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UserError(f"{file} line {line} is no UTF-8 (byte {data[error.start]:#04x}); save the file as "
                        "UTF-8") from error  # fmt: skip
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise UserError(f"{file} line {line} has a NUL, so it is no text; give prompts as text, YAML or JSON lines")
    return text.replace("\r\n", "\n")


def _lines(file: Path, text: str) -> Iterator[tuple[str, Any]]:
    # Not splitlines: a line separator inside a string of JSON ends no line.
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            where = f"{file} line {number}"
            try:
                yield where, json.loads(line)
            except json.JSONDecodeError as error:
                raise UserError(f"{where} is no JSON ({error.msg}, column {error.colno}); {MEND}") from error
            except (ValueError, RecursionError) as error:
                raise UserError(f"{where} is no JSON that can be read ({error}); {MEND}") from error


def _array(file: Path, text: str) -> Iterator[tuple[str, Any]]:
    try:
        found = json.loads(text)
    except json.JSONDecodeError as error:
        more = "; if it has an object a line, let its name end in .jsonl" if error.msg == "Extra data" else f"; {MEND}"
        raise UserError(f"{file} line {error.lineno} is no JSON ({error.msg}, column {error.colno}){more}") from error
    except (ValueError, RecursionError) as error:
        raise UserError(f"{file} is no JSON that can be read ({error}); {MEND}") from error
    yield from _each(file, found)


def _set(file: Path, text: str) -> Iterator[tuple[str, Any]]:
    import yaml

    try:
        found = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.MarkedYAMLError as error:
        line = f" line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise UserError(f"{file}{line} is no YAML ({error.problem}); {MEND}") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise UserError(f"{file} is no YAML ({str(error).splitlines()[0]}); {MEND}") from error
    yield from _each(file, found)


def _each(file: Path, found: Any) -> Iterator[tuple[str, Any]]:
    """Entries of a list, or of the list that a mapping has."""
    if isinstance(found, Mapping):
        names = ("items", "prompts", "questions", "data")
        found = next((found[name] for name in names if isinstance(found.get(name), list)), found)
    if not isinstance(found, list):
        raise UserError(f"{file} holds {_kind(found)}, and a list of prompts is expected, as under `items:` in "
                        "configs/prompts/short.yaml; write it so")  # fmt: skip
    for number, entry in enumerate(found, start=1):
        yield f"{file} entry {number}", entry


def _item(where: str, entry: Any, before: str, number: str, usual: str) -> dict[str, Any]:
    if not isinstance(entry, Mapping):
        raise UserError(f"{where} is {_kind(entry)}, and an object is expected, as in "
                        f'{{"id": "a", "category": "qa", "prompt": "Why?"}}; {MEND}')  # fmt: skip
    system, text = _said(where, entry)
    # Several prompts of a run are told with a + between them.
    name = (before + _word(where, entry, IDS, number)).replace("+", "-")
    item = {"id": name, "class": _word(where, entry, CLASSES, usual), "text": text}
    if system:
        item["system"] = system
    for key, value in item.items():
        _check_letters(where, key, value)
    return item


def _word(where: str, entry: Mapping[str, Any], names: Sequence[str], usual: str) -> str:
    """An id or a class. Raises `UserError` for what is no word or number."""
    for name in names:
        value = entry.get(name)
        if value is None or value == "":
            continue
        if isinstance(value, bool) or not isinstance(value, (str, int, float)):
            raise UserError(f"{where}: {name} is {_kind(value)}, and a word or a number is expected; {MEND}")
        word = str(value).strip()
        if not word or not word.isprintable():
            raise UserError(f"{where}: {name} is {word[:40]!r}; give it letters that can be shown in one line")
        return word
    return usual


def _said(where: str, entry: Mapping[str, Any]) -> tuple[str, str]:
    """(system message, text): of several turns the first, since what follows rests on an answer."""
    name = next((name for name in TEXTS if entry.get(name) is not None), None)
    if name is None:
        raise UserError(f"{where} has no text: none of {', '.join(TEXTS)}; add one, or take it out")
    value = entry[name]
    if isinstance(value, list) and value and all(isinstance(one, Mapping) for one in value):
        return _of_chat(where, name, value)
    if isinstance(value, list):
        value = value[0] if value else ""
    if not isinstance(value, str):
        raise UserError(f"{where}: {name} is {_kind(value)}, and a text or a list of texts is expected; {MEND}")
    if name == "instruction" and isinstance(entry.get("input"), str) and entry["input"].strip():
        value = f"{value}\n\n{entry['input']}"
    system = entry.get("system")
    return (system if isinstance(system, str) else ""), _not_empty(where, name, value)


def _of_chat(where: str, name: str, messages: Sequence[Mapping[str, Any]]) -> tuple[str, str]:
    system: list[str] = []
    for message in messages:
        role = str(message.get("role", message.get("from", ""))).lower()
        content = message.get("content", message.get("value"))
        if isinstance(content, list):  # parts, of which only those of text can be asked here
            parts = [one.get("text") if isinstance(one, Mapping) else None for one in content]
            content = "\n".join(map(str, parts)) if parts and all(isinstance(one, str) for one in parts) else None
        if not isinstance(content, str):
            raise UserError(f"{where}: a message of {name} has no content that is text; {MEND}")
        if role in USER:
            return "\n\n".join(system), _not_empty(where, name, content)
        if role in SYSTEM:
            system.append(content)
    raise UserError(f"{where}: {name} has no message of a user; {MEND}")


def _not_empty(where: str, name: str, text: str) -> str:
    if not text.strip():
        raise UserError(f"{where}: {name} is empty; write a prompt there, or take it out")
    return text


def _check_letters(where: str, key: str, value: str) -> None:
    try:
        value.encode()
    except UnicodeEncodeError as error:
        half = f"\\u{ord(value[error.start]):04x}"
        raise UserError(f"{where}: its {key} has half of a letter ({half}); {MEND}") from error


def _kind(value: Any) -> str:
    if value is None:
        return "nothing"
    kinds: dict[type, str] = {dict: "an object", list: "a list", str: "a text", bool: "a truth value"}
    return kinds.get(type(value), f"{value}"[:40])
