"""Where a record comes from, against files and repositories made for the test."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import psutil

from bench.host import cpus, provenance
from bench.host.pins import ROOT


def write(path: Path, content: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    return path


def test_machine_name_is_made_of_gpu_cpu_and_cores() -> None:
    cpu = "Intel(R) Xeon(R) CPU E5-2680 v4 @ 2.40GHz"
    assert provenance.machine_id(cpu, 2, []) == "intel-xeon-e5-2680-v4-2c"
    assert provenance.machine_id("AMD EPYC", 16, [{"name": "NVIDIA H200"}]) == "nvidia-h200-amd-epyc-16c"
    facts = provenance.machine("lab")
    assert facts["name"] == "lab"
    assert facts["cores"] == cpus.available_cpus()
    assert facts["memory_bytes"] <= psutil.virtual_memory().total


def test_amd_gpus_from_sysfs(tmp_path: Path) -> None:
    device = tmp_path / "class/drm/card0/device"
    for name, content in (("vendor", "0x1002\n"), ("device", "0x66a1\n"), ("mem_info_vram_total", "34342961152\n")):
        write(device / name, content)
    write(tmp_path / "class/drm/card1/device/vendor", "0x1a03\n")
    (gpu,) = provenance.gpus(tmp_path)
    assert gpu == {"name": "AMD GPU 66a1", "vendor": "amd", "pci_id": "66a1", "memory_bytes": 34342961152}


def test_backends_from_devices_and_system_info() -> None:
    assert provenance.backends("CPU : SSE3 = 1 | AVX = 1", ["CPU"]) == ["CPU"]
    cuda = "CUDA : ARCHS = 900 | USE_GRAPHS = 1 | CPU : SSE3 = 1"
    assert provenance.backends(cuda, ["CUDA0", "CUDA1", "CPU"]) == ["CUDA", "CPU"]
    assert provenance.backends("ROCm : X = 1 | CPU : A = 1", []) == ["HIP", "CPU"]


def test_commit_is_completed_only_when_it_is_the_pinned_one() -> None:
    assert provenance.full_commit("0c1e570-dirty") == "0c1e57098-dirty", "changed sources are not the pinned ones"
    assert provenance.full_commit("0c1e570") == "0c1e57098"
    assert provenance.full_commit("0c1e57098") == "0c1e57098"
    assert provenance.full_commit("abcdef0-dirty") == "abcdef0-dirty"
    assert provenance.full_commit("") == ""


def test_harness_commit_and_its_dirty_mark(tmp_path: Path) -> None:
    assert provenance.harness_commit(tmp_path) == "unknown"
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b"]
    write(tmp_path / "code.py", "1")
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "a"]):
        subprocess.run([*git, *words], check=True)
    clean = provenance.harness_commit(tmp_path)
    assert re.fullmatch(r"[0-9a-f]{12}", clean)
    write(tmp_path / "results/machine/cell/status.json", "{}")
    assert provenance.harness_commit(tmp_path) == clean, "a run's own results do not make the code dirty"
    write(tmp_path / "code.py", "2")
    assert provenance.harness_commit(tmp_path) == clean + "-dirty"
    inner = tmp_path / "inner"
    inner.mkdir()
    assert provenance.harness_commit(inner) == "unknown", "another project's repository around it says nothing"


def test_environment_is_complete_and_plain() -> None:
    facts = json.loads(json.dumps(provenance.environment(threads=2)))
    assert set(facts) == {"machine", "engine", "python", "packages", "time_utc", "threads", "host", "harness_commit"}
    assert set(facts["machine"]) >= {"name", "cpu", "cores", "memory_bytes", "os", "gpus"}
    engine = facts["engine"]
    assert engine["binding"] == "llama-cpp-python " + facts["packages"]["llama-cpp-python"]
    assert engine["llama_cpp_commit"] == "0c1e57098"
    assert re.fullmatch(r"[\d.]+-0c1e57098-\w+\+[0-9a-f]{8}", engine["build"])
    assert engine["backends"][-1] == "CPU"


def test_host_modules_keep_the_worker_light() -> None:
    modules = "bandwidth, clocks, cpus, device_lock, memory, provenance"
    code = f"import sys; from bench.host import {modules}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    loaded = set(done.stdout.split())
    assert not loaded & {"pandas", "scipy", "matplotlib", "llama_cpp", "hydra"}
