"""The command line: verbs, exit codes, start-up, and the whole way from records to the report."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bench.cli import USAGE, VERBS, main

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("words", [[], ["--help"], ["help"]])
def test_help_names_every_verb(words, capsys):
    assert main(words) == 0
    assert capsys.readouterr().out == USAGE
    for verb in VERBS:
        assert f"  {verb} " in USAGE


@pytest.mark.parametrize("verb", ["sweep", "report", "figures", "all", "doctor", "synth", "advise"])
def test_every_verb_has_help(verb, capsys):
    assert main([verb, "--help"]) == 0
    assert "usage: python -m bench" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [(["swep"], "did you mean 'sweep'"), (["sweep", "temprature=0"], "did you mean 'temperature'"),
     (["report", "result=x"], "did you mean 'results'"), (["report", "results=/no/such"], "run `make bench`"),
     (["audit", "/no/such/file"], "/no/such/file"), (["advise", "modle=x"], "did you mean 'model'"),
     (["advise", "results=/no/such"], "run `python -m bench sweep model=smollm2-135m")],
)  # fmt: skip
def test_bad_input_is_one_line_and_code_2(words, sentence, capsys):
    assert main(words) == 2
    printed = capsys.readouterr()
    assert printed.err.startswith("error: ")
    assert sentence in printed.err
    assert printed.err.count("\n") == 1
    assert printed.out == ""


@pytest.mark.parametrize("verb", ["report", "sweep", "all"])
def test_a_python_without_the_packages_is_one_line_and_code_2(verb):
    """`-S` leaves the environment's packages out, as the system's own Python would."""
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from bench.cli import main; sys.exit(main([{verb!r}]))"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True)
    assert done.returncode == 2, done.stderr
    assert "lacks " in done.stderr and "run `make setup`" in done.stderr and done.stderr.count("\n") == 1


def test_a_typo_in_a_claim_sheet_is_named(tmp_path, capsys):
    text = (ROOT / "tests" / "judge" / "claims" / "example_sheet.yaml").read_text()
    (tmp_path / "sheet.yaml").write_text(text.replace("metric:", "metrik:", 1))
    (tmp_path / "results").mkdir()
    assert main(["report", f"claims={tmp_path / 'sheet.yaml'}", f"results={tmp_path / 'results'}"]) == 2
    assert "did you mean 'metric'" in capsys.readouterr().err


def test_help_imports_nothing_heavy():
    """Start-up time is an import list: what is not imported costs nothing."""
    code = "import sys; import bench.cli; bench.cli.main(['--help']); print(sorted(sys.modules))"
    printed = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in ("numpy", "pandas", "hydra", "omegaconf", "scipy", "matplotlib", "llama_cpp", "rich", "yaml"):
        assert f"'{name}'" not in printed, f"--help imports {name}"


@pytest.mark.parametrize(
    ("module", "forbidden"),
    [("bench.run.worker", ("pandas", "hydra", "matplotlib", "scipy")),
     ("bench.run.sweep", ("pandas", "matplotlib", "scipy", "llama_cpp"))],
)  # fmt: skip
def test_long_lived_processes_stay_light(module, forbidden):
    code = f"import sys; import {module}, bench.run.contrast, bench.run.step_times; print(sorted(sys.modules))"
    printed = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in forbidden:
        assert f"'{name}'" not in printed


def test_audit_of_the_published_ledger(tmp_path, capsys):
    """79 rounds of four tokens and the first one, at 317 / 38.1 s."""
    seconds = 317 / 38.1
    lines = ["run,stream,position,token,round,source,t_ns", "0,0,0,5,-1,prefill,0"]
    for number in range(79):
        t = int((number + 1) / 79 * seconds * 1e9)
        lines += [f"0,0,{number + 1 + i},7,{number},verified,{t}" for i in range(4)]
    path = tmp_path / "ledger.csv"
    path.write_text("\n".join(lines) + "\n")
    assert main(["audit", str(path), "--claim", "38.1"]) == 1
    printed = capsys.readouterr().out
    for said in ("317", "83", "10.0", "DUPLICATE"):
        assert said in printed
