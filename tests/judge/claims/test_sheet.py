"""The format of a claim sheet: the shipped ones load, and every mistake is a sentence that names the entry."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from bench.errors import UserError
from bench.judge.claims.columns import COLUMNS
from bench.judge.claims.rule import KINDS, TESTS
from bench.judge.claims.scope import KEYS
from bench.judge.claims.sheet import CONDITION_KEYS, METRICS, load_sheet, read_sheet
from bench.judge.tables.claims import MEANINGS
from tests.faults.sheets import ENTRY

ROOT = Path(__file__).parents[3]
EXAMPLE = Path(__file__).with_name("example_sheet.yaml")

def sheet(folder: Path, text: str) -> Path:
    path = folder / "sheet.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_shipped_sheets_load() -> None:
    for path in sorted((ROOT / "configs" / "claims").glob("*.yaml")):
        assert load_sheet(path)
    assert [claim.id for claim in load_sheet(EXAMPLE)] == [
        "demo.lookup.speedup",
        "demo.packed",
        "demo.cache",
        "demo.sum",
    ]


def test_the_guide_has_every_word_and_its_example_loads(tmp_path: Path) -> None:
    guide = (ROOT / "docs" / "claims.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```yaml\n(.*?)```", guide, re.DOTALL)
    assert load_sheet(sheet(tmp_path, example))[0].id == "pti.four_streams.throughput"
    tables = {key for keys in KEYS.values() for key in keys} - {"per", "threads"}
    words = {*TESTS, *(key for keys in TESTS.values() for key in keys), *KINDS, *MEANINGS, *CONDITION_KEYS, *METRICS}
    words |= tables | {name for columns in COLUMNS.values() for name, one in columns.items() if one.kind != "bytes"}
    unsaid = {word for word in words if f"`{word}`" not in guide}
    assert unsaid <= {"steady_tok_s", "aggregate_tok_s", "baseline_tok_s", "solo_tok_s", "step_ms", "read_gb_s", "gb_s",
                      "us", "other_l2_over_weights", "dram_over_weights", "us_over_one_model"}  # fmt: skip


def test_pti_covers_every_topic() -> None:
    claims = load_sheet(ROOT / "configs" / "claims" / "pti.yaml")
    assert len(claims) >= 60
    assert len({claim.says for claim in claims}) == len(claims)
    metrics, kinds = Counter(claim.metric for claim in claims), Counter(claim.rule.kind for claim in claims)
    assert set(kinds) == {"records", "arithmetic", "fact", "projection"}
    for metric in ("speedup", "aggregate", "step_cost", "acceptance", "memory", "lossless", "device", "kernel"):
        assert metrics[metric] >= 3, metric
    published = {claim.published[0] for claim in claims}
    speeds = "30.5 33.9 38.1 1.57 1.75 1.96 19.4 21.1 28.9 1.38 1.27 1.71 2.04 2.74 2.16 1.64"
    sizes = "0.2 0.8 393 383 460 89 1.36 15 80 4353 68 16"
    assert not {*speeds.split(), *sizes.split()} - published


def test_a_number_keeps_its_printed_digits(tmp_path: Path) -> None:
    claim = load_sheet(sheet(tmp_path, ENTRY))[0]
    assert claim.published == ("1.50",)
    assert claim.value == 1.5
    assert claim.scope["streams"] == 4
    assert claim.source["date"] == "2026-06-08"


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("metric:", "metrc:", "claim 'a.claim' has the unknown key 'metrc'; did you mean 'metric'"),
        ("metric: speedup", "metric: speedups", "unknown metric 'speedups'; did you mean 'speedup'"),
        ("evidence: measured", "evidence: measurd", "unknown evidence 'measurd'; did you mean 'measured'"),
        ("state: standing", "state: standin", "unknown author status 'standin'; did you mean 'standing'"),
        ("streams: 4", "steams: 4", "unknown scope key 'steams', which method=stagger has not; did you mean 'streams'"),
        ("per: answer", "per: anser", "unknown scope.per 'anser'; did you mean 'answer'"),
        ("machine: mi50", "machin: mi50", "unknown conditions key 'machin'; did you mean 'machine'"),
        ("document:", "documnt:", "unknown source key 'documnt'; did you mean 'document'"),
        ("kind: records", "kind: record", "unknown rule kind 'record'; did you mean 'records'"),
        ("test: ratio", "test: ratios", "unknown test 'ratios'; did you mean 'ratio'"),
        ("test: ratio", "test: ratio, formula: product", "test 'ratio' has no formula"),
        ("test: ratio", "test: ratio, fact: mi50.l2_cache", "unknown records rule key 'fact'"),
        ("test: ratio", "test: direction", "needs expect"),
        ("test: ratio", "test: direction, expect: less_than", "needs an edge"),
        ("test: ratio", "test: value, tolerance: wide", "rule.tolerance is 'wide'"),
        ("test: ratio", "test: value, by_construction: 1", "rule.by_construction is '1'"),
        ("test: ratio", "test: collision, min_temperatures: 1.5", "rule.min_temperatures is '1.5'"),
        ("test: ratio", "test: lossless, grade: same", "unknown grade 'same'"),
        ("published: 1.50", "published: 0.90", "is for a gain above 1"),
        ("published: 1.50", "published: fast", "published value 'fast'"),
        ("published: 1.50", "published: .nan", "not a plain decimal number"),
        ("published: 1.50", "published: [1, 2, 3]", "publishes 3 values"),
        ("published: 1.50", "published: true", "can only be judged by a fact"),
        ("temperature: 0", "temperature: -1", "is below 0"),
        ("temperature: 0", "temperature: warm", "is 'warm'"),
        ("temperature: 0", "temperature: {from: 0.1}", "needs both ends"),
        ("date: 2026-06-08", "date: June", "the date 'June'"),
        ("date: 2026-06-08", 'date: ""', "source lacks date"),
        ("  unit: x\n", "", "claim 'a.claim' lacks unit"),
        ("  unit: x\n", "  unit: x\n  unit: y\n", "the key 'unit' stands twice"),
        ("  unit: x\n", "  unit: x\n  verdict: reproducd\n", "unknown verdict 'reproducd'; did you mean 'reproduced'"),
        ("{kind: records, test: ratio}", "{kind: fact}", "names no fact"),
        ("{kind: records, test: ratio}", "{kind: projection}", "what would have to be run"),
        ("{kind: records, test: ratio}", "{kind: arithmetic, formula: ratio}", "needs inputs"),
        (
            "{kind: records, test: ratio}",
            "{kind: arithmetic, formula: ratio, inputs: {numerator: 1, denominater: 2}}",
            "no input 'denominater'; did you mean 'denominator'",
        ),
        (
            "{kind: records, test: ratio}",
            "{kind: arithmetic, formula: ratio, inputs: {numerator: one, denominator: 2}}",
            "input 'numerator' is 'one'",
        ),
        ("{kind: records, test: ratio}", "ratio", "the rule has no kind"),
        ("conditions: {machine: mi50}", "conditions: mi50", "conditions is 'mi50'"),
        ("- id: a.claim", "- name: a.claim", "entry 1 has no id"),
        ("metric: speedup", "metric: [speedup]", "unknown metric"),
        ("kind: records", "kind: {records: 1}", "unknown rule kind"),
        ("method: stagger", "method: [[stagger]]", "has \\['stagger'\\] in its list; write single values"),
        ("temperature: 0", "temperature: [{a: 1}]", "write single values"),
        ("temperature: 0", "temperature: {from: [0], to: 1}", "is no range of numbers"),
        ("temperature: 0", "temperature: {from: 0, to: }", "is no range of numbers"),
        ("conditions: {machine: mi50}", "conditions: !!map mi50", "is called a mapping and is none"),
        ("conditions: {machine: mi50}", "conditions: !!map [a, b]", "is called a mapping and is none"),
        ("says: It", "says: [It", "not valid YAML"),
    ],
)
def test_a_mistake_is_a_sentence(tmp_path: Path, old: str, new: str, sentence: str) -> None:
    assert old in ENTRY
    with pytest.raises(UserError, match=sentence):
        load_sheet(sheet(tmp_path, ENTRY.replace(old, new, 1)))


def test_an_id_stands_once(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"'a.claim' stands twice"):
        load_sheet(sheet(tmp_path, ENTRY + ENTRY))


def test_missing_empty_and_foreign_files(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"cannot read .*absent.yaml"):
        load_sheet(tmp_path / "absent.yaml")
    with pytest.raises(UserError, match=r"not a claim sheet"):
        load_sheet(sheet(tmp_path, ""))
    with pytest.raises(UserError, match=r"not a claim sheet"):
        load_sheet(sheet(tmp_path, "id: a.claim\n"))
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00GGUF")
    with pytest.raises(UserError, match=r"not UTF-8"):
        load_sheet(tmp_path / "binary.yaml")


def test_a_sheet_that_breaks_off_or_has_a_bad_entry_still_gives_the_others(tmp_path):
    other = ENTRY.replace("- id: a.claim", "- id: another.claim", 1)
    assert other != ENTRY
    bad = ENTRY.replace("metric: ", "metric: no_such_", 1)
    claims, faults = read_sheet(sheet(tmp_path, bad + other))
    assert [claim.id for claim in claims] == ["another.claim"]
    assert len(faults) == 1 and "unknown metric" in faults[0]
    whole = ENTRY + other
    cut = whole[: whole.index("rule:", len(ENTRY)) + len("rule: {kind: re")]
    claims, faults = read_sheet(sheet(tmp_path, cut))
    assert [claim.id for claim in claims] == ["a.claim"]
    assert len(faults) == 1 and "is not valid YAML" in faults[0] and "are left out" in faults[0]
    claims, faults = read_sheet(sheet(tmp_path, ENTRY + ENTRY))
    assert len(claims) == 1 and "stands twice" in faults[0]
    with pytest.raises(UserError, match="is not valid YAML"):
        read_sheet(sheet(tmp_path, "- id: [\n"))
