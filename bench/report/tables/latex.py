"""Text and tables as LaTeX with booktabs. Knows nothing about what the words say."""

from __future__ import annotations

from bench.report.tables.values import line

_SPECIAL = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}", "|":
    r"\textbar{}", '"': r"\textquotedbl{}", "'": r"\textquotesingle{}", "`": r"\textasciigrave{}",
}  # fmt: skip


def escaped(text: str) -> str:
    """Text on one line that LaTeX prints as it stands and in which no command is one.

    A letter that pdflatex does not know (beyond Latin-1) is a question mark: it would end the run.
    """
    return "".join(_SPECIAL.get(letter, letter if letter < "\u0100" else "?") for letter in line(text))
