"""A setting or a build on trial, on the toy engine and through the judge: one difference, named, graded, or void."""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path

import pytest

from bench.build_name import digest
from bench.judge import judge
from bench.judge.claims.facts import load_facts
from bench.judge.claims.sheet import load_sheet
from bench.judge.claims.verdicts import judge_claims
from bench.plan.cells import cells
from bench.plan.config import CONFIGS
from bench.plan.settings import TreatedEngineConfig, TreatmentConfig
from bench.records.cells import load_cell, write_cell
from bench.report.page.trial_sections import trials
from bench.report.tables.conditions import CellIndex
from bench.report.tables.csv_files import Ordered
from bench.report.terminal.trials import trial_lines
from bench.run.arms import Arms
from bench.run.contrast import Contrast
from pti_loop.fake import FakeModel
from tests.run.test_contrast import ENGINE, MS, PROMPTS, config

FILES = {"libllama.so": "a" * 64}
OTHER = f"0.3.36-0c1e57098-cpu+{digest(FILES)}"
KEPT = {"model": {"name": "toy", "step_bytes": 1_000_000, "kv_bytes_per_token": 8, "state_bytes_per_sequence": 0,
                  "quantization": "F32", "synthetic": False},
        "bandwidth": {"read_gb_s": 20.0, "repeats": [19.0, 20.0], "threads": 1, "bytes": 1_000_000},
        "memory": {}, "process": {"draws": "argmax"}}  # fmt: skip


def on_trial(**engine):
    settings = config("autoregressive", 1, n_predict=12)
    settings.treatment = TreatmentConfig(TreatedEngineConfig(**engine))
    return settings


def measured(settings, arms=None, model=None, builds=None):
    name = planned(Path(), settings, builds).id
    return Contrast(model, settings, PROMPTS, name, lambda: (2000.0, 50.0), lambda *_: None, arms).run()


def planned(folder: Path, settings, builds=None):
    """The cell as a sweep plans it."""
    settings.model.path = "/toy.gguf"
    settings.prompts.items = [{"id": p.id, "class": p.kind, "text": p.id} for p in PROMPTS]
    settings.profile = False
    (cell,) = cells([settings], folder, "toy", "toy", {Path("/toy.gguf"): "w"}, builds)
    return cell


def stored(tmp_path: Path, settings, result, env=None, builds=None):
    """The cell, written and read back."""
    cell = planned(tmp_path, settings, builds)
    result.facts["stopping"]["seconds"] = 50.0  # the toy's clock is no machine's
    write_cell(cell.folder, config=cell.config, env=ENGINE | (env or {}), facts=KEPT | result.facts,
               status={"state": "done", "reason": "", "seconds": 60.0}, tables=result.tables)  # fmt: skip
    return load_cell(cell.folder)


class Half:
    """Arms of two models, as two builds are: the treatment takes `share` of the time, and may say other tokens."""

    def __init__(self, text, settings, share=0.5, seed=0, **faults) -> None:
        self.clock = FakeModel(step_ns=lambda w: 10 * MS)
        sides = {"baseline": 1.0, "treatment": share}
        self.sides = {
            name: Arms(FakeModel(step_ns=lambda w, part=part: int(part * 10 * MS),
                                 seed=seed if name == "treatment" else 0), settings, text,
                       lambda: (2000.0, 50.0), None, ("baseline", "again") if name == "baseline" else ("treatment",))
            for name, part in sides.items()
        }  # fmt: skip
        own = self.sides["treatment"]
        self.method, self.settings, self.rollback = own.method, own.settings, own.rollback
        self.guesses, self.guessing = own.guesses, own.guessing
        self.shape, self.controls = own.shape, own.controls
        self.now, self.made, self.memory = 0, 1, {}

    def of(self, arm):
        return self.sides["baseline" if arm in ("baseline", "again", "reference") else "treatment"]

    def run(self, arm, *more, **named):
        return self.of(arm).run(arm, *more, **named)

    def measure(self, arm, *more):
        run, trace = self.of(arm).measure(arm, *more)
        # Two toys have a clock each; two processes of one machine share theirs.
        moved = self.now + 1000 - run.begin_ns
        self.now = run.finish_ns + moved
        names = ("start_ns", "end_ns", "begin_ns", "finish_ns")
        trace._emits = [(*row[:5], row[5] + moved) for row in trace._emits]
        return replace(run, idle_cpus=0.0, **{name: getattr(run, name) + moved for name in names}), trace

    def replay(self, arm, *more):
        return self.of(arm).replay(arm, *more)

    def facts(self):
        return {arm: facts for side in self.sides.values() for arm, facts in side.facts().items()}

    def close(self) -> None:
        for side in self.sides.values():
            side.close()


