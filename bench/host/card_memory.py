"""Memory of the cards that this process may use, in bytes: what is taken and what is free, by whomever.

It asks NVIDIA's driver or sysfs and loads no runtime. It does not know who holds what.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bench.host import devices
from bench.host.memory import meminfo_available, usable_memory


@dataclass(frozen=True, slots=True)
class CardMemory:
    """Of all visible cards together."""

    used: int
    free: int


def card_memory(sys_root: Path = Path("/sys")) -> CardMemory | None:
    """Of the visible cards; None where there is none, or one does not tell."""
    found = [_of(card, sys_root) for card in devices.visible(devices.present(sys_root))]
    told = [one for one in found if one is not None]
    if not told or len(told) < len(found):
        return None
    return CardMemory(sum(one.used for one in told), sum(one.free for one in told))


def _of(card: devices.Gpu, sys_root: Path) -> CardMemory | None:
    return _nvidia(card) if card.vendor == "nvidia" else _amd(card, sys_root)


def _nvidia(card: devices.Gpu) -> CardMemory | None:
    try:
        import pynvml

        pynvml.nvmlInit()
        info = pynvml.nvmlDeviceGetMemoryInfo(pynvml.nvmlDeviceGetHandleByIndex(card.index))
        return CardMemory(int(info.used), int(info.free))
    except Exception:  # the driver may be gone, or not say: then nothing is known
        return None


def _amd(card: devices.Gpu, sys_root: Path) -> CardMemory | None:
    folder = devices.amd_folder(card, sys_root)
    try:
        if folder is not None:
            total, used = (int((folder / f"mem_info_vram_{name}").read_text()) for name in ("total", "used"))
            return CardMemory(used, total - used)
    except (OSError, ValueError):
        pass
    return None


def free_memory(on_card: bool) -> int | None:
    """Bytes that could be taken at this moment where weights are put; None where nothing tells."""
    if on_card:
        found = card_memory()
        return found.free if found else None
    available = meminfo_available()
    return usable_memory() if available is None else min(usable_memory(), available)
