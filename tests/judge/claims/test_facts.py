"""The facts that ship, and mistakes in a fact file."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.errors import UserError
from bench.judge.claims.facts import find_fact, load_facts

SHIPPED = Path(__file__).parents[3] / "configs" / "facts"

GOOD = """
card.cache:
  value: 4
  unit: MiB
  says: A cache.
  quality: primary
  source: {title: A table, url: https://example.org/table}
"""


def write(folder: Path, text: str, name: str = "card.yaml") -> Path:
    (folder / name).write_text(text, encoding="utf-8")
    return folder


def test_shipped_facts() -> None:
    facts = load_facts(SHIPPED)
    assert (facts["mi50.l2_cache"].value, facts["mi50.l2_cache"].unit) == (4, "MiB")
    assert facts["mi50.process"].value == 7
    assert facts["mi50.peak_bandwidth"].value == 4096 / 8 * 2
    assert facts["mi50.matrix_instructions"].value is False
    assert facts["qwen3.6-27b.attention_layers"].value + facts["qwen3.6-27b.delta_layers"].value == 64
    assert facts["q8_0.block_bytes"].value * 8 / 32 == facts["q8_0.bits_per_weight"].value
    assert facts["q5_k.bits_per_weight"].value == (2 * 2 + 12 + 32 + 128) * 8 / 256
    assert all(fact.url.startswith("http") and fact.title for fact in facts.values())


def test_unknown_fact_names_the_nearest() -> None:
    with pytest.raises(UserError, match=r"claim 'a'.*'mi50.l2'.*did you mean 'mi50.l2_cache'"):
        find_fact(load_facts(SHIPPED), "mi50.l2", "a")


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("quality: primary", "qualty: primary", "unknown key 'qualty'; did you mean 'quality'"),
        ("quality: primary", "quality: secondhand", "unknown quality 'secondhand'"),
        ("value: 4", "value: four", "the value 'four'"),
        ("  unit: MiB\n", "", "lacks unit"),
        ("https://example.org/table", "a book", "no address as source"),
        ("url:", "link:", "unknown key 'link'"),
    ],
)
def test_a_mistake_is_a_sentence(tmp_path: Path, old: str, new: str, sentence: str) -> None:
    assert old in GOOD
    with pytest.raises(UserError, match=sentence):
        load_facts(write(tmp_path, GOOD.replace(old, new)))


def test_one_name_in_two_files(tmp_path: Path) -> None:
    write(tmp_path, GOOD, "one.yaml")
    with pytest.raises(UserError, match=r"'card.cache' is defined twice"):
        load_facts(write(tmp_path, GOOD, "two.yaml"))


def test_no_fact_file(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no fact file"):
        load_facts(tmp_path / "absent")


def test_a_list_is_no_fact_file(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"mapping from names to facts"):
        load_facts(write(tmp_path, "- a\n- b\n"))
