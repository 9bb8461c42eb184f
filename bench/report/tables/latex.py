"""Text and tables as LaTeX with booktabs. Knows nothing about what the words say."""

from __future__ import annotations

from collections.abc import Sequence

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


def tabular(header: Sequence[str], rows: Sequence[Sequence[str]], caption: str, label: str) -> str:
    """A table environment with rules of booktabs: words to the left, and each row on a line of its own."""
    lines = [" & ".join(escaped(word) for word in row) + r" \\" for row in (header, *rows)]
    return "\n".join([
        r"\begin{table*}", r"  \centering\small", f"  \\caption{{{escaped(caption)}}}", f"  \\label{{{label}}}",
        f"  \\begin{{tabular}}{{@{{}}l{'r' * (len(header) - 1)}@{{}}}}", r"    \toprule", f"    {lines[0]}",
        r"    \midrule", *(f"    {one}" for one in lines[1:]), r"    \bottomrule", r"  \end{tabular}",
        r"\end{table*}", "",
    ])  # fmt: skip
