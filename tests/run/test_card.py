"""What a GPU has to be before anything is loaded: alone, and large enough. The file has to be the one that is meant."""

from __future__ import annotations

import hashlib

import pytest

from bench.errors import UserError
from bench.host import card_memory, gpu_users
from bench.plan.compose import compose_points
from bench.run import card_room
from bench.run import sweep as sweeping
from bench.run.prepared import check_models
from bench.synth import command
from pti_loop.gguf import file as gguf_file


@pytest.fixture(scope="module")
def mini(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "mini.gguf"
    assert command.main(["hybrid-mini", str(path)]) == 0
    return path


def configs(*overrides: str):
    return compose_points(["streams=2", *overrides])


def test_a_gpu_with_other_work_on_it_is_refused_by_name_unless_allowed(monkeypatch, capsys):
    monkeypatch.setattr("bench.run.engines.offloads", lambda config: True)
    monkeypatch.setattr(gpu_users, "others", lambda: ["llama-server (4711)"])
    with pytest.raises(UserError, match=r"the GPU is in use by llama-server \(4711\).*busy=true"):
        sweeping.check_alone(configs())
    sweeping.check_alone(configs("busy=true"))
    assert "measured beside llama-server (4711)" in capsys.readouterr().out
    monkeypatch.setattr(gpu_users, "others", lambda: [f"p ({number})" for number in range(9)])
    with pytest.raises(UserError, match=r"p \(3\) and 5 more, which"):
        sweeping.check_alone(configs())


def test_a_gpu_that_is_not_measured_on_may_be_busy(monkeypatch):
    monkeypatch.setattr("bench.run.engines.offloads", lambda config: False)
    monkeypatch.setattr(gpu_users, "others", lambda: ["llama-server (4711)"])
    sweeping.check_alone(configs())


@pytest.mark.parametrize("kind", ["contrast", "profile", "counters"])
def test_what_cannot_fit_onto_the_card_is_told_before_it_is_loaded(mini, kind, monkeypatch):
    (config,) = configs("model=gguf", f"model.path={mini}", "measure.step_widths=4", "measure.counted_widths=[1,4]")
    file = gguf_file.read(mini)
    monkeypatch.setattr(card_room, "offloads", lambda config: True)
    sequence = file.kv_bytes_per_token("f16", "f16") * 512 + file.state_bytes_per_sequence()
    need = file.step_bytes + 4 * sequence
    monkeypatch.setattr(card_memory, "card_memory", lambda: card_memory.CardMemory(0, need))
    assert card_room.no_room(config, file, kind) == ""
    monkeypatch.setattr(card_memory, "card_memory", lambda: card_memory.CardMemory(0, need - 1))
    assert "the contexts of 4 sequences of 512 tokens" in card_room.no_room(config, file, kind)


def test_nothing_is_refused_where_nothing_tells_or_a_part_stays_with_the_cpu(mini, monkeypatch):
    (config,) = configs("model=gguf", f"model.path={mini}", "engine.n_gpu_layers=2")
    file = gguf_file.read(mini)
    monkeypatch.setattr(card_room, "offloads", lambda config: True)
    monkeypatch.setattr(card_memory, "card_memory", lambda: card_memory.CardMemory(0, 1))
    assert card_room.no_room(config, file, "contrast") == ""
    monkeypatch.setattr(card_memory, "card_memory", lambda: None)
    config.engine.n_gpu_layers = -1
    assert card_room.no_room(config, file, "contrast") == ""


def test_a_file_with_another_digest_is_refused(mini):
    right = hashlib.sha256(mini.read_bytes()).hexdigest()
    check_models(configs("model=gguf", f"model.path={mini}", f"model.sha256={right}"))
    with pytest.raises(UserError, match=rf"has SHA-256 {right[:12]}.., and model.sha256 asks for 000000000000"):
        check_models(configs("model=gguf", f"model.path={mini}", f"model.sha256={'0' * 64}"))
