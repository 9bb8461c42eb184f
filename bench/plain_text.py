"""Text that came from a record, a claim sheet or a file name, made to be nothing but text where it is written.

A name may hold a terminal's commands, HTML, a link, a spreadsheet's formula, or letters that turn the line around.
Every writer passes what it did not write itself through one of these. It knows nothing about what the text says.
"""

from __future__ import annotations

import re

SHOWN = "\ufffd"
"""What stands for a letter that is none, so that one sees that something was there."""
_BLANKS = re.compile(r"[\t\n\v\f\r\x1c-\x1f\x85\u2028\u2029]+")
_NOT_LINES = re.compile(r"[\t\v\f\x1c-\x1f\x85\u2028\u2029]+|\r\n?")
_NEVER = re.compile(
    "[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f"  # control characters of both sets, ESC and CSI among them
    "\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff"  # marks that turn or hide what stands around them
    "\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff\ufff9-\ufffb"  # no characters: UTF-8 or XML refuses them
    "\U000e0000-\U000e007f]"  # tags, which nothing shows
)
_FORMULA = ("=", "+", "-", "@")
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?( .*)?")
_TAG = re.compile(r"<(?=[A-Za-z/!?])")
_LINK = re.compile(r"\[(?=[^\[\]]*\]\s*[(\[:])")


def plain_text(text: str) -> str:
    """One line with nothing in it that acts. The same text where there is nothing to do."""
    if text.isascii() and text.isprintable():
        return text
    return _NEVER.sub(SHOWN, _BLANKS.sub(" ", text))


def plain_lines(text: str) -> str:
    """The same for several lines."""
    return _NEVER.sub(SHOWN, _NOT_LINES.sub(" ", text))


def markdown(text: str) -> str:
    """One line of Markdown in which no HTML and no link or picture comes from the text; emphasis and code may."""
    return _LINK.sub(r"\\[", _TAG.sub("&lt;", plain_text(text)))


def csv_cell(text: str) -> str:
    """One cell of a CSV file: what a spreadsheet would take for a formula begins with an apostrophe."""
    text = " ".join(plain_text(text).split())
    return f"'{text}" if text.startswith(_FORMULA) and not _NUMBER.fullmatch(text) else text
