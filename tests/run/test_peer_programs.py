"""The peer programs' real output read back, runs in pairs, and every way in which a program can fail as one sentence.

The programs are replayed from `tests/data/peers`; our own loop runs on the toy engine, whose rate is known exactly.
"""

from __future__ import annotations

import itertools
import json
import shlex
import sys
from pathlib import Path

import pytest

from bench.errors import UserError
from bench.host.pins import load
from bench.plan.settings import Config
from bench.run import peer_programs
from bench.run.peer_programs import check_peers, compare_with_peers
from bench.run.prepared import prepare
from pti_loop.fake import FakeModel

DATA = Path(__file__).resolve().parents[1] / "data" / "peers"
MODEL = Path("/models/SmolLM2-135M-Instruct.Q4_1.gguf")
BENCH, BATCHED = DATA / "llama-bench.json", DATA / "llama-batched-bench.jsonl"
THEIRS = {("llama-bench", 1): 11.410478, ("llama-batched-bench", 1): 13.240929,
          ("llama-batched-bench", 2): 4.329364, ("llama-batched-bench", 4): 10.95783}  # fmt: skip
"""tok/s in the files."""


def program(folder: Path, name: str, body: str) -> str:
    """A program that logs its command line and then does what `body` says; `words` are its arguments."""
    path = folder / name
    lines = [f"#!{sys.executable}", "import sys", "words = sys.argv[1:]",
             f"open({str(folder / 'log')!r}, 'a').write(' '.join([{name!r}, *words]) + chr(10))", body]  # fmt: skip
    path.write_text("\n".join(lines) + "\n")
    path.chmod(0o755)
    return str(path)


def replay(folder: Path, name: str) -> str:
    """A program that prints what the real one printed, for the width it is asked for."""
    if name == "llama-bench":
        return program(folder, name, f"print(open({str(BENCH)!r}).read())")
    width = "width = int(words[words.index('-npl') + 1])"
    return program(folder, name, f"{width}\nprint(open({str(BATCHED)!r}).read().splitlines()[(0, 1, 0, 2)[width - 1]])")


def config_of(folder: Path, **over: object) -> Config:
    config = Config()
    config.engine.threads, config.engine.n_gpu_layers = 2, 0
    config.peers.llama_bench, config.peers.llama_batched_bench = (
        replay(folder, name) for name in ("llama-bench", "llama-batched-bench")
    )
    for key, value in over.items():
        setattr(config.peers, key, value)
    return config


class Logged(FakeModel):
    """The toy model; a context of ours is a line in the programs' own log."""

    folder: Path

    def context(self, spec):
        (self.folder / "log").open("a").write(f"ours {spec.n_seq_max} {spec.n_ctx}\n")
        return super().context(spec)


def toy(folder: Path) -> FakeModel:
    """10 ms a step of width 1, 4 ms more for each further row."""
    model = Logged(step_ns=lambda width: (6 + 4 * width) * 1_000_000)
    model.folder = folder
    return model


def compared(folder: Path, **over: object) -> list[dict]:
    return compare_with_peers(toy(folder), MODEL, config_of(folder, **over), lambda share, label: None)


def order(folder: Path) -> list[str]:
    """Who ran, in order: `ours` or the program, each with its width."""
    lines = [line.split() for line in (folder / "log").read_text().splitlines()]
    widths = [words[1] if words[0] == "ours" else dict(itertools.pairwise(words)).get("-npl", 1)
              for words in lines]  # fmt: skip
    return [f"{words[0]} {width}" for words, width in zip(lines, widths, strict=True)]


def test_both_rates_of_every_pair_and_width(tmp_path: Path) -> None:
    rows = compared(tmp_path, pairs=2)
    assert [(row["tool"], row["pair"], row["width"]) for row in rows] == [
        (tool, pair, width) for pair in (0, 1) for tool, width in THEIRS
    ]
    for row in rows:
        assert row["tok_s"] == pytest.approx(THEIRS[row["tool"], row["width"]])
        ours = row["width"] * 1000 / (6 + 4 * row["width"])
        assert row["ours_tok_s"] == pytest.approx(ours)
        assert row["ratio"] == pytest.approx(ours / row["tok_s"])
        assert row["n_gen"] == 64


class Chooses(Logged):
    """The toy model; the choice of tokens takes 0.5 ms a row."""

    def context(self, spec):
        ctx = super().context(spec)
        greedy = ctx.greedy

        def choose() -> list[int]:
            said = greedy()
            self.spend(500_000 * len(said))
            return said

        ctx.greedy = choose
        return ctx


