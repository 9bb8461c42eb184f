"""Points are dealt whole and once, every host means the same points, and one launcher is asked for."""

from __future__ import annotations

import pytest

from bench.cli import main
from bench.errors import UserError
from bench.plan.compose import compose_points
from bench.plan.launchers import is_launched, launcher_of, without
from bench.plan.shards import Shard, chosen, deal, digest

WORDS = ["streams=1,2", "seed=1,2,3"]


@pytest.mark.parametrize(("count", "shards"), [(1, 1), (7, 3), (3, 8), (1000, 8)])
def test_every_point_is_dealt_once(count: int, shards: int) -> None:
    dealt = deal(count, shards, "d")
    assert sorted(point for shard in dealt for point in shard.points) == list(range(count))
    sizes = [len(shard.points) for shard in dealt]
    assert len(dealt) == min(count, shards) and max(sizes) - min(sizes) <= 1
    assert [shard.points[0] for shard in dealt] == list(range(len(dealt))), "all begin with what is worth most"


def test_a_shard_is_of_the_points_that_were_meant() -> None:
    points = compose_points(WORDS)
    part = chosen(points, Shard((1, 4), digest(points)))
    assert [(one.streams, one.seed) for one in part] == [(1, 2), (2, 2)]
    # Who measures, where to and how long to wait for a device change nothing of what is measured.
    same = compose_points([*WORDS, "launcher=ray", "launcher.shards=3", "results=elsewhere", "wait=60"])
    assert digest(same) == digest(points)
    others = (["streams=1,2", "seed=1,2"], [*WORDS, "n_predict=25"], [*WORDS, "prompts=short"], [*WORDS, "machine=a"],
              [*WORDS, "method=packed"], [*WORDS, "engine.n_ctx=300"])  # fmt: skip
    for words in others:
        with pytest.raises(UserError, match="at the same commit"):
            chosen(compose_points(words), Shard((0,), digest(points)))


@pytest.mark.parametrize(("words", "sentence"), [
    (["launcher=submitit,ray"], "launcher has several values"),
    (["launcher=ray", "launcher.shards=2,3"], "launcher has several values"),
    (["launcher.partition=gpu"], "launcher.partition is no setting of launcher=local; write launcher=submitit"),
    (["launcher=ray", "launcher.partition=gpu"], "is no setting of launcher=ray; write launcher=submitit"),
    (["launcher=submitit", "launcher.address=auto"], "is no setting of launcher=submitit; write launcher=ray"),
    (["launcher.shards=4"], "launcher.shards is no setting of launcher=local"),
    (["launcher=slurm"], "there is no such launcher in configs/launcher; choose from: local, ray, submitit"),
    (["launcher=submitit", "launcher.cluster=slrum"], "did you mean 'slurm'"),
    (["launcher=submitit", "launcher.shards=-1"], "is below 0"),
    (["launcher=submitit", "launcher.partitions=a"], "unknown key 'launcher.partitions'"),
])  # fmt: skip
def test_what_is_no_launcher_is_one_sentence(words: list[str], sentence: str, capsys) -> None:
    assert is_launched(words) and main(["sweep", *words]) == 2
    told = capsys.readouterr().err
    assert sentence in told and told.count("\n") == 1


def test_words_about_the_launcher_come_apart_from_the_others() -> None:
    words = ["launcher=ray", "streams=2", "launcher.gpus=1", "+launcher.shards=3"]
    assert without(words) == ["streams=2"]
    assert not is_launched(["streams=2", "launcher=local"]) and is_launched(["launcher=ray"])
    assert launcher_of(compose_points(["launcher=ray", "launcher.gpus=1", "streams=1,2"])).gpus == 1
