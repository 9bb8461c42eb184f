"""`python -m pti_loop generate` with the real model: its text, its rates, its record, and what it refuses."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from math import isclose

import pytest

from bench.audit.command import main as audit
from bench.audit.record import read_record
from pti_loop.generate.command import main
from pti_loop.gguf.words import token_words
from tests.pti_loop.loops import opened

PROMPT = "The key to faster LLM inference is"


def figures(text: str) -> dict[str, list[float]]:
    """Tokens and tok/s of each line of the rates."""
    lines = re.findall(r"^(counted|distinct|aggregate|per answer) +([\d.]+) +([\d.]+)", text, re.MULTILINE)
    return {name: [float(tokens), float(rate)] for name, tokens, rate in lines}


def test_the_text_is_plain_decodings_and_the_rates_are_those_of_the_record(smollm2, model, tmp_path, capsys):
    folder = tmp_path / "run"
    assert main(["-m", str(smollm2), "-p", PROMPT, "--pti", "4", "-n", "24", "--plain", "--record", str(folder)]) == 0
    out = capsys.readouterr().out
    prompt = model.tokenize(PROMPT)
    with opened("autoregressive", model, n_ctx=128, n_predict=24) as once:
        tokens = once([prompt]).text()
    words = token_words(smollm2, tokens)
    assert out.startswith(b"".join(words[token] for token in tokens).decode()), "as the file's own vocabulary spells it"
    assert "the texts are one" in out
    said = figures(out)
    plain, ours = read_record(folder).trials
    assert said["counted"][0] == ours.counted and said["distinct"][0] == ours.distinct == plain.distinct == 23
    assert ours.counted > 3 * ours.distinct
    assert isclose(said["counted"][1], ours.counted / ours.seconds, rel_tol=1e-3, abs_tol=0.006)
    assert isclose(said["per answer"][1], ours.distinct / ours.seconds, rel_tol=1e-3, abs_tol=0.006)
    assert said["aggregate"] == said["distinct"]
    assert audit([str(folder)]) == 1
    judged = capsys.readouterr().out
    assert "DUPLICATE" in judged and "NOT_COMPARABLE" not in judged


def test_several_prompts_at_once_are_each_what_it_is_alone(smollm2, tmp_path, capsys):
    other = "One, two, three, one, two,"
    command = ["-m", str(smollm2), "-n", "12", "--record"]
    assert main([*command, str(tmp_path / "both"), "-p", PROMPT, "-p", other, "--pti", "2", "--method", "packed"]) == 0
    said = figures(capsys.readouterr().out)
    for number, prompt in enumerate((PROMPT, other)):
        alone = tmp_path / str(number)
        assert main([*command, str(alone), "-p", prompt, "--method", "autoregressive"]) == 0
        answers = [next(iter(read_record(folder).trials)).emits for folder in (tmp_path / "both", alone)]
        both, single = (
            [token for token, stream in zip(emits.token, emits.stream, strict=True) if stream == (number, 0)[place]]
            for place, emits in enumerate(answers)
        )
        assert both == single
    assert said["distinct"][0] == 22 and said["per answer"][0] == 11
    assert isclose(2 * said["per answer"][1], said["aggregate"][1], rel_tol=0.02)


def test_above_temperature_0_a_seed_says_the_same_again_and_one_prompt_gives_different_answers(smollm2, capsys):
    command = ["-m", str(smollm2), "-p", PROMPT, "--method", "packed", "--pti", "2", "-n", "10", "--temp", "1", "-s"]
    texts = []
    for seed in ("5", "5", "6"):
        assert main([*command, seed]) == 0
        texts.append(re.findall(r"^\d\| .*$", capsys.readouterr().out, re.MULTILINE))
    assert texts[0] == texts[1] != texts[2]
    first, second = (line[3:] for line in texts[0][:2])
    assert first != second


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["-m", "missing.gguf", "-p", "a"], "missing.gguf: no such file"),
        (["-m", "MODEL", "-p", ""], "the prompt is empty"),
        (["-m", "MODEL", "-p", "  \n"], "the prompt is empty"),
        (["-m", "MODEL"], "there is no prompt"),
        (["-m", "MODEL", "-f", "missing.txt"], "missing.txt cannot be read"),
        (["-m", "MODEL", "-p", "a", "--pti", "0"], "stagger takes 1 to 8 streams"),
        (["-m", "MODEL", "-p", "a", "--pti", "9"], "stagger takes 1 to 8 streams"),
        (["-m", "MODEL", "-p", "a", "--pti", "four"], "invalid int value: 'four'"),
        (["-m", "MODEL", "-p", "a", "--pti", "2", "--method", "lookup"], "lookup decodes one stream"),
        (["-m", "MODEL", "-p", "a", "--pti", "300", "--method", "packed"], "packed takes 1 to 256 streams"),
        (["-m", "MODEL", "-p", "a", "--method", "medusa"], "there is no method 'medusa'; choose from: autoregressive"),
        (["-m", "MODEL", "-p", "a", "-p", "b"], "2 prompts were given, and stagger takes one prompt"),
        (["-m", "MODEL", "-p", "a", "--with", "draft"], "write it as --with draft=5"),
        (["-m", "MODEL", "-p", "a", "--with", "draft=5"], "has no parameter 'draft'"),
        (["-m", "MODEL", "-p", "a", "--with", "emission=all"], "choose from: published, distinct"),
        (["-m", "MODEL", "-p", "a", "--temp", "-1"], "--temp -1 is no temperature"),
        (["-m", "MODEL", "-p", "a", "--temp", "nan"], "--temp nan is no temperature"),
        (["-m", "MODEL", "-p", "a", "-n", "1"], "-n 1 is below 2"),
        (["-m", "MODEL", "-p", "word " * 200, "-c", "100"], "-c holds 100"),
        (["-m", "MODEL", "-p", "a", "-n", "9000"], "the model was trained for"),
        (["-m", "MODEL", "-p", "a", "--method", "mtp"], "nextn"),
        (["-m", "FOLDER", "-p", "a"], "FOLDER"),
        (["-m", "TEXT", "-p", "a"], "is no"),
        (["-m", "MODEL", "-p", "a", "--record", "FOLDER"], "is there already"),
        (["-p", "a"], "required: -m/--model"),
        (["-m", "MODEL", "-p", "a", "--ptii", "2"], "unrecognized arguments: --ptii"),
    ],
)
def test_what_it_refuses_is_a_sentence_and_exit_code_2(words, said, smollm2, tmp_path, capsys):
    (tmp_path / "text").write_text("no model\n")
    places = {"MODEL": str(smollm2), "FOLDER": str(tmp_path), "TEXT": str(tmp_path / "text")}
    assert main([places.get(word, word) for word in words]) == 2
    told = capsys.readouterr()
    errors = [line for line in told.err.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1 and said.replace("FOLDER", str(tmp_path)) in errors[0]
    assert "Traceback" not in told.err and told.out == ""


def test_ctrl_c_ends_with_the_rates_so_far_and_keeps_the_record(smollm2, tmp_path):
    folder = tmp_path / "run"
    command = [sys.executable, "-m", "pti_loop", "generate", "-m", str(smollm2), "-p", PROMPT, "--pti", "2"]
    child = subprocess.Popen([*command, "-n", "2000", "--record", str(folder)], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE)  # fmt: skip
    assert child.stdout and child.stdout.read(40)
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=90)
    assert child.returncode == 130, err
    text = out.decode()
    stopped = re.search(r"stopped after (\d+) of 2000 tokens", text)
    assert stopped and 0 < int(stopped[1]) < 2000 and b"Traceback" not in err
    (trial,) = read_record(folder).trials
    assert figures(text)["distinct"][0] == trial.distinct
    assert trial.requested == 2000


def test_a_reader_that_goes_away_ends_it_quietly(smollm2):
    command = [sys.executable, "-m", "pti_loop", "generate", "-m", str(smollm2), "-p", PROMPT, "-n", "2000"]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert child.stdout and child.stdout.read(10)
    child.stdout.close()
    assert child.wait(timeout=90) == 141
    assert child.stderr and b"Traceback" not in child.stderr.read()


def test_help_and_unknown_commands():
    for words, code, said in ((["--help"], 0, "generate"), ([], 0, "generate"), (["generate", "-h"], 0, "--pti N"),
                              (["decode"], 2, "there is no command 'decode'")):  # fmt: skip
        done = subprocess.run([sys.executable, "-m", "pti_loop", *words], capture_output=True, text=True)
        assert done.returncode == code and said in done.stdout + done.stderr
