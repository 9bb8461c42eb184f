"""Cells of servers that are real programs: measured, stored, read back and judged; or failed with one sentence."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from bench.judge import judge
from bench.plan.cells import cells
from bench.plan.compose import compose_points
from bench.plan.served import name_digest
from bench.records.cells import load_cell, write_cell
from bench.report.page.trial_sections import servers, trials
from bench.report.tables.conditions import CellIndex
from bench.report.tables.csv_files import Ordered
from bench.report.terminal.trials import memory_lines, trial_lines
from bench.run.served.cell import measure_served
from bench.run.worker import config_of
from pti_loop.engine import EngineError

FILE = SimpleNamespace(
    n_vocab=49152, n_params=0, architecture="toy", file_bytes=3, synthetic=False, sha256=lambda: "w",
    quantization="Q4_1", tensor_bytes=2, step_bytes=1, kv_bytes_per_token=lambda *_: 8,
    state_bytes_per_sequence=lambda: 0)  # fmt: skip
SHORT = ("prompts=short", "measure=quick", "measure.classes=[prose,structured]", "n_predict=12", "engine.threads=1")


def planned(tmp_path, base, other, *more):
    words = [f"engine.server={base}", f"treatment.engine.server={other}"] if other else [f"engine.server={base}"]
    given = [*SHORT, *words, "model=gguf", "model.path=/toy.gguf", *more]
    (config,) = compose_points(given)
    weights = {Path("/toy.gguf"): "w", Path("m"): name_digest("m")}
    (cell,) = cells([config], tmp_path, "toy", "llama-server-0c1e57098", weights)
    return config, cell


def measured(config, cell, silence=20.0):
    job = {"builds": cell.builds, "model_path": str(cell.model_path), "cell": cell.id, "silence": silence}
    addresses = all(command.startswith("http") for command in cell.builds.values())
    file = None if addresses else FILE
    return measure_served(config_of(cell.config), file, job, lambda *_: None, lambda found, _: found)


def stored(config, cell, found):
    facts, tables = found
    engine = {"build": "llama-server-0c1e57098", "llama_cpp_commit": "0c1e57098", "backends": ["CPU"]}
    env = {"engine": engine | {"server": cell.config["engine"]["server"]},
           "treatment": engine | {"server": cell.config["treatment"]["engine"].get("server", "")},
           "machine": {"name": "toy", "gpus": []}}  # fmt: skip
    facts.pop("log")
    write_cell(cell.folder, config=cell.config, env=env, facts=facts, tables=tables,
               status={"state": "done", "reason": "", "seconds": 600.0})  # fmt: skip
    return load_cell(cell.folder)


def judged(tmp_path, base, other, *more):
    config, cell = planned(tmp_path, base, other, *more)
    return judge([stored(config, cell, measured(config, cell))])


def control(found, name):
    (one,) = [row for row in found.controls if row["control"] == name]
    return one


def sound(found):
    return [(row["control"], row["sentence"]) for row in found.controls if row["severity"] == "void"
            and row["control"] not in ("again", "stall")]  # fmt: skip


def row_of(found):
    return next(row for row in found.trials if row["prompt_class"] == "all" and row["scope"] == "answer")


def test_two_commands_are_a_trial_that_names_its_replay(program, tmp_path) -> None:
    found = judged(tmp_path, program, f"{program} --guesses")
    assert sound(found) == []
    row = row_of(found)
    assert (row["difference"], row["was"], row["became"]) == ("server", "small_server.py", "small_server.py --guesses")
    assert (row["lossless"], row["compared_by"], row["loaded"]) == ("identical", "token ids", "a fresh server a run")
    assert "a replay is faster than an answer" in control(found, "memory")["sentence"]
    assert "a replay is faster" in memory_lines(found.controls)[0]
    assert "output identical" in trial_lines(found.trials)[0]
    by = {(one["arm"], one["when"]): one for one in found.servers}
    assert (by["baseline", "blocks"]["drafted"], by["kept", "again"]["drafted"]) == (None, 40)
    assert by["kept", "again"]["over_first"] > 1.5 and by["carry", "directly again"]["drafted"] == 8
    assert by["kept", "cold"]["started"] == "kept" and by["treatment", "blocks"]["started"] == "fresh for each run"
    index = CellIndex(found.cells)
    for section in (trials, servers):
        assert section(Ordered(found), index)


def test_what_a_server_does_not_tell_is_absent(program, tmp_path) -> None:
    config, cell = planned(tmp_path, program, f"{program} --guesses")
    record = stored(config, cell, measured(config, cell))
    assert len(record.rounds["run"]) == len(record.draws["run"]) == 0
    assert "bandwidth" not in record.facts and "rollback" not in record.facts
    assert not np.isfinite(record.runs["energy_j"]).any() and set(record.runs["window_decodes"]) == {-1}
    assert len(record.served["run"]) == len(record.runs["run"])
    assert str(tmp_path) not in (cell.folder / "cell.yaml").read_text()


def test_servers_that_are_kept_and_remember_are_void(program, tmp_path) -> None:
    found = judged(tmp_path, program, f"{program} --guesses", "engine.kept=true")
    assert [name for name, _ in sound(found)] == ["memory"]
    assert row_of(found)["loaded"] == "servers that are kept"


def test_several_requests_at_once_are_answers_of_their_own(program, tmp_path) -> None:
    config, cell = planned(tmp_path, program, f"{program} --nap 0.002", "streams=2")
    assert "-np 2" in cell.builds["baseline"] and "-c 1024" in cell.builds["treatment"]
    found = judge([stored(config, cell, measured(config, cell))])
    assert sound(found) == []
    rows = {row["scope"]: row for row in found.trials if row["prompt_class"] == "all"}
    assert rows["aggregate"]["tok_s"] == pytest.approx(2 * rows["answer"]["tok_s"])
    assert rows["aggregate"]["speedup"] == pytest.approx(rows["answer"]["speedup"]) and rows["answer"]["speedup"] < 1


def test_an_answer_that_differs_by_more_than_rounding_is_divergent(program, tmp_path) -> None:
    found = judged(tmp_path, program, f"{program} --wrong differs")
    assert sound(found) == []
    row = row_of(found)
    assert row["lossless"] == "divergent" and row["identical_share"] == 0


def test_addresses_without_ids_are_compared_by_their_text(small, tmp_path) -> None:
    words = ("--openai", "--names", "m")
    found = judged(tmp_path, small(*words), small(*words), "model.served=m")
    assert sound(found) == []
    row = row_of(found)
    assert (row["lossless"], row["compared_by"], row["loaded"]) == ("identical", "text", "servers at addresses")
    assert control(found, "lossless")["severity"] == "warning" and "by its text alone" in trial_lines(found.trials)[0]
    assert all(one["own_tok_s"] != one["own_tok_s"] for one in found.servers)


def test_a_setting_of_the_engine_is_an_option_of_the_same_server(program, tmp_path) -> None:
    config, cell = planned(tmp_path, program, "", "treatment.engine.type_k=q8_0")
    assert "-ctk q8_0" in cell.builds["treatment"] and "-ctk" not in cell.builds["baseline"]
    assert cell.config["treatment"]["declaration"]["words"] == "type_k=q8_0"
    assert config.profile is False and cell.kind == "served"


@pytest.mark.parametrize(("way", "says"), [
    ("dies:6", "the treatment's server ended with SIGKILL while it was asked"),
    ("exits", "the treatment's server ended with code 1 before it answered: error: failed to load model"),
    ("refuses", "the treatment's server answers /completion with HTTP 503: 'no slot is free'"),
    ("rubbish", "the treatment's server streams what is no event"),
    ("hangs", "the treatment's server said nothing for 2 s"),
    ("miscounts", "the treatment's server says that it made 11 tokens and sends 12"),
    ("model", "the treatment's server has loaded other.gguf, and toy.gguf was asked for"),
    ("vocabulary", "the treatment's server has loaded a model with n_vocab 49153, and toy.gguf has 49152"),
])  # fmt: skip
def test_a_server_that_goes_wrong_fails_its_cell_with_a_sentence(program, tmp_path, way, says) -> None:
    config, cell = planned(tmp_path, program, f"{program} --wrong {way}", "measure.classes=[prose]")
    with pytest.raises(EngineError, match=says):
        measured(config, cell, silence=4.0 if way == "hangs" else 30.0)


def test_a_server_that_answers_as_another_model_later_on_is_told(program, tmp_path) -> None:
    config, cell = planned(tmp_path, program, f"{program} --wrong renamed", "engine.kept=true")
    with pytest.raises(EngineError, match=r"answers as the model another, and toy\.gguf was asked for"):
        measured(config, cell)
