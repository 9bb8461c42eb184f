"""`report results=A,B` and `report --check BASE` on real cells; edits of them are slower, or another measurement."""

from __future__ import annotations

import csv
import shutil
from pathlib import Path

import pytest

from bench.cli import main
from bench.records.identity import stored_id
from bench.records.schema_1 import converted
from tests.faults.stored import Record, folder_of, record

LOOKUP, PACKED, PROFILE, STAGGER = "9528e9b90995", "2298e84a468d", "35b43824814e", "563342f274db"
CELLS = (LOOKUP, PACKED, PROFILE, STAGGER)
SEALED = "089d8099b842"
MACHINE = "amd-epyc-2c"
TIMES = ("draft_ns", "decode_ns", "sample_ns", "rollback_ns", "total_ns")


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return copied(tmp_path / "base")


def copied(root: Path, *cells: str) -> Path:
    for cell in cells or CELLS:
        shutil.copytree(folder_of(cell), root / MACHINE / cell)
    return root


def edited(root: Path, cell: str, edit) -> Path:
    """A folder with the same cells, one of them edited."""
    copied(root, *(one for one in CELLS if one != cell))
    changed = record(cell)
    edit(changed)
    changed.write(root)
    return root


def slowed(arm: str, factor: float):
    """An edit: every timed window of an arm takes so many times as long, and what came behind it comes later."""

    def edit(found: Record) -> None:
        runs, ledger = found.tables["runs"], found.tables["ledger"]
        found.scale("runs", ("decode_window_ns",), factor, arm)
        found.scale("rounds", TIMES, factor, arm)
        late = 0
        for place in runs.sort_values("start_ns").index:
            start, end = int(runs.loc[place, "start_ns"]), int(runs.loc[place, "end_ns"])
            scale = factor if runs.loc[place, "arm"] == arm else 1.0
            mine = ledger["run"] == runs.loc[place, "run"]
            ledger.loc[mine, "t_ns"] = (start + late + (ledger.loc[mine, "t_ns"] - start) * scale).astype("int64")
            runs.loc[place, "start_ns"] = start + late
            late += int((end - start) * (scale - 1))
            runs.loc[place, "end_ns"] = end + late

    return edit


def report(*words, capsys) -> tuple[int, str, str]:
    code = main(["report", *map(str, words)])
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def rows_of(base: Path, present: Path, tmp_path: Path, capsys) -> list[dict[str, str]]:
    code, _, err = report(f"results={base},{present}", f"reports={tmp_path / 'reports'}", capsys=capsys)
    assert code == 0 and not err
    return list(csv.DictReader((tmp_path / "reports" / "compare.csv").open()))


def test_equal_folders_have_the_ratio_1_throughout_and_pass(base, tmp_path, capsys):
    present = copied(tmp_path / "present")
    rows = rows_of(base, present, tmp_path, capsys)
    assert {row["outcome"] for row in rows} == {"no difference"}
    assert {row["ratio"] for row in rows} == {"1", "n/a"}
    assert {row["figure"] for row in rows if row["ratio"] == "n/a"} == {"output"}
    assert {row["figure"] for row in rows} == {"speed-up", "plain tok/s", "output", "acceptance", "step cost"}
    assert {row["cell"] for row in rows} == set(CELLS) and not any(row["changed"] != "n/a" for row in rows)
    code, out, err = report("--check", base, f"results={present}", capsys=capsys)
    assert (code, err) == (0, "") and "nothing is worse beyond its interval" in out


@pytest.mark.parametrize(("arm", "figure", "better"), [
    ("treatment", "speed-up", "speed-up"), ("baseline", "plain tok/s", "speed-up"),
])  # fmt: skip
def test_a_slower_arm_is_the_one_row_that_is_worse(base, tmp_path, capsys, arm, figure, better):
    present = edited(tmp_path / "present", STAGGER, slowed(arm, 1.3))
    rows = rows_of(base, present, tmp_path, capsys)
    worse = [row for row in rows if row["outcome"] == "worse"]
    assert [(row["cell"], row["figure"]) for row in worse] == [(STAGGER, figure)]
    assert float(worse[0]["ratio"]) == pytest.approx(1 / 1.3, rel=0.01)
    assert [row["figure"] for row in rows if row["outcome"] == "better"] == ([] if figure == better else [better])
    code, out, _ = report("--check", base, f"results={present}", capsys=capsys)
    assert code == 1 and "worse: 1 figure" in out
    code, _, _ = report("--check", present, f"results={base}", capsys=capsys)
    assert code == (0 if figure == better else 1), "the other way round it got better"


