"""Which cards a process may use, as the runtimes' variables say it, and names that are the same for every process."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.host import devices, provenance
from bench.host.card_memory import card_memory
from bench.host.clocks import Clocks
from bench.host.devices import Gpu, visible
from bench.host.energy import Meter

ALIKE = [Gpu("nvidia", number, f"GPU-{number}f", "H200") for number in range(4)]
UNLIKE = [Gpu("nvidia", 0, "GPU-0f", "H200"), Gpu("nvidia", 1, "GPU-1f", "L4")]
AMD = [Gpu("amd", 0, "7f", "MI50"), Gpu("amd", 1, "8f", "MI50")]


@pytest.mark.parametrize(("said", "expected"), [
    (None, [0, 1, 2, 3]), ("", []), ("-1", []), ("2", [2]), ("3,1", [3, 1]), ("1,-1,2", [1]), ("GPU-2", [2]),
    ("gpu-3f", [3]), ("1,1", [1]), ("9", []), ("1,9,2", [1]), ("MIG-77", [0, 1, 2, 3]), (" 0 , 1 ", [0, 1]),
])  # fmt: skip
def test_cuda_visible_devices(monkeypatch: pytest.MonkeyPatch, said: str | None, expected: list[int]) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if said is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", said)
    assert [card.index for card in visible(ALIKE)] == expected


def test_a_number_says_nothing_where_the_order_of_unlike_cards_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    monkeypatch.delenv("CUDA_DEVICE_ORDER", raising=False)
    assert visible(UNLIKE) == UNLIKE
    monkeypatch.setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
    assert visible(UNLIKE) == UNLIKE[1:]


def test_a_vendors_variable_is_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    monkeypatch.setenv("HIP_VISIBLE_DEVICES", "1")
    assert visible([*ALIKE, *AMD]) == [ALIKE[0], AMD[1]]


def test_amd_cards_by_sysfs(tmp_path: Path) -> None:
    for number, vendor in ((10, "0x1002"), (2, "0x1002"), (3, "0x10de")):
        folder = tmp_path / "class" / "drm" / f"card{number}" / "device"
        folder.mkdir(parents=True)
        (folder / "vendor").write_text(f"{vendor}\n")
        (folder / "mem_info_vram_total").write_text("1\n")
        (folder / "unique_id").write_text(f"id{number}\n")
    assert [(card.index, card.id) for card in devices._amd(tmp_path)] == [(0, "id2"), (1, "id10")]


@pytest.fixture
def cards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Eight MI50 as sysfs shows them, each with the sensors below it, which are numbered in another order."""
    for number in range(8):
        folder = tmp_path / "class" / "drm" / f"card{number}" / "device"
        sensors = folder / "hwmon" / f"hwmon{9 - number}"
        sensors.mkdir(parents=True)
        for name, text in (("vendor", "0x1002"), ("device", "0x66a1"), ("mem_info_vram_total", "34342961152"),
                           ("mem_info_vram_used", f"{number}"), ("unique_id", f"7f{number}")):  # fmt: skip
            (folder / name).write_text(f"{text}\n")
        for name, text in (("name", "amdgpu"), ("freq1_input", f"{1000 + number}000000"), ("temp1_input", "50000"),
                           ("power1_average", f"{100 + number}000000"), ("power1_cap", "225000000")):  # fmt: skip
            (sensors / name).write_text(f"{text}\n")
        place = tmp_path / "class" / "hwmon" / f"hwmon{9 - number}"
        place.parent.mkdir(exist_ok=True)
        place.symlink_to(sensors)
    monkeypatch.setattr(devices, "_nvidia", lambda: [])
    for name in devices.VARIABLES:
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.mark.parametrize(("variable", "said", "own"), [
    ("HIP_VISIBLE_DEVICES", "5", 5), ("ROCR_VISIBLE_DEVICES", "3", 3), ("ROCR_VISIBLE_DEVICES", "GPU-7f6", 6),
])  # fmt: skip
def test_sensors_and_memory_are_the_visible_cards(cards, monkeypatch, variable: str, said: str, own: int) -> None:
    monkeypatch.setenv(variable, said)
    assert Clocks("gpu", cards).sample().clock_mhz == 1000 + own
    assert Meter("gpu", cards).limits().power_w == 100 + own
    found = card_memory(cards)
    assert found is not None and found.used == own
    assert [gpu["name"] for gpu in provenance.gpus(cards)] == ["AMD GPU 66a1"]


def test_hip_counts_among_the_cards_that_the_runtime_below_it_leaves(cards, monkeypatch) -> None:
    monkeypatch.setenv("ROCR_VISIBLE_DEVICES", "4,5,6")
    monkeypatch.setenv("HIP_VISIBLE_DEVICES", "1")
    assert [card.id for card in visible(devices.present(cards))] == ["7f5"]
    assert Clocks("gpu", cards).sample().clock_mhz == 1005


def test_no_card_is_visible_and_no_sensor_is_read(cards, monkeypatch) -> None:
    monkeypatch.setenv("HIP_VISIBLE_DEVICES", "")
    assert Clocks("gpu", cards).source == "none" and provenance.gpus(cards) == []


@pytest.mark.parametrize(("found", "set_before", "size", "expected"), [
    (ALIKE, {}, 1, [{"CUDA_VISIBLE_DEVICES": f"GPU-{number}f"} for number in range(4)]),
    (ALIKE, {"CUDA_VISIBLE_DEVICES": "3,1"}, 2, [{"CUDA_VISIBLE_DEVICES": "GPU-3f,GPU-1f"}]),
    (ALIKE, {"CUDA_VISIBLE_DEVICES": "0,1,2"}, 2, [{"CUDA_VISIBLE_DEVICES": "GPU-0f,GPU-1f"}]),
    (AMD, {}, 1, [{"HIP_VISIBLE_DEVICES": "0"}, {"HIP_VISIBLE_DEVICES": "1"}]),
    (AMD, {"ROCR_VISIBLE_DEVICES": "1"}, 1, [{"HIP_VISIBLE_DEVICES": "0"}]),
    (AMD, {}, 3, []), ([], {}, 1, []),
])  # fmt: skip
def test_groups_of_cards_leave_each_process_its_own(monkeypatch, found, set_before, size, expected) -> None:
    monkeypatch.setattr(devices, "present", lambda *_: found)
    for name in devices.VARIABLES:
        monkeypatch.delenv(name, raising=False)
    for name, value in set_before.items():
        monkeypatch.setenv(name, value)
    groups = devices.groups(size)
    assert groups == expected
    seen = []
    for group in groups:  # as the process of a shard has it
        with monkeypatch.context() as patch:
            for name, value in group.items():
                patch.setenv(name, value)
            seen.append([card.id for card in visible()])
    assert all(len(cards) == size for cards in seen)
    assert len({card for cards in seen for card in cards}) == size * len(groups)


def test_the_host_has_a_key_that_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "machine-id").write_text("1234\n")
    one = devices.host_key(tmp_path)
    assert one == devices.key("1234") and len(one) == 12 and "1234" not in one
    (tmp_path / "machine-id").write_text("1235\n")
    assert devices.host_key(tmp_path) != one
