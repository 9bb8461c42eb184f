"""What a prompt says to the model: its text as it stands, or as a turn of a chat in the template of the model's file.

The template is rendered by llama-cpp-python's formatter, with a fixed date, so that a prompt is the same every day. It
knows no tokenizer.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from bench.errors import UserError
from bench.plan.settings import Config
from bench.records.drawing import PLAIN
from pti_loop.engine import Unsupported
from pti_loop.gguf.file import GgufFile
from pti_loop.gguf.words import token_words

TEMPLATE = "tokenizer.chat_template"
BEGIN, END = "tokenizer.ggml.bos_token_id", "tokenizer.ggml.eos_token_id"
TODAY = datetime(2026, 1, 1, tzinfo=UTC)
"""What a template that asks for the date is told."""

Say = Callable[[Mapping[str, Any]], str]
"""The text of a prompt of the configuration."""


def says(config: Config, file: GgufFile | None) -> Say:
    """How the configuration's prompts are asked. Raises `Unsupported` for a file without a template.

    `file` is None where the model is known by its name alone.
    """
    if config.prompts.template == PLAIN:
        return plain
    if file is None:
        raise Unsupported("prompts.template=model reads the model's file, and an address has none; use "
                          "prompts.template=none, or let a server be started here")  # fmt: skip
    template = file.metadata.get(TEMPLATE)
    if not isinstance(template, str) or not template:
        raise Unsupported(f"{file.name} has no chat template in its file ({TEMPLATE}); use prompts.template=none")
    return _in_template(template, file)


def facts(config: Config, file: GgufFile | None) -> dict[str, str]:
    """What a record says of the template: its hash; nothing where prompts are taken as they stand."""
    if config.prompts.template == PLAIN or file is None:
        return {}
    return {"chat_template_sha256": hashlib.sha256(str(file.metadata.get(TEMPLATE)).encode()).hexdigest()}


def plain(item: Mapping[str, Any]) -> str:
    """The text, behind that of the system where there is one."""
    system = str(item.get("system") or "")
    return f"{system}\n\n{item['text']}" if system else str(item["text"])


def without_second_beginning(tokens: Sequence[int], file: GgufFile | None) -> tuple[int, ...]:
    """Ids of a rendered prompt, of which template and tokenizer may both have written the beginning."""
    begin = file.metadata.get(BEGIN) if file else None
    return tuple(tokens[1:] if len(tokens) > 1 and tokens[0] == tokens[1] == begin else tokens)


def _in_template(template: str, file: GgufFile) -> Say:
    from llama_cpp.llama_chat_format import Jinja2ChatFormatter

    class Formatter(Jinja2ChatFormatter):
        """Which has one day only."""

        @staticmethod
        def strftime_now(f: str) -> str:
            return TODAY.strftime(f)

    ids = {key: number for key in (BEGIN, END) if isinstance(number := file.metadata.get(key), int)}
    words = token_words(file.path, ids.values())
    begin, end = (words.get(ids.get(key, -1), b"").decode("utf-8", "replace") for key in (BEGIN, END))
    try:
        formatter = Formatter(template, end, begin)
    except Exception as error:  # whatever jinja makes of somebody's template
        raise Unsupported(f"the chat template of {file.name} cannot be read ({error}); use "
                          "prompts.template=none") from error  # fmt: skip

    def said(item: Mapping[str, Any]) -> str:
        system = [{"role": "system", "content": item["system"]}] if item.get("system") else []
        messages: Any = [*system, {"role": "user", "content": item["text"]}]
        try:
            return str(formatter(messages=messages).prompt)
        except Exception as error:  # a template may refuse a role, or fail in any other way
            raise UserError(f"the chat template of {file.name} refuses the prompt '{item['id']}' ({error}); take the "
                            "prompt out, or use prompts.template=none") from error  # fmt: skip

    return said