def renamed(found: Record) -> None:
    """Call an edited cell by the hash of what it holds, as whoever measured it would have."""
    build, weights = found.env["engine"]["build"], found.facts["model"]["sha256"]
    found.cell = str(stored_id(converted(found.config), build, weights))


def other_weights(found: Record) -> None:
    found.facts["model"]["sha256"] = "f" * 64
    renamed(found)


def other_texts(found: Record) -> None:
    found.config["prompts"]["items"][0]["text"] += " and so on"
    renamed(found)


def other_sampler(found: Record) -> None:
    found.config["engine"]["sampler"] = "engine"
    for arm in found.facts["engine"].values():
        arm["sampler"] = "engine"
    renamed(found)


@pytest.mark.parametrize(("edit", "word"), [
    (other_weights, "other weights"), (other_texts, "other texts"), (other_sampler, "other sampler"),
])  # fmt: skip
def test_another_measurement_is_not_comparable_and_says_why(base, tmp_path, capsys, edit, word):
    rows = rows_of(base, edited(tmp_path / "present", STAGGER, edit), tmp_path, capsys)
    found = [row for row in rows if row["base_cell"] == STAGGER]
    assert [row["outcome"] for row in found] == ["not comparable"] and word in found[0]["reason"]
    assert found[0]["cell"] not in (STAGGER, "n/a"), "it has another id, and is about the same thing"


def another_build(found: Record) -> None:
    found.env["engine"]["build"] += "-next"
    found.env |= {"harness_commit": "0123456789ab", "time_utc": "2026-12-24T18:00:00Z"}
    renamed(found)


def test_build_harness_and_date_are_told_and_compared(base, tmp_path, capsys):
    rows = rows_of(base, edited(tmp_path / "present", STAGGER, another_build), tmp_path, capsys)
    found = [row for row in rows if row["base_cell"] == STAGGER]
    assert {row["outcome"] for row in found} == {"no difference"} and STAGGER not in {row["cell"] for row in found}
    told = found[0]["changed"]
    assert "build 0.3.36" in told and "-next" in told and "-> 0123456789ab" in told and "-> 2026-12-24T18:00" in told
    page = (tmp_path / "reports" / "compare.md").read_text()
    assert "date 2026-11-29 -> 2026-12-24 (1 of 1 pairs)" in page


def test_on_another_machine_the_rate_is_shown_and_fails_no_check(base, tmp_path, capsys):
    present = tmp_path / "present"
    changed = record(STAGGER)
    for arm in ("baseline", "treatment", "again"):
        slowed(arm, 1.3)(changed)
    changed.machine = changed.config["machine"] = changed.env["machine"]["name"] = "another"
    changed.write(present)
    rows = rows_of(base, present, tmp_path, capsys)
    found = {row["figure"]: row for row in rows if row["cell"] == STAGGER}
    assert found["plain tok/s"]["outcome"] == "worse" and found["plain tok/s"]["gates"] == "false"
    assert found["speed-up"]["outcome"] == "no difference" and "machine amd-epyc-2c -> another" in found["speed-up"][
        "changed"]  # fmt: skip
    code, out, _ = report("--check", base, f"results={present}", capsys=capsys)
    assert code == 0 and "1 worse" in out and "nothing is worse" in out


def test_void_failed_and_missing_cells_are_told_and_count_for_nothing(base, tmp_path, capsys):
    present = copied(tmp_path / "present", PACKED, PROFILE)
    void, failed = record(LOOKUP), record(STAGGER)
    void.scale("runs", ("decode_window_ns",), 1.3, "treatment")  # the ledger says otherwise
    failed.status |= {"state": "failed", "reason": "out of memory"}
    for one in (void, failed):
        one.write(present)
    rows = {row["cell"]: row for row in rows_of(base, present, tmp_path, capsys)}
    assert rows[LOOKUP]["outcome"] == "not comparable" and "void in" in rows[LOOKUP]["reason"]
    assert rows[STAGGER]["outcome"] == "not comparable" and "out of memory" in rows[STAGGER]["reason"]
    shutil.rmtree(present / MACHINE / PACKED)
    code, out, _ = report("--check", base, f"results={present}", capsys=capsys)
    assert code == 0 and f"({PACKED}): only in {base}" in " ".join(out.split())


