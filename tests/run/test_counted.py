"""A cell of counters. There is no GPU in the tests: a program that prints what a profiler did stands in for one."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from bench.host.devices import Gpu
from bench.plan.cells import _counter_values
from bench.plan.compose import compose_points
from bench.run import counted
from kernels.profilers import PROFILERS
from pti_loop.engine import EngineError, Unsupported
from tests.conftest import REPOSITORY

NVIDIA, AMD = Gpu("nvidia", 0, "GPU-1", "H200"), Gpu("amd", 0, "0x1", "MI50")
CAPTURED = REPOSITORY / "results/reference/h200/kernels/counters/ncu_mul_mat_vec_q_Q6_K_n4_17408x5120.csv"
ROCPROF = """
import sys, subprocess
words = sys.argv[1:]
out, program = words[words.index("-o") + 1], words[words.index("-o") + 2 :]
counters = open(words[words.index("-i") + 1]).read().split(":")[1].split()
done = subprocess.run(program)
lines = ["Index,KernelName,gpu-id,VGPR," + ",".join(counters) + ",BeginNs,EndNs"]
decode = ["mul_mat_vec_q<(ggml_type)8, 1>(int) [clone .kd]", "rms_norm_f32<256>(int) [clone .kd]"]
names = ["load", "prompt"] + decode * 4
for place, name in enumerate(names):
    lines.append(f'{place},"{name}",0,32,' + ",".join(str(10.0 + place) for _ in counters) + f",{place}000,{place}500")
