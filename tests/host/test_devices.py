"""Which cards a process may use, as the runtimes' variables say it, and names that are the same for every process."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.host import devices
from bench.host.devices import Gpu, visible

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


def test_the_host_has_a_key_that_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "machine-id").write_text("1234\n")
    one = devices.host_key(tmp_path)
    assert one == devices.key("1234") and len(one) == 12 and "1234" not in one
    (tmp_path / "machine-id").write_text("1235\n")
    assert devices.host_key(tmp_path) != one
