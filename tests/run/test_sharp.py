"""The texts on F16 weights: what is stored of them, and what is said where they cannot be decoded."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from bench.host import card_memory
from bench.run import sharp
from bench.run.engines import engine
from bench.run.sharp import MARGIN, grade_sharp, needed
from pti_loop.engine import EngineError
from pti_loop.gguf import file as gguf_file
from tests.run import test_contrast
from tests.run.test_contrast import PROMPTS, toy

TINY = Path(__file__).parents[2] / "models" / "pti-tiny" / "pti-tiny.Q8_0.gguf"


def config(method: str, **more: Any) -> Any:
    made = test_contrast.config(method, **more)
    made.measure.sharp = True
    return made


@dataclass
class StandIn:
    """An engine whose F16 weights are the toy's."""

    wide: bool = False
    trouble: Exception | None = None
    loaded: list[str] = field(default_factory=list)

    def is_wide(self, file: Any) -> bool:
        return self.wide

    def wide_bytes(self, file: Any) -> int:
        return 1000

    def kv_bytes_per_token(self, file: Any, settings: Any) -> int:
        return 2

    def wide_file(self, path: str) -> Path:
        if self.trouble:
            raise self.trouble
        return Path(path)

    def load(self, settings: Any, path: str) -> Any:
        self.loaded.append(path)
        return toy(noise=0.001)


def graded(runs: Any, settings: Any = None, free: int | None = 10**12, monkeypatch: Any = None) -> Any:
    monkeypatch.setattr(sharp, "_free", lambda on_card: free)
    file = gguf_file.read(TINY)
    return grade_sharp(runs, settings or config("lookup"), PROMPTS, file, "order", False, lambda *_: None)


def test_each_prompt_is_said_once_in_both_arms_and_compared(monkeypatch):
    settings = config("packed", streams=2)
    settings.measure.blocks_per_prompt = 2
    found = graded(StandIn(), settings, monkeypatch=monkeypatch)
    assert found.facts["state"] == "graded"
    assert found.facts["sha256"] == gguf_file.read(TINY).sha256()
    said = {(row.arm, row.prompt, row.stream) for row in found.rows}
    assert {arm for arm, _, _ in said} == {"baseline", "treatment"}
    assert len(said) == 2 * 2 * 6, "two arms, two answers, six groups of prompts, each once"
    assert len(found.rows) == len(said) * settings.n_predict
    assert len(found.facts["lossless"]) == 12 and found.facts["noise"]["positions"] > 0
    seeds = {row.seed - settings.seed * 1_000_003 for row in found.rows}
    assert seeds == set(range(0, 12, 2)), "those of blocks that the cell has"


def test_nothing_is_stored_where_it_is_not_asked_for(monkeypatch):
    settings = config("lookup")
    settings.measure.sharp = False
    found = graded(StandIn(), settings, monkeypatch=monkeypatch)
    assert (found.facts, found.rows) == ({}, [])


def test_weights_that_are_as_wide_are_their_own_grade(monkeypatch):
    found = graded(StandIn(wide=True), monkeypatch=monkeypatch)
    assert found.facts == {"state": "same", "type": "Q8_0", "sha256": gguf_file.read(TINY).sha256()}


@pytest.mark.parametrize(("free", "state"), [(None, "graded"), (0, "left out"), (-1, "left out"), (1, "graded")])
def test_what_does_not_fit_is_not_even_made(monkeypatch, free, state):
    runs, settings = StandIn(), config("lookup")
    file = gguf_file.read(TINY)
    need = needed(runs, settings, file)  # type: ignore[arg-type]
    per_sequence = 2 * settings.engine.n_ctx + file.state_bytes_per_sequence()
    assert need == round(MARGIN * (1000 + 3 * per_sequence))
    behind = needed(runs, replace(settings, depth=100), file)  # type: ignore[arg-type]
    assert behind - need == pytest.approx(MARGIN * 3 * 2 * 100, abs=1), "what prompts begin with is held, too"
    room = {None: None, 0: 0, -1: need - 1, 1: need}[free]
    found = graded(runs, settings, room, monkeypatch)
    assert found.facts["state"] == state
    if state == "left out":
        assert not runs.loaded and "are free" in found.facts["reason"]
        assert (found.facts["needed_bytes"], found.facts["free_bytes"]) == (need, room)


def test_a_file_that_cannot_be_made_costs_the_cell_nothing_and_names_no_folder(monkeypatch):
    trouble = EngineError(f"llama.cpp makes no f16 twin of {TINY}: no room")
    found = graded(StandIn(trouble=trouble), monkeypatch=monkeypatch)
    assert found.facts["state"] == "left out"
    assert found.facts["reason"] == f"llama.cpp makes no f16 twin of {TINY.name}: no room"


def test_llama_cpp_widens_a_real_file_once_and_says_how_large_it_is(tmp_path, monkeypatch, capfd):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    runs = engine("llama")
    source = gguf_file.read(TINY)
    wide = gguf_file.read(runs.wide_file(str(TINY)))
    assert not runs.is_wide(source) and runs.is_wide(wide)
    assert wide.quantization == "F16"
    assert {one.type for one in wide.tensors} == {"F16", "F32"}
    assert {one.name: one.shape for one in wide.tensors} == {one.name: one.shape for one in source.tensors}
    assert runs.wide_bytes(source) <= wide.tensor_bytes <= 1.02 * runs.wide_bytes(source)
    assert runs.wide_file(str(TINY)) == wide.path
    assert capfd.readouterr().err.count("MB, once") == 1


def test_free_memory_is_the_cards_where_weights_go_there(monkeypatch):
    monkeypatch.setattr(card_memory, "usable_memory", lambda: 100)
    monkeypatch.setattr(card_memory, "meminfo_available", lambda: 70)
    monkeypatch.setattr(card_memory, "card_memory", lambda: card_memory.CardMemory(5, 7))
    assert (card_memory.free_memory(False), card_memory.free_memory(True)) == (70, 7)
    monkeypatch.setattr(card_memory, "meminfo_available", lambda: None)
    monkeypatch.setattr(card_memory, "card_memory", lambda: None)
    assert (card_memory.free_memory(False), card_memory.free_memory(True)) == (100, None)


def test_an_amd_card_tells_by_sysfs_what_it_holds(tmp_path, monkeypatch):
    folder = tmp_path / "class/drm/card0/device"
    folder.mkdir(parents=True)
    for name, text in {"vendor": "0x1002", "unique_id": "abc", "mem_info_vram_total": "1000",
                       "mem_info_vram_used": "300"}.items():  # fmt: skip
        (folder / name).write_text(text)
    card = card_memory.devices.Gpu("amd", 0, "abc", "MI50")
    monkeypatch.setattr(card_memory.devices, "visible", lambda *_: [card])
    assert card_memory.card_memory(tmp_path) == card_memory.CardMemory(300, 700)
    monkeypatch.setattr(card_memory.devices, "visible",
                        lambda *_: [card, card_memory.devices.Gpu("amd", 1, "x", "y")])
    assert card_memory.card_memory(tmp_path) is None