@pytest.fixture(scope="module")
def build_cell(tmp_path_factory):
    """A build that takes half the time, in two sides."""
    settings = on_trial(build="native")
    result = measured(settings, lambda text: Half(text, settings), builds={"native": OTHER})
    result.facts["sides"] = "together"
    env = {"treatment": {"build": OTHER, "libraries": FILES, "llama_cpp_commit": ""}}
    return stored(tmp_path_factory.mktemp("build"), settings, result, env, {"native": OTHER})


def checks(findings, severity="void") -> dict[str, str]:
    return {row.control: row.sentence for row in findings.controls if row.severity == severity}


def test_a_build_is_told_in_a_table_of_its_own_under_its_own_name(build_cell):
    findings = judge([build_cell])
    assert not checks(findings), checks(findings)
    row = next(row for row in findings.trials if row.prompt_class == "all")
    assert row.speedup == pytest.approx(2.0, rel=0.01) and row.ci_low <= row.speedup <= row.ci_high
    assert (row.difference, row.was, row.became) == ("build", "stock", "native")
    assert (row.build, row.baseline_build) == (OTHER, "toy"), "what is quick is the build on trial"
    assert row.short == row["label"] == "build native" and row.lossless == "identical"
    assert row.loaded == "each alone, together" and row.idle_cpus == 0
    assert not findings.speedup and not findings.predictions, "no number of a method, or of the stock build"


def test_another_changed_byte_is_another_cell(tmp_path):
    settings = on_trial(build="native")
    settings.model.path, settings.profile = "/toy.gguf", False
    settings.prompts.items = [{"id": p.id, "class": p.kind, "text": p.id} for p in PROMPTS]
    ids = {cell.id for name in (OTHER, OTHER[:-1] + "x") for given in ("native", "native")
           for cell in cells([settings], tmp_path, "toy", "toy", {Path("/toy.gguf"): "w"}, {given: name})}  # fmt: skip
    assert len(ids) == 2


@pytest.mark.parametrize(("change", "control"), [
    (lambda cell: cell.env["treatment"].update(build="0.3.36-0c1e57098-cpu+00000000"), "trial"),
    (lambda cell: cell.env["treatment"].update(libraries={"libllama.so": "b" * 64}), "trial"),
    (lambda cell: cell.env.pop("treatment"), "trial"),
    (lambda cell: cell.config["treatment"]["declaration"].update(key="threads"), "trial"),
    (lambda cell: cell.facts["engine"]["treatment"].update(type_k="q4_0"), "engine"),
    (lambda cell: cell.runs["idle_cpus"].__setitem__(3, 0.9), "waiting"),
])  # fmt: skip
def test_what_is_not_one_difference_voids_the_cell(build_cell, change, control):
    cell = copy.deepcopy(build_cell)
    cell.runs["idle_cpus"].flags.writeable = True
    change(cell)
    assert control in checks(judge([cell]))


@pytest.mark.parametrize(("caps", "severity"), [((220, 220), "ok"), ((220, 270), "void"), ((220, 221), "ok")])
def test_another_limit_of_power_voids_the_contrast(build_cell, caps, severity):
    cell = copy.deepcopy(build_cell)
    base = cell.runs["arm"] == "baseline"
    cell.runs["power_cap_w"] = base * caps[0] + ~base * caps[1] + 0.0
    (found,) = (row for row in judge([cell]).controls if row.control == "limits")
    assert found.severity == severity, found.sentence


def test_energy_is_told_an_arm_and_a_token(build_cell):
    cell = copy.deepcopy(build_cell)
    assert not judge([cell]).energy, "what no driver told is in no table"
    base = cell.runs["arm"] == "baseline"
    cell.runs["energy_j"] = cell.runs["decode_window_ns"] * 1e-9 * (base * 100.0 + ~base * 150.0)
    rows = {row.arm: row for row in judge([cell]).energy}
    assert rows["baseline"].mean_w == pytest.approx(100) and rows["treatment"].mean_w == pytest.approx(150)
    assert rows["baseline"].joules_per_token == pytest.approx(100 * 0.01, rel=0.02)
    assert rows["treatment"].joules_per_token == pytest.approx(150 * 0.005, rel=0.02)
    assert rows["baseline"].runs == int(base.sum())


