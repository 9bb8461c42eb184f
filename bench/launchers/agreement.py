"""Whether a host measures with what the hosts before it did: build, weights, commit; and whether two are one by name.

It knows the kinds of `bench.run.share`, and nothing about how hosts are reached.
"""

from __future__ import annotations

from collections.abc import Mapping

from bench.errors import UserError
from bench.launchers.board import Board
from bench.run.share import BUILD, COMMIT, KEY, MACHINE, NAME, WEIGHTS

_REFUSALS = {
    BUILD: "{who} has the build {ours} of the engine ({of}), and {first} has {told}; set both up alike",
    WEIGHTS: "{who} has another model file {of} ({ours:.12}..) than {first} ({told:.12}..); copy the right one there",
    COMMIT: "{who} has the commit {ours} of {of}, and {first} has {told}; have both at the same commit",
    MACHINE: "{who} is called {of} as {first} is, and has {ours} where that has {told}; leave machine= out, and each "
             "make has a name of its own",
    KEY: "{who} and {first} are two hosts and say that they are one ({of}): their /etc/machine-id is the same, so that "
         "no record would tell them apart; give each its own (systemd-machine-id-setup)",
}  # fmt: skip
REST = "; what was measured is kept, and the cells of this host go to others"


def agree(facts: Mapping[str, str], board: Board, who: str) -> list[str]:
    """Put a host's facts on the board. Returns warnings; raises `UserError` where another host said otherwise.

    `who` is what the host is called in sentences.
    """
    warnings = []
    for key, ours in facts.items():
        kind, of = key.split(" ", 1)
        told, first = board.first(key, ours, who)
        if told == ours:
            continue
        if kind != NAME:
            raise UserError(_REFUSALS[kind].format(who=who, of=of, ours=ours, told=told, first=first) + REST)
        warnings.append(f"two hosts are called {of} (keys {told or 'none'} and {ours or 'none'}); their records are "
                        "told apart by these keys, and who has taken a cell by more than a name; give each one of its "
                        "own")  # fmt: skip
    return warnings
