r"""Text and tables as LaTeX with booktabs and tabularx. Knows nothing about what the words say.

Everything here goes through pdflatex in its usual encoding (OT1), without any further package.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from functools import lru_cache

from bench.report.tables.values import line

NEEDS = "% Needs \\usepackage{booktabs} and \\usepackage{tabularx}.\n"
WORDS_FROM = 25
"""Letters from which on a first column is broken over lines: as a whole it would leave no room for the others."""
_SPECIAL = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}", "|":
    r"\textbar{}", '"': r"{\ttfamily\char34}", "'": r"\textquotesingle{}", "`": r"\textasciigrave{}",
    "\u00ab": r"\textless{}\textless{}", "\u00bb": r"\textgreater{}\textgreater{}", "\u00ad": "", "\u00a0": "~",
    "\u2010": "-", "\u2013": "-", "\u2014": "-", "\u2212": "-",
}  # fmt: skip
_NO_OT1 = "\u00d0\u00f0\u00de\u00fe"
"""Letters of Latin-1 that OT1 has no sign for."""
_BREAKS = "=._/,+"
"""Behind these a word of a column may go on in the next line; behind a hyphen it may anyway."""


def escaped(text: str) -> str:
    """Text on one line that LaTeX prints as it stands and in which no command is one.

    A letter that pdflatex does not know is the one that it is made of, else a question mark: it would end the run.
    """
    # Two hyphens would be printed as one dash.
    return "".join(map(_letter, line(text))).replace("--", "-{}-").replace("--", "-{}-")


@lru_cache(maxsize=1024)
def _letter(letter: str) -> str:
    if letter in _SPECIAL:
        return _SPECIAL[letter]
    if letter < "\u0100" and letter not in _NO_OT1:
        return letter
    plain = "".join(one for one in unicodedata.normalize("NFKD", letter) if not unicodedata.combining(one))
    return "".join(_SPECIAL.get(one, one) for one in plain) if plain.isascii() and plain.isprintable() else "?"


def breakable(text: str) -> str:
    """The same, with places where a long word may be broken."""
    return "".join(escaped(part) + (r"\allowbreak{}" if part in _BREAKS else "") for part in _parts(text))


def _parts(text: str) -> list[str]:
    """Text between the letters of `_BREAKS`, and these."""
    found = [""]
    for letter in line(text):
        if letter in _BREAKS:
            found += [letter, ""]
        else:
            found[-1] += letter
    return found


def tabular(header: Sequence[str], rows: Sequence[Sequence[str]], caption: str, label: str) -> str:
    """A table environment with rules of booktabs, as wide as the text where its first column is one of words.

    Words stand to the left, and each row is a line of the file.
    """
    wide = any(len(row[0]) >= WORDS_FROM for row in rows)
    lines = [" & ".join([(breakable if wide else escaped)(row[0]), *map(escaped, row[1:])]) + r" \\"
             for row in (header, *rows)]  # fmt: skip
    first = r">{\raggedright\arraybackslash\hangindent=1em}X" if wide else "l"
    columns = f"{{@{{}}{first}{'r' * (len(header) - 1)}@{{}}}}"
    begin, end = (rf"tabularx}}{{\textwidth}}{columns}", "tabularx") if wide else (f"tabular}}{columns}", "tabular")
    return "\n".join([
        r"\begin{table*}", r"  \centering\footnotesize\setlength{\tabcolsep}{4pt}",
        f"  \\caption{{{escaped(caption)}}}", f"  \\label{{{label}}}", f"  \\begin{{{begin}", r"    \toprule",
        f"    {lines[0]}", r"    \midrule", *(f"    {one}" for one in lines[1:]), r"    \bottomrule",
        f"  \\end{{{end}}}", r"\end{table*}", "",
    ])  # fmt: skip
