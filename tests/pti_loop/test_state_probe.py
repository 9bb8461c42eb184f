"""The probe of a rollback on the toy engine, whose truth is known, and broken rollbacks that it must reject."""

from __future__ import annotations

import pytest

from pti_loop.engine import ContextSpec, Unsupported
from pti_loop.fake_memory import advance, whole
from pti_loop.rollback import STRATEGIES, Checkpoint, Rewind
from pti_loop.state_probe import cheapest, probe
from tests.pti_loop.loops import MS, run, toy

TOKENS = list(range(3, 20))
ALL = tuple(STRATEGIES)


def found(model, strategies=ALL, guesses=3, **more):
    return {one.strategy: one for one in probe(model, ContextSpec(200, 1), TOKENS, guesses, strategies, **more)}


def test_the_toy_state_is_what_the_case_says():
    """After [1, 2], a draft [9] that is rejected, then 4: the state of [1, 2, 4], not that of [1, 2, 9, 4]."""
    assert advance(0, [1, 2, 4]) != advance(0, [1, 2, 9, 4])
    model = toy()
    for strategy in ("rewind", "checkpoint"):
        ctx = model.context(ContextSpec(50, 2, hidden=True))
        ctx.decode([1, 2], [0, 1], [0, 0], None)
        rollback = STRATEGIES[strategy].make(ctx, 0, 1)
        rollback.mark(2)
        ctx.decode([9], [2], [0], None)
        assert rollback.forget(2) == 2
        ctx.decode([4], [2], [0], None)
        assert whole(ctx.hidden()[-1]) == advance(0, [1, 2, 4])


def test_every_strategy_passes_on_a_sound_memory_and_costs_nothing_but_its_copies():
    every = {name: found(toy(lazy_copy_ns=3 * MS), [name])[name] for name in ALL}
    assert all(one.passed and one.distance == 0 for one in every.values())
    assert (every["rewind"].cost_ns, every["rewind"].lazy_ns) == (0, 0)
    # One copy is paid by the decode behind the mark, one by the decode behind the rollback.
    assert (every["checkpoint"].lazy_ns, every["checkpoint"].cost_ns) == (3 * MS, 6 * MS)
    assert cheapest(list(every.values())).strategy == "rewind"
    assert list(found(toy())) == ["rewind"], "nothing costs less, so nothing else is tried"


@pytest.mark.parametrize(
    ("faults", "strategy"),
    [({"no_rewind": True}, "snapshots"), ({"no_rewind": True, "no_snapshots": True}, "checkpoint"),
     ({"rollback_lies": True}, "checkpoint")],
)
def test_the_cheapest_that_works_is_taken(faults, strategy):
    assert cheapest(list(found(toy(lazy_copy_ns=MS, **faults)).values())).strategy == strategy


def test_a_lie_is_seen_for_what_it_is():
    one = found(toy(rollback_lies=True))["rewind"]
    assert not one.passed
    assert one.distance > 10 * one.allowed
    assert "after a rollback the logits are" in one.reason


class ForgetsOneLess(Rewind):
    """Keeps a token too many."""

    def forget(self, keep: int) -> int:
        return super().forget(keep + 1) - 1


class WorksOnce(Rewind):
    """The second rollback of a context does nothing."""

    def forget(self, keep: int) -> int:
        self.ctx.used = getattr(self.ctx, "used", 0) + 1
        return super().forget(keep) if self.ctx.used == 1 else keep


class StaleCopy(Checkpoint):
    """Makes its copy once and never again."""

    def mark(self, held: int) -> None:
        if not getattr(self.ctx, "marked", False):
            super().mark(held)
            self.ctx.marked = True
        self._held = held


@pytest.mark.parametrize(
    ("strategy", "broken"), [("rewind", ForgetsOneLess), ("rewind", WorksOnce), ("checkpoint", StaleCopy)]
)
def test_a_deliberately_broken_rollback_is_rejected(strategy, broken):
    (one,) = probe(toy(), ContextSpec(200, 1), TOKENS, 3, [strategy], make={strategy: broken})
    assert not one.passed
    with pytest.raises(Unsupported, match=f"no rollback restores this model's state.*{strategy}: "):
        cheapest([one])


def test_a_model_that_hears_nothing_proves_nothing():
    """With logits that do not depend on the state a broken rollback cannot be told from a sound one."""
    assert "nothing can be told" in found(toy(deaf=True))["rewind"].reason


def test_noise_of_the_decodes_shape_is_allowed():
    assert found(toy(noise=0.05))["rewind"].passed


def test_lazy_copies_are_charged_to_the_rollback():
    """A copy that costs nothing when it is asked for and 3 ms in the next decode: 3 ms of rolling back, C42."""
    settings = {"draft": 2, "n_predict": 30, "rollback": "checkpoint"}
    model = toy(lazy_copy_ns=3 * MS)
    blind = run("mtp", toy(lazy_copy_ns=3 * MS), **settings).rounds()
    told = run("mtp", model, lazy_ns=3 * MS, **settings).rounds()
    free = run("mtp", toy(), **settings).rounds()
    assert sum(r.rollback_ns for r in blind) == 0
    marks = sum(r.drafted > 0 for r in told)
    assert sum(r.rollback_ns for r in told) >= marks * 3 * MS
    assert [r.decode_ns for r in told] == [r.decode_ns for r in free]
    assert sum(r.total_ns for r in told) == sum(r.total_ns for r in blind)
