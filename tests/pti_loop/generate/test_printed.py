"""The text as it comes: whole letters, once each, and nothing that commands a terminal."""

from __future__ import annotations

import io

from pti_loop.generate.printed import Printed, harmless
from pti_loop.pti_context import Said

PIECES = {0: b"caf", 1: b"\xc3", 2: b"\xa9", 3: b" au lait\n", 4: b"and so on", 5: b"\xff", 6: b"\x1b[2J"}


def said(*rows: tuple[int, int, int], confirmed: bool = True) -> list[Said]:
    return [Said(answer, position, token, False, confirmed) for answer, position, token in rows]


def test_a_letter_of_two_tokens_is_written_when_it_is_whole():
    out = io.StringIO()
    text = Printed(PIECES.__getitem__, 1, out)
    text.add(said((0, 0, 0), (0, 1, 1)), 10)
    assert out.getvalue() == "caf"
    text.add(said((0, 2, 2)), 10)
    text.end()
    assert out.getvalue() == "café\n"


def test_what_is_said_again_or_only_guessed_or_beyond_the_limit_is_not_written():
    out = io.StringIO()
    text = Printed(PIECES.__getitem__, 1, out)
    text.add(said((0, 0, 0), (0, 1, 4)) + said((0, 2, 4), confirmed=False), 2)
    text.add(said((0, 1, 0), (0, 0, 4), (0, 2, 0)), 2)
    text.end()
    assert out.getvalue() == "cafand so on\n"


def test_a_position_waits_for_those_before_it():
    out = io.StringIO()
    text = Printed(PIECES.__getitem__, 1, out)
    text.add(said((0, 1, 4)), 5)
    assert out.getvalue() == ""
    text.add(said((0, 0, 0)), 5)
    assert out.getvalue() == "cafand so on"


def test_several_answers_come_by_lines_with_their_numbers():
    out = io.StringIO()
    text = Printed(PIECES.__getitem__, 2, out)
    text.add(said((0, 0, 0), (1, 0, 4)), 40)
    assert out.getvalue() == ""
    text.add(said((0, 1, 3), *((1, place, 4) for place in range(1, 12))), 40)
    assert "1| caf au lait\n" in out.getvalue()
    text.end()
    second = [line.removeprefix("2| ") for line in out.getvalue().splitlines() if line.startswith("2| ")]
    assert " ".join(second) == "and so on" * 12 and len(second) > 1 and max(map(len, second)) <= 96


def test_bytes_that_are_no_letter_and_commands_of_a_terminal_are_shown_as_such():
    out = io.StringIO()
    text = Printed(PIECES.__getitem__, 1, out)
    text.add(said((0, 0, 5), (0, 1, 6)), 5)
    text.end()
    assert out.getvalue() == "\ufffd\ufffd[2J\n"
    assert harmless("a\tb\nc\u00a0d\u200d") == "a\tb\nc\u00a0d\u200d"
