"""Which GPUs this process may use, each by a name that is the same for every process of the machine, and the host's.

It asks NVIDIA's driver or sysfs, and loads no runtime. It knows nothing about what a device will do.
"""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass
from pathlib import Path

_VISIBLE = {"nvidia": ("CUDA_VISIBLE_DEVICES",), "amd": ("ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES")}
"""In the order in which they apply: HIP numbers the cards that the runtime below it leaves."""
VARIABLES = tuple(name for names in _VISIBLE.values() for name in names)
CPU = "cpu"
_DIGITS = 12


@dataclass(frozen=True, slots=True)
class Gpu:
    """One card. `id` is its UUID, or where it sits where it has none."""

    vendor: str
    index: int
    id: str
    name: str


def present(sys_root: Path = Path("/sys")) -> list[Gpu]:
    """All cards of the machine that this process can see the driver of."""
    return _nvidia() + _amd(sys_root)


def visible(found: list[Gpu] | None = None) -> list[Gpu]:
    """The cards that the variables of the runtimes leave to this process.

    Where a variable says something that cannot be told apart here (a partition of a card, the order of unlike cards),
    all cards of its vendor count: too many locks are better than too few.
    """
    cards = present() if found is None else found
    kept: list[Gpu] = []
    for vendor, variables in _VISIBLE.items():
        own = [card for card in cards if card.vendor == vendor]
        for variable in variables:
            own = _chosen(own, os.environ.get(variable))
        kept += own
    return kept


def groups(size: int) -> list[dict[str, str | None]]:
    """The visible cards of each vendor in groups of so many, each as the variable that leaves them to a process."""
    found: list[dict[str, str | None]] = []
    cards = visible()
    for vendor, variables in _VISIBLE.items():
        own = [card for card in cards if card.vendor == vendor]
        # NVIDIA's runtime takes UUIDs; HIP takes places among the cards that the runtime below it leaves.
        names = [card.id for card in own]
        if vendor == "amd":
            below = _chosen([card for card in present() if card.vendor == vendor], os.environ.get(variables[0]))
            names = [str(below.index(card)) for card in own]
        found += [{variables[-1]: ",".join(names[start : start + size])}
                  for start in range(0, len(names) - size + 1, size)]  # fmt: skip
    return found


def _chosen(cards: list[Gpu], said: str | None) -> list[Gpu]:
    if said is None:
        return cards
    words = [word.strip() for word in said.split(",")] if said.strip() else []
    ordered = len({card.name for card in cards}) <= 1 or os.environ.get("CUDA_DEVICE_ORDER") == "PCI_BUS_ID"
    kept: list[Gpu] = []
    for word in words:
        if word == "-1":  # the runtimes stop there, too
            break
        if word.isdecimal() and not ordered and cards[0].vendor == "nvidia":
            return cards
        name = word.lower().removeprefix("gpu-" if cards and cards[0].vendor == "amd" else "")
        found = [card for place, card in enumerate(cards) if (word.isdecimal() and place == int(word))
                 or (not word.isdecimal() and card.id.lower().startswith(name))]  # fmt: skip
        if not found:
            return kept if word.isdecimal() else cards
        kept += [card for card in found if card not in kept]
    return kept


def _nvidia() -> list[Gpu]:
    try:
        import pynvml

        pynvml.nvmlInit()
        handles = [pynvml.nvmlDeviceGetHandleByIndex(index) for index in range(pynvml.nvmlDeviceGetCount())]
        return [Gpu("nvidia", index, _text(pynvml.nvmlDeviceGetUUID(handle)), _text(pynvml.nvmlDeviceGetName(handle)))
                for index, handle in enumerate(handles)]  # fmt: skip
    except Exception:  # without the package, the driver or a card there is simply no NVIDIA GPU here
        return []


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


def _amd(sys_root: Path) -> list[Gpu]:
    return [card for card, _ in _amd_folders(sys_root)]


def amd_folder(card: Gpu, sys_root: Path = Path("/sys")) -> Path | None:
    """Where sysfs tells about an AMD card."""
    return next((folder for one, folder in _amd_folders(sys_root) if one.id == card.id), None)


def amd_sensors(sys_root: Path = Path("/sys")) -> list[Path]:
    """Folders of the sensors of the visible AMD cards, in their order; all of amdgpu's where no card has its own."""
    cards = [card for card in visible(present(sys_root)) if card.vendor == "amd"]
    own = [path for card in cards if (folder := amd_folder(card, sys_root)) for path in sorted(folder.glob("hwmon/*"))]
    found = own or ([] if _hidden(cards, sys_root) else sorted((sys_root / "class/hwmon").glob("hwmon*")))
    return [path for path in found if _read(path / "name") == "amdgpu"]


def _hidden(visible_cards: list[Gpu], sys_root: Path) -> bool:
    """Whether cards are there and none of them is this process's."""
    return not visible_cards and bool(_amd(sys_root))


def _amd_folders(sys_root: Path) -> list[tuple[Gpu, Path]]:
    found = (sys_root / "class/drm").glob("card*/device")
    folders = [path for path in found if re.fullmatch(r"card[0-9]+", path.parent.name)]
    folders.sort(key=lambda path: int(path.parent.name.removeprefix("card")))
    cards = [path for path in folders if _read(path / "vendor") == "0x1002" and (path / "mem_info_vram_total").exists()]
    return [
        (Gpu("amd", index, _read(path / "unique_id") or path.resolve().name, _read(path / "product_name")), path)
        for index, path in enumerate(cards)
    ]


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def host_key(etc: Path = Path("/etc")) -> str:
    """A few digits that tell this machine from others of its make, and nothing about it. Empty where nothing tells.

    Its name is not asked: a hash of a name is found by trying names.
    """
    identity = _read(etc / "machine-id") or " ".join(sorted(card.id for card in present()))
    return key(identity) if identity else ""


def key(identity: str) -> str:
    """A few digits that are the same for the same machine or card; its name itself is no record's business."""
    return hashlib.sha256(f"pti-bench {identity}".encode()).hexdigest()[:_DIGITS]
