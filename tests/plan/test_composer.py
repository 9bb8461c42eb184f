"""Points that are composed once a choice of groups: what Hydra composes of each, and no composing for each."""

from __future__ import annotations

import random
from typing import Any

import pytest

from bench.errors import UserError
from bench.plan.compose import compose_points, expand
from bench.plan.composer import Composer, fingerprint

VALUES: dict[str, list[str]] = {
    "streams": ["1", "2", "8", "0x10"], "temperature": ["0", "0.7", "1e-1", "1", "-0"], "seed": ["0", "7", "12345678"],
    "engine.n_ctx": ["256", "1_024"], "engine.flash_attn": ["on", "off", "'auto'"], "profile": ["false"],
    "engine.kv_unified": ["true", "yes"], "engine.threads": ["${seed}"], "machine": ["null", "a.b"],
    "measure.classes": ["[prose]", "[question,prose]", "[]"], "measure.until": ["0.05", "0"],
    "method": ["stagger", "packed", "lookup"], "measure": ["quick", "default"], "peers.widths": ["[1,2]"],
    "model.licence": ["'a, b'", "x y"], "prompts": ["short"],
}  # fmt: skip
SAME = ("measure=quick", "measure=quick temperature=0.0", "prompts=default measure=quick")


@pytest.mark.parametrize("seed", range(6))
def test_a_point_is_what_hydra_composes_of_it(seed: int) -> None:
    draw = random.Random(seed)
    with Composer() as composer:
        for _ in range(5):
            keys = draw.sample(sorted(VALUES), 4)
            overrides = [f"{key}={draw.choice(VALUES[key])}" for key in keys]
            assert told(composer, overrides, whole=False) == told(composer, overrides, whole=True), overrides


def told(composer: Composer, overrides: list[str], whole: bool) -> str:
    """A point, or the sentence that it is refused with."""
    try:
        return repr(composer.whole(overrides) if whole else composer.point(overrides))
    except UserError as error:
        return str(error)


def test_points_that_differ_in_numbers_are_composed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    composed: list[Any] = []
    own = Composer.composed
    monkeypatch.setattr(Composer, "composed", lambda self, words: composed.append(words) or own(self, words))
    told: list[int] = []
    points = compose_points(["seed=range(0,300)", "method=stagger,packed"], told.append)
    assert told == [600] and len(points) == 600, "the number of points is said before they are composed"
    assert len({(point.seed, point.method.name) for point in points}) == 600
    assert len(composed) == 2


def test_changing_a_point_leaves_the_others_as_they_are() -> None:
    one, other = compose_points(["seed=1,2"])
    one.engine.threads, one.measure.classes, one.treatment.engine.threads = 7, ["prose"], 3
    one.method.parameters["emission"] = "distinct"
    assert (other.engine.threads, other.measure.classes, other.treatment.engine.threads) == (0, [], None)
    assert other.method.parameters["emission"] == "published"


def test_two_points_are_one_where_they_are_equal_however_they_were_written() -> None:
    with Composer() as composer:
        points = [composer.point(words.split()) for words in (*SAME, "measure=default")]
    assert len({fingerprint(point) for point in points}) == 2
    assert len(expand(["seed=1,1,2"])) == 3 and len(compose_points(["seed=1,1,2"])) == 2
