"""`python -m bench claims new | check`: an entry of a claim sheet from words or questions, and what would judge it.

It reads what was typed and prints; entries are made by `bench.sheets.entry`, looked at by `bench.sheets.outlook`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench.errors import UserError, nearest
from bench.plain_text import plain_lines
from bench.sheets import entry as entries
from bench.sheets.questions import answered

HELP = """new [FILE] [KEY=VALUE ..] | check FILE .. [results=FOLDER]

new    makes one entry: from KEY=VALUE (or --KEY VALUE), and on a terminal from questions about what is not given.
       It is added to FILE, or printed where none is given. Keys are those of an entry, with a dot for what is inside:
         python -m bench claims new mine.yaml id=mine.lookup says="Lookup gains 1.3x on code edits." \\
           source.document="a post" source.date=2026-11-30 metric=speedup published=1.30 unit=x \\
           scope.method=lookup scope.prompt_class=code_edit conditions.machine=mi50 conditions.model=qwen3.6-27b \\
           conditions.quantization=q6_k
check  every mistake of a sheet, a sentence each; of each claim how it is judged, which stored cells judge it, and what
       measures the rest, for how many minutes on this machine.

docs/claims.md explains the keys, docs/method.md the verdicts."""


def main(rest: Sequence[str]) -> int:
    """Returns 0, or 1 where a sheet that was checked has a mistake. Raises `UserError`."""
    verb, words = (rest[0] if rest else ""), list(rest[1:])
    if verb == "new":
        return _new(words)
    if verb == "check":
        return _check(words)
    raise UserError(f"claims {verb}: {nearest(verb, ('new', 'check'))}; `python -m bench claims --help` tells more")


def _new(words: list[str]) -> int:
    files, given = entries.words_of(words)
    if len(files) > 1:
        raise UserError(f"claims new makes an entry of one sheet, not of {', '.join(files)}; give one file")
    path = Path(files[0]) if files else None
    known = entries.known_ids(path)
    made = answered(given, known) if _is_conversation() else entries.completed(given)
    text = entries.checked(made, known)
    if path is None:
        print(text, end="")
    else:
        entries.append(path, text)
    print("\n".join([f"added to {path}" if path else "", *_outlook_of(text)]).strip(), file=sys.stderr)
    return 0


def _is_conversation() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


def _outlook_of(text: str) -> Iterator[str]:
    """What would judge an entry that was just made."""
    from bench.sheets.outlook import outlook

    return map(plain_lines, outlook(entries.claims_of(text), Path("results")))


def _check(words: list[str]) -> int:
    from bench.judge.claims.sheet import read_sheet
    from bench.sheets.outlook import outlook

    results = [word.removeprefix("results=") for word in words if word.startswith("results=")]
    files = [word for word in words if not word.startswith("results=")]
    if wrong := next((word for word in files if "=" in word and not Path(word).exists()), ""):
        raise UserError(f"'{wrong}' is no setting of claims check; {nearest(wrong.partition('=')[0], ('results',))}")
    if not files:
        raise UserError("claims check looks at sheets; give their files, as `python -m bench claims check mine.yaml`")
    failed = False
    for path in map(entries.sheet_path, files):
        claims, faults = read_sheet(path)
        for fault in faults:
            print(f"error: {plain_lines(fault)}", file=sys.stderr)
        failed |= bool(faults)
        print(f"{path}: {len(claims)} of {len(claims) + len(faults)} entries can be judged")
        for line in outlook(claims, Path(results[-1] if results else "results")):
            print(plain_lines(line))
    return 1 if failed else 0