open(out, "w").write("\\n".join(lines) + "\\n")
sys.exit(done.returncode)
"""


@pytest.fixture(scope="module")
def mini(tmp_path_factory) -> Path:
    from bench.synth import command

    path = tmp_path_factory.mktemp("model") / "mini.gguf"
    assert command.main(["hybrid-mini", str(path)]) == 0
    return path


def job_of(path: Path, *overrides: str):
    given = ["model=gguf", f"model.path={path}", "engine.threads=1", "measure.counted_widths=[1,2]", *overrides]
    (config,) = compose_points(["counters=auto", *given])
    return config, {"config": _counter_values(config), "model_path": str(path), "cell": "c"}


def program(tmp_path: Path, text: str) -> str:
    path = tmp_path / "tool"
    path.write_text(f"#!{sys.executable}\n{text}")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize(
    ("cards", "asked", "installed", "found"),
    [([NVIDIA], "auto", {"ncu"}, "ncu"), ([AMD], "auto", {"rocprof", "rocprofv3"}, "rocprofv3"),
     ([AMD], "auto", {"rocprof"}, "rocprof"), ([AMD], "rocprof", {"rocprof", "rocprofv3"}, "rocprof")],
)  # fmt: skip
def test_the_profiler_is_that_of_the_gpu(cards, asked, installed, found, monkeypatch):
    monkeypatch.setattr(counted.devices, "visible", lambda: cards)
    monkeypatch.setattr(counted.profilers, "program", lambda name: f"/bin/{name}" if name in installed else None)
    assert counted.choose(asked) == (PROFILERS[found], f"/bin/{found}")


@pytest.mark.parametrize(
    ("cards", "asked", "said"),
    [([], "auto", "no GPU is visible"), ([NVIDIA], "rocprof", "take counters=ncu"),
     ([AMD], "auto", "there is no rocprofv3 and no rocprof on the PATH"), ([NVIDIA], "ncu", "there is no ncu on")],
)  # fmt: skip
def test_where_nothing_can_count_the_reason_is_told(cards, asked, said, monkeypatch):
    monkeypatch.setattr(counted.devices, "visible", lambda: cards)
    monkeypatch.setattr(counted.profilers, "program", lambda name: None)
    with pytest.raises(Unsupported, match=said):
        counted.choose(asked)


def test_a_model_on_the_cpu_has_no_such_kernels(mini):
    config, job = job_of(mini, "engine.n_gpu_layers=0")
    with pytest.raises(Unsupported, match="decodes on the CPU"):
        counted.measure(config, job, lambda share, label: None)


def test_decodes_are_timed_and_their_kernels_told_from_what_came_before(mini, tmp_path, monkeypatch):
    """The decodes are real ones in child processes, what the profiler saw of them is not."""
    config, job = job_of(mini)
    monkeypatch.setattr(counted, "offloads", lambda config: True)
    monkeypatch.setattr(counted, "choose", lambda asked: (PROFILERS["rocprof"], program(tmp_path, ROCPROF)))
    heard: list[str] = []
    facts, tables = counted.measure(config, job, lambda share, label: heard.append(label))
    timed = facts["decodes"]
    assert [(row["width"], row["graphs"]) for row in timed] == [(1, True), (2, True), (1, False), (2, False)]
    pairs = [pair for row in timed for pair in zip(row["queued_ns"], row["ns"], strict=True)]
    assert len(pairs) == 4 * counted.TIMED and all(0 < queued <= whole for queued, whole in pairs)
    assert (facts["tool"], facts["left_out"], facts["model"]["quantization"]) == ("rocprof", [], "Q8_0")
    rows = tables["launches"]
    assert {(row.width, row.decode) for row in rows} == {(w, d) for w in (1, 2) for d in range(3)}
    assert [row.kernel for row in rows[:2]] == ["mul_mat_vec_q<(ggml_type)8, 1>", "rms_norm_f32<256>"]
    first = rows[0]  # the fifth launch: one decode before those that count is warm-up
    assert (first.us, first.dram_bytes, first.dram_write_bytes, first.l2_hit_rate) == (0.5, 14 * 1024, 14 * 1024, 0.5)
    assert {"decodes without a profiler", "rocprof, width 1", "rocprof, width 2"} == set(heard)


def test_what_ncu_really_prints_becomes_launches_of_a_decode(mini, tmp_path):
    text = f"import sys\nassert '--profile-from-start' in sys.argv\nprint(open({str(CAPTURED)!r}).read())"
    _, job = job_of(mini)
    child = counted._Child(tmp_path, job, lambda share, label: None)
    tool = PROFILERS["ncu"]
    found = child.profiled(tool, program(tmp_path, text), tool.passes[0], 4)
    (decode,) = counted._decodes_of(tool, [found])
    made = [counted._launch(4, 0, order, one) for order, one in enumerate(decode)]
    row = next(row for row in made if row.kernel == "mul_mat_vec_q<14, 4, 0, 0, 0>")
    assert 70e6 < row.dram_bytes < 80e6 and 40 < row.us < 90 and 0 < row.l2_hit_rate < 1


@pytest.mark.parametrize(
    ("text", "kind", "said"),
    [("print('==ERROR== ERR_NVGPUCTRPERM - no permission'); raise SystemExit(1)", Unsupported, "administrators"),
     ("import sys; print('==ERROR== Failed to find metric x', file=sys.stderr); raise SystemExit(9)",
      counted.KernelError, "ended with 9: ==ERROR== Failed to find metric x"),
     ("print('==WARNING== No kernels were profiled.')", counted.KernelError, "no line is the header")],
)  # fmt: skip
def test_a_profiler_that_does_not_count_is_told_in_its_words(text, kind, said, mini, tmp_path):
    _, job = job_of(mini)
    child = counted._Child(tmp_path, job, lambda share, label: None)
    with pytest.raises(kind, match=said):
        child.profiled(PROFILERS["ncu"], program(tmp_path, text), ("dram__bytes_read.sum",), 1)


def test_a_program_that_hangs_is_ended_with_what_it_started(mini, tmp_path, monkeypatch):
    _, job = job_of(mini)
    monkeypatch.setattr(counted, "LIMIT_S", 0.5)
    marked = tmp_path / "pid"
    text = (f"import subprocess, sys, time\nchild = subprocess.Popen([sys.executable, '-c', 'import time; "
            f"time.sleep(60)'])\nopen({str(marked)!r}, 'w').write(str(child.pid))\ntime.sleep(60)")  # fmt: skip
    child = counted._Child(tmp_path, job, lambda share, label: None)
    with pytest.raises(counted.KernelError, match="did not end"):
        child.profiled(PROFILERS["ncu"], program(tmp_path, text), ("dram__bytes_read.sum",), 1)
    assert not Path(f"/proc/{marked.read_text()}/exe").exists()


def test_decodes_that_fail_say_why(tmp_path):
    _, job = job_of(tmp_path / "none.gguf")
    with pytest.raises(EngineError, match="decoding without a profiler failed"):
        counted._Child(tmp_path, json.loads(json.dumps(job)), lambda share, label: None).timed([1], True)