def test_our_decodes_are_timed_apart_from_the_choice_of_tokens(tmp_path: Path) -> None:
    """The programs choose no token: on a large vocabulary that alone is a few per cent of a wide round."""
    model = Chooses(step_ns=lambda width: (6 + 4 * width) * 1_000_000)
    model.folder = tmp_path
    for row in compare_with_peers(model, MODEL, config_of(tmp_path, pairs=1), lambda share, label: None):
        width = row["width"]
        assert row["ours_decode_tok_s"] == pytest.approx(width * 1000 / (6 + 4 * width))
        assert row["ours_tok_s"] == pytest.approx(width * 1000 / (6 + 4.5 * width))


def test_the_first_of_a_pair_alternates(tmp_path: Path) -> None:
    compared(tmp_path, pairs=3, llama_batched_bench=None)
    assert order(tmp_path) == ["ours 1", "llama-bench 1", "llama-bench 1", "ours 1", "ours 1", "llama-bench 1"]


def test_a_pair_is_of_one_width(tmp_path: Path) -> None:
    compared(tmp_path, pairs=1, llama_bench=None)
    assert order(tmp_path) == [f"{who} {width}" for width in (1, 2, 4) for who in ("ours", "llama-batched-bench")]


def test_the_batched_program_runs_at_the_widths_that_are_asked_for(tmp_path: Path) -> None:
    rows = compared(tmp_path, pairs=1, widths=[2, 4, 1])
    assert [(row["tool"], row["width"]) for row in rows] == [
        ("llama-bench", 1), *(("llama-batched-bench", width) for width in (2, 4, 1))
    ]  # fmt: skip
    assert order(tmp_path)[2:] == [f"{who} {width}" for width in (2, 4, 1) for who in ("ours", "llama-batched-bench")]


def test_the_programs_get_our_settings(tmp_path: Path) -> None:
    config = config_of(tmp_path, pairs=1, n_gen=64)
    config.engine.type_k, config.engine.flash_attn, config.engine.n_ubatch = "q8_0", "on", 256
    compare_with_peers(toy(tmp_path), MODEL, config, lambda share, label: None)
    ours, bench, _, _, _, batched = (tmp_path / "log").read_text().splitlines()[:6]
    assert ours == "ours 1 80", "our context holds what theirs does"
    assert f"-m {MODEL} -p 0 -n 64 -r 1 -o json -t 2 -ngl 0 -b 512 -ub 256 -ctk q8_0 -ctv f16 -fa 1" in bench
    assert "-c 160 -npp 1 -ntg 64 -npl 2 -t 2 -tb 2 -ngl 0 -b 512 -ub 256 -ctk q8_0 -ctv f16 -fa on" in batched


def said(text: str) -> str:
    return f"print({text!r})"


REAL = json.loads(BENCH.read_text())


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (said(""), "printed no result of this run (nothing)"),
        (said("usage: llama-bench [options]"), "no result of this run (usage: llama-bench [options])"),
        (said(BENCH.read_text()[:-40]), "no result of this run ([ { \"build_commit\": \"0c1e570\""),
        (said("[]"), "no result"),
        (said('["a"]'), "no result"),
        (said(json.dumps([{**REAL[0], "n_gen": 32}])), "no result"),
        (said(json.dumps([{key: value for key, value in REAL[0].items() if key != "avg_ts"}])), "no result"),
        (said(json.dumps([{**REAL[0], "avg_ts": None}])), "no result"),
        (said(json.dumps([{**REAL[0], "avg_ts": 0}])), "a rate of 0.0 tok/s"),
        (said(json.dumps([{**REAL[0], "avg_ts": float("nan")}])), "a rate of nan tok/s"),
        (said(json.dumps([{**REAL[0], "model_filename": "/elsewhere/other.gguf"}])),
         "was given SmolLM2-135M-Instruct.Q4_1.gguf but measured other.gguf"),
        ("sys.exit(3)", "ended with 3: it printed nothing; try `"),
        (f"sys.stderr.write({(DATA / 'truncated.txt').read_text()!r}); sys.exit(1)",
         "E llama_model_load: error loading model: tensor 'token_embd.weight' data is not within the file bounds"),
        (f"sys.stderr.write({(DATA / 'abort.txt').read_text()!r}); import os; os.abort()",
         "ended with -6: common/common.cpp:2158: get_sub_batch: failed to add token"),
    ],
)  # fmt: skip
def test_what_a_program_does_wrong_is_a_sentence(tmp_path: Path, body: str, sentence: str) -> None:
    broken = program(tmp_path, "broken", body)
    with pytest.raises(UserError) as caught:
        compared(tmp_path, llama_bench=broken, llama_batched_bench=None)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "`make peers`" in str(caught.value) or f"try `{broken} -m {MODEL} -p 0" in str(caught.value)