def test_a_grade_rests_on_what_the_width_moves_and_not_on_what_is_on_trial(build_cell):
    assert build_cell.facts["noise"]["widths"] == [1, 32] and build_cell.facts["noise"]["of"] == "reference"


def test_a_build_that_says_other_tokens_is_divergent_and_its_cell_is_sound(tmp_path):
    settings = on_trial(build="native")
    result = measured(settings, lambda text: Half(text, settings, seed=1), builds={"native": OTHER})
    result.facts["sides"] = "together"
    left = [row for row in result.facts["lossless"] if row["first_difference"]]
    assert any(row["first_difference"]["gap_arm"] > 0 for row in left)
    assert all(row["arm_forced"]["disagreements"] and not row["teacher_forced"]["disagreements"] for row in left)
    env = {"treatment": {"build": OTHER, "libraries": FILES, "llama_cpp_commit": ""}}
    findings = judge([stored(tmp_path, settings, result, env, {"native": OTHER})])
    assert "replays" not in checks(findings)
    assert {row.lossless for row in findings.trials} == {"divergent"}


SHEET = """
- id: {id}
  says: {became} is quicker.
  source: {{document: a post, date: 2026-11-01}}
  metric: trial
  scope: {{difference: build, became: {became}}}
  published: 1
  unit: x
  evidence: measured
  author_status: {{state: standing}}
  rule: {{kind: records, test: direction, expect: greater_than_one, universal: true}}
"""


def test_a_claim_about_a_build_is_judged_on_its_trials_alone(build_cell, tmp_path):
    sheet = tmp_path / "sheet.yaml"
    sheet.write_text(SHEET.format(id="of.native", became="native") + SHEET.format(id="of.fork", became="fork"))
    native, fork = judge_claims(load_sheet(sheet), judge([build_cell]), load_facts(CONFIGS / "facts"))
    assert native["verdict"] == "reproduced" and "build native" in native["reason"]
    assert fork["verdict"] == "not_run", "a number of one build is none of another's"


def test_a_report_names_the_difference_and_writes_no_file_without_one(build_cell):
    findings = judge([build_cell])
    ordered = Ordered(findings)
    (section,) = trials(ordered, CellIndex.of(ordered))
    assert "build native" in str(section.tables[0].rows) and OTHER in section.tables[0].condition
    (line,) = trial_lines(findings.trials)
    assert line.startswith("build native against stock: 2.0") and "output identical" in line
    assert not trials(Ordered(judge([])), CellIndex.of(Ordered(judge([]))))


def test_a_side_that_loaded_another_build_is_no_measurement():
    from bench.run.side_words import About
    from bench.run.worker import check_builds
    from pti_loop.engine import EngineError

    environment = {"engine": {"build": "a"}, "treatment": {"build": "b"}}
    sound = {"baseline": About({}, {}, [], "", "a"), "treatment": About({}, {}, [], "", "b")}
    check_builds(sound, environment)
    with pytest.raises(EngineError, match="the treatment's side has loaded the build a, and b was asked for"):
        check_builds({side: About({}, {}, [], "", "a") for side in ("baseline", "treatment")}, environment)


def test_the_usual_build_is_not_handed_the_libraries_of_the_baselines(tmp_path, monkeypatch):
    from bench.host import builds
    from bench.run.sweep import _build_environment

    monkeypatch.setattr(builds, "folder_of", lambda given: None if given == builds.STOCK else tmp_path / given)
    for pair, wanted in (({"build": "stock"}, None), ({"type_k": "q8_0"}, "fork")):
        settings = on_trial(**pair)
        settings.engine.build, settings.model.path, settings.profile = "fork", "/toy.gguf", False
        settings.prompts.items = [{"id": p.id, "class": p.kind, "text": p.id} for p in PROMPTS]
        (cell,) = cells([settings], tmp_path, "toy", "toy", {Path("/toy.gguf"): "w"}, {"stock": "s"})
        found = _build_environment(cell).get("LLAMA_CPP_LIB_PATH")
        assert found == (wanted and str(tmp_path / wanted)), pair
