"""Shards on a Ray cluster of two nodes in processes: a worker and a node are lost, a host has another build."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bench.cli import main
from bench.host.device_lock import VARIABLE
from tests.launchers.losses import cluster, faults, lost_on
from tests.launchers.toy_sweeps import Toy


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Toy, Any, Any]]:
    """The folder, the cluster, and its second node."""
    toy = Toy(tmp_path_factory.mktemp("ray"))
    with cluster(toy) as (made, second):
        yield toy, made, second


@pytest.mark.timeout(600)
def test_every_cell_is_done_once_whatever_is_lost(nodes: tuple[Toy, Any, Any]) -> None:
    toy, made, second = nodes
    done = lost_on(toy, made, second, 12, "launcher.shards=4")
    assert done.returncode == 0, done.stdout + done.stderr
    assert faults(toy, 12) == [] and "12 of 12 cells done (0 were there before)" in done.stdout
    assert "its cells go to another" in done.stdout


@pytest.mark.timeout(600)
def test_a_host_with_another_build_takes_nothing_and_the_others_do_it_all(nodes: tuple[Toy, Any, Any]) -> None:
    toy, made, _ = nodes
    before = len(toy.cells())
    other = toy.environment | {"TOY_BUILD": "toy-2", VARIABLE: str(toy.folder / "others"), "RAY_worker_niceness": "0"}
    made.add_node(num_cpus=2, resources={"bench_host": 1}, env_vars=other)
    made.wait_for_nodes()
    done = toy.sweep("seed=range(20,26)", "launcher=ray", f"launcher.address={made.address}", "launcher.shards=6")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "has the build toy-" in done.stderr and "of the engine (toy stock)" in done.stderr
    assert "6 of 6 cells done" in done.stdout and faults(toy, before + 6) == []


def test_an_address_where_nobody_answers_is_one_sentence(tmp_path: Path, capsys: Any) -> None:
    assert main(["sweep", "launcher=ray", "launcher.address=nowhere", f"results={tmp_path / 'results'}"]) == 2
    assert "launcher.address=nowhere: there is no Ray cluster to join" in capsys.readouterr().err