@pytest.mark.parametrize("line", ["", "{", '{"pl": 1}', BATCHED.read_text().splitlines()[1]])
def test_a_table_without_this_width_is_a_sentence(tmp_path: Path, line: str) -> None:
    broken = program(tmp_path, "broken", said(line))
    with pytest.raises(UserError, match="printed no result of this run"):
        compared(tmp_path, llama_bench=None, llama_batched_bench=broken)


def test_a_program_that_is_no_program_is_a_sentence(tmp_path: Path) -> None:
    text = tmp_path / "notes"
    text.write_text("no program at all")
    text.chmod(0o755)
    with pytest.raises(UserError, match=r"does not start \(Exec format error\)"):
        compared(tmp_path, llama_bench=str(text), llama_batched_bench=None)
    with pytest.raises(UserError, match=r"does not start \(No such file or directory\)"):
        compared(tmp_path, llama_bench=str(tmp_path / "gone"), llama_batched_bench=None)


def versioned(folder: Path, text: str) -> Config:
    config = Config()
    config.peers.llama_bench = program(folder, "llama-bench", said(text))
    return config


def test_a_program_of_the_engine_s_build_is_found_and_kept_by_its_place(tmp_path: Path, monkeypatch) -> None:
    config = versioned(tmp_path, (DATA / "version.txt").read_text())
    monkeypatch.chdir(tmp_path)
    config.peers.llama_bench = "./llama-bench"
    check_peers(config)
    assert config.peers.llama_bench == str(tmp_path / "llama-bench")
    monkeypatch.setenv("PATH", str(tmp_path))
    config.peers.llama_bench = "llama-bench"
    check_peers(config)
    assert config.peers.llama_bench == str(tmp_path / "llama-bench")


def test_the_engine_s_commit_is_the_pinned_one() -> None:
    assert load().build["cmake.define.LLAMA_BUILD_COMMIT"].startswith(peer_programs.engine_commit())


@pytest.mark.parametrize(
    ("text", "sentence"),
    [("version: 4120 (build 9, commit 1234567)", "is of llama.cpp 1234567 and the engine of 0c1e57"),
     ("error: invalid parameter", "names no commit of llama.cpp"), ("", "names no commit")],
)  # fmt: skip
def test_a_program_of_another_build_is_refused_before_anything_runs(tmp_path: Path, text: str, sentence: str) -> None:
    path = versioned(tmp_path, text).peers.llama_bench
    with pytest.raises(UserError, match=sentence):
        prepare([f"peers.llama_bench={shlex.quote(path)}", f"results={tmp_path / 'results'}"])


@pytest.mark.parametrize("mode", [None, 0o644])
def test_a_program_that_is_missing_or_may_not_run_is_refused(tmp_path: Path, mode: int | None) -> None:
    path = tmp_path / "llama-bench"
    if mode:
        path.write_text("#!/bin/sh\n")
        path.chmod(mode)
    config = Config()
    config.peers.llama_batched_bench = str(path)
    with pytest.raises(UserError, match=r"peers.llama_batched_bench=.*build it with `make peers`"):
        check_peers(config)


def test_a_result_that_the_program_s_own_log_lost_is_asked_for_again(tmp_path: Path) -> None:
    """Seen of llama-batched-bench on a small model: exit code 0, and nothing printed."""
    row = BATCHED.read_text().splitlines()[0]
    quick = program(tmp_path, "quick", f"if len(open({str(tmp_path / 'log')!r}).readlines()) > 2: print({row!r})")
    config = config_of(tmp_path, llama_batched_bench=quick)
    assert peer_programs._batched_bench(config, MODEL, 1) == THEIRS["llama-batched-bench", 1]
    assert len((tmp_path / "log").read_text().splitlines()) == 3


def test_auto_is_the_program_beside_a_build_s_libraries_or_none(tmp_path: Path, monkeypatch) -> None:
    """A campaign names no folder, and each build is compared with its own program."""
    monkeypatch.setattr("bench.host.builds.folder_of", lambda build: tmp_path)
    config = Config()
    config.peers.llama_bench = config.peers.llama_batched_bench = peer_programs.AUTO
    program(tmp_path, "llama-bench", said((DATA / "version.txt").read_text()))
    check_peers(config)
    assert config.peers.llama_bench == str(tmp_path / "llama-bench")
    assert config.peers.llama_batched_bench is None, "this build came without"


def test_auto_of_the_usual_build_is_what_make_peers_built(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "peers").mkdir()
    monkeypatch.setattr("sys.prefix", str(tmp_path))
    config = versioned(tmp_path / "peers", (DATA / "version.txt").read_text())
    config.peers.llama_bench = peer_programs.AUTO
    check_peers(config)
    assert config.peers.llama_bench == str(tmp_path / "peers" / "llama-bench")
