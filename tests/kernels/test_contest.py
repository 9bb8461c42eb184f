"""The order of launches: every contender once a block, every second block reversed; cold rotates, warm repeats."""

import numpy as np

from kernels import contest
from kernels.contest import Contender
from kernels.device import Args


class FakeTimed:
    """Stands for a graph: it notes who was replayed."""

    log: list

    def __init__(self, device, launcher, args):
        self.name = launcher

    def replay(self):
        self.log.append(self.name)
        return 1.0


def test_blocks_are_balanced(monkeypatch):
    log = FakeTimed.log = []
    monkeypatch.setattr(contest, "Timed", FakeTimed)
    contenders = [Contender(name, name, [Args()]) for name in "abcd"]
    contest.run(None, contenders, "cold", 6, np.random.default_rng())
    played = log[8:]  # two warm-up replays each
    blocks = [played[i : i + 4] for i in range(0, len(played), 4)]
    assert len(blocks) == 6 and all(sorted(block) == list("abcd") for block in blocks)
    assert all(blocks[i + 1] == blocks[i][::-1] for i in (0, 2, 4))
    assert all(len(c.times) == 6 for c in contenders)


def test_cold_rotates_and_warm_repeats():
    args = [Args(rows=i) for i in range(3)]
    assert [a.rows for a in contest.graph_args(args, "cold")] == [0, 1, 2] * 3
    assert {a.rows for a in contest.graph_args(args, "warm")} == {0}