def test_where_not_one_figure_compares_the_check_has_not_passed(tmp_path, capsys):
    base, present = copied(tmp_path / "base", STAGGER), tmp_path / "present"
    changed = record(STAGGER)
    other_weights(changed)
    changed.write(present)
    code, out, err = report("--check", base, f"results={present}", capsys=capsys)
    assert (code, out) == (2, "") and "not one figure" in err and "other weights" in err


def test_a_damaged_cell_is_told_and_the_check_fails(base, tmp_path, capsys):
    present = copied(tmp_path / "present")
    (present / MACHINE / PACKED / "facts.json").write_text("{")
    code, out, err = report("--check", base, f"results={present}", capsys=capsys)
    assert code == 1 and f"{MACHINE}/{PACKED}" in err and "damaged in" in " ".join(out.split())


def test_several_folders_are_each_put_beside_the_first(base, tmp_path, capsys):
    slow, same = edited(tmp_path / "slow", STAGGER, slowed("treatment", 1.3)), copied(tmp_path / "same, again")
    code, _, _ = report("--check", base, f"results={same}", capsys=capsys)
    assert code == 0, "a folder's own name may have a comma"
    further = copied(tmp_path / "further")
    code, _, _ = report(f"results={base},{slow},{further}", f"reports={tmp_path / 'two'}", capsys=capsys)
    rows = list(csv.DictReader((tmp_path / "two" / "compare.csv").open()))
    assert {row["folder"] for row in rows if row["outcome"] == "worse"} == {str(slow)}
    assert {row["folder"] for row in rows} == {str(slow), str(further)}


def test_the_folder_of_one_machine_will_do(base, tmp_path, capsys):
    present = copied(tmp_path / "present", LOOKUP)
    code, _, err = report("--check", base / MACHINE, f"results={present / MACHINE}", capsys=capsys)
    assert (code, err) == (0, "")


def test_names_from_a_record_are_only_text(base, tmp_path, capsys):
    def hostile(found: Record) -> None:
        found.env["harness_commit"] = "<script>x</script>\x1b[31m|=1+1"

    present = edited(tmp_path / "present", STAGGER, hostile)
    code, out, _ = report(f"results={base},{present}", f"reports={tmp_path / 'reports'}", capsys=capsys)
    page = (tmp_path / "reports" / "compare.md").read_text()
    assert code == 0 and "\x1b[31m" not in out + page and "<script" not in page and "harness " in page


@pytest.mark.parametrize(("words", "sentence"), [
    (("--check", "{tmp}/nowhere", "results={base}"), "there is no results folder {tmp}/nowhere"),
    (("--check", "{base}", "results={tmp}/nowhere"), "there is no results folder {tmp}/nowhere"),
    (("results={base},{tmp}/nowhere",), "there is no results folder {tmp}/nowhere"),
    (("results={base},{tmp}/empty",), "the folder {tmp}/empty has no cells"),
    (("results={base},{base}/.",), "is given twice"),
    (("--check", "{base}", "results={base}"), "the results folder {base} is given twice"),
    (("results={base},",), "names a folder and an empty word"),
    (("results={base},{tmp}/foreign",), "no cell of {tmp}/foreign belongs to one of {base}"),
    (("results={base},{tmp}/foreign", "--json"), "leave out --short, --json and -o"),
    (("--check", "{base}", "results={base},{tmp}/foreign"), "give one folder with results="),
    (("--check",), "--check needs a value"),
    (("--chekc", "{base}"), "did you mean '--check'"),
])  # fmt: skip
def test_bad_input_is_one_sentence_and_code_2(base, tmp_path, capsys, words, sentence):
    (tmp_path / "empty").mkdir()
    copied(tmp_path / "foreign", SEALED)
    names = {"base": base, "tmp": tmp_path}
    code, out, err = report(f"reports={tmp_path / 'r'}", *(word.format(**names) for word in words), capsys=capsys)
    assert (code, out) == (2, "") and err.startswith("error: ") and err.count("\n") == 1
    assert sentence.format(**names) in err and not (tmp_path / "r").exists()
