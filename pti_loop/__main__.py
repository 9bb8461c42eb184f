"""`python -m pti_loop generate`: text from several streams of one model, and what they gained."""

import sys

from pti_loop.load_first import load_first

USAGE = """usage: python -m pti_loop generate -m FILE -p PROMPT --pti N ...

  generate   stream an answer as a method of pti_loop decodes it, and end with its rates

`python -m pti_loop generate --help` tells more; `python -m bench` measures and judges.
"""


def main(argv: list[str]) -> int:
    """0 well, 2 something to mend, 130 interrupted, 141 nobody reads on."""
    if not argv or argv[0] in ("-h", "--help", "help"):
        print(USAGE, end="")
        return 0
    if argv[0] != "generate":
        print(f"error: there is no command '{argv[0]}'; it is: python -m pti_loop generate", file=sys.stderr)
        return 2
    if not any(word in ("-h", "--help") for word in argv):
        load_first()
    from pti_loop.generate.command import main as generate

    return generate(argv[1:])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
