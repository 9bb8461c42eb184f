"""The arms of a contrast, and what each is for: the one list of them. Knows no method, and nothing about figures."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Role:
    """One arm."""

    name: str
    words: str
    """What tells it from the treatment, on a page; empty for the treatment itself."""
    plain: bool = False
    """Whether it decodes plainly: its answers one after the other, so that their sum is what one reader sees."""
    own_context: bool = False
    """Whether it has a context of its own; all others share the treatment's."""
    planted: bool = False
    """Whether its guesses are planted: the treatment with a known answer."""
    control: bool = False
    """Whether it is there to check the others, and shows no way of decoding."""


ROLES = {
    role.name: role
    for role in (
        Role("baseline", "plain decoding", plain=True, own_context=True),
        Role("again", "plain decoding again", plain=True, own_context=True, control=True),
        Role("treatment", ""),
        Role("sabotage", "all guesses wrong", planted=True, control=True),
        Role("oracle", "all guesses right", planted=True, control=True),
        Role("solo", "one stream alone", plain=True),
        Role("carry", "one prompt cold, again, and after others", control=True),
        Role("kept", "a drafter that is kept", control=True),
    )
}
"""By name. `again` is the second, identical baseline of the A/A control; `solo` is one stream in the treatment's own
context. `carry` is the treatment before anything else has seen its prompt, directly again, and when all blocks are
over: orders 0, 1 and 2 of a block of its own, with the seed of the first replicate of the prompt's own block.
`kept` is the same prompt with the same seed, in the block behind it, where the method could keep its drafter: one that
meets the prompt for the first time and again (orders 0, 1), and one that met a long foreign prompt before (2, 3)."""
APART = ("carry", "kept")
"""Arms in blocks of their own, without a baseline."""
ARMS = tuple(ROLES)
PLAIN = tuple(role.name for role in ROLES.values() if role.plain)
OWN_CONTEXT = tuple(role.name for role in ROLES.values() if role.own_context)
PLANTED = tuple(role.name for role in ROLES.values() if role.planted)
CONTROLS = tuple(role.name for role in ROLES.values() if role.control)
TREATED = tuple(role.name for role in ROLES.values() if not role.plain)
"""Arms that run the method on trial."""
COUNTED = {"treatment": "", "biased": "planted fault"}
"""Arms whose draws are counted behind fixed prefixes, with their words. `biased` is the treatment with a planted fault,
which the test has to see."""
SHARP_ARMS = ("baseline", "treatment")
"""Arms whose answers are graded on F16 weights too."""
