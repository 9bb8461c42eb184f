"""Where each invariant about tokens, grades, inputs and profiles begins to speak, and its sentence."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from bench.judge.invariants.places import pairs, places
from bench.judge.invariants.profiles import passes_are_there
from tests.judge.invariants.edited_cells import Edit, drop, edited, row, setting, told
from tests.judge.judge_cells import MS, Arm, Builder, Cell, case_of, default_config, guess_cell, profile_cell


def test_a_round_says_one_token_of_its_own_and_what_was_accepted():
    for arm, place in (("treatment", 3), ("baseline", 3)):
        gone = edited(lambda cell, arm=arm, place=place: drop(cell, "ledger", row(cell, "ledger", arm, 0, place)))
        assert "emitted" in gone and gone["emitted"].endswith("1 rounds in all")
    narrow = edited(setting("rounds", "width", 2, place=4))
    assert narrow == {
        "emitted": "round 4 of run 2 (treatment) says 2 tokens of 1 answers, decoded 2 rows, drafted 2 and "
        "accepted 1; 1 rounds in all"
    }
    assert edited(setting("rounds", "width", 4, place=4)) == {}, "more rows than guesses are no fault of the tokens"


def test_draws_are_those_that_were_counted_and_said():
    lost = edited(lambda cell: drop(cell, "draws", row(cell, "draws", "treatment", 0, 4)))
    assert lost["draws"].startswith("round 2 of run 2 counts 2 verified and 1 accepted guesses, and 1 draws with")
    hit = edited(setting("draws", "guess", 5, place=0))
    assert hit["draws"].startswith("round 0 of run 2 counts 2 verified and 1 accepted guesses, and 2 draws with 0 hits")
    stray = edited(setting("draws", "round", 20, place=-1))
    assert stray["draws"] == "run 2 has draws of round 20, and no such round"

    def other(cell: Cell) -> None:
        index = row(cell, "draws", "treatment", 0, 0)
        cell.draws.loc[index, ["guess", "drawn"]] = 77

    found = edited(other)
    assert found["draws"] == (
        "run 2 says token 1 at position 1, and the draw of that round is another; 1 tokens in all"
    )


def test_answers_are_as_many_and_as_long_as_asked():
    asked = edited(setting("runs", "n_predict", 42))
    assert asked["answers"] == "run 2 (treatment) says 41 tokens, and 42 were asked for; 1 runs in all"

    def renamed(cell: Cell) -> None:
        cell.runs.loc[cell.runs["run"] == 2, "prompt"] = "p0+p1"

    assert edited(renamed)["answers"] == "run 2 (treatment) says 1 answers to 2 prompts; 1 runs in all"


def test_what_nothing_confirms_is_no_answer():
    found = edited(setting("ledger", "source", "unverified", place=5))
    assert found["verified"] == (
        "run 2 (treatment) says 1 tokens that nothing ever confirmed, and they are no part of an answer; 1 runs in all"
    )


def test_copies_of_an_answer_leave_as_many_unconfirmed_as_they_are_but_one():
    def loop(unconfirmed: int) -> dict[str, str]:
        arms = {"baseline": Arm(), "treatment": Arm(round_ms=100.0, per_round=1, repeat=2)}
        method = {"name": "stagger", "emission": "published"}
        builder = Builder(default_config(streams=3, method=method), arms)
        builder.block(0, ("baseline", "treatment", "treatment", "baseline"), "p")
        cell = builder.build()
        last = cell.ledger["position"].max()
        late = (cell.ledger["run"] == 1) & (cell.ledger["position"] > last - unconfirmed)
        cell.ledger.loc[late, "source"] = "unverified"
        return told(cell)

    assert "verified" not in loop(0) and "verified" not in loop(2)
    assert loop(3)["verified"].startswith("run 1 (treatment) says 3 tokens that nothing")


def test_a_baseline_guesses_nothing():
    assert edited(setting("rounds", "width", 2, arm="baseline", place=6))["plain"] == (
        "round 6 of run 0 (baseline) drafts 0 guesses in a decode of 2 rows, and plain decoding drafts none; 1 rounds "
        "in all"
    )
    for name in ("drafted", "redecoded"):
        assert "plain" in edited(setting("rounds", name, 1, arm="again", place=6))
    spent = edited(
        lambda cell: (
            setting("rounds", "decode_ns", lambda ns: ns - 5, "baseline")(cell),
            setting("rounds", "draft_ns", 5, "baseline")(cell),
        )
    )
    assert list(spent) == ["plain"]


def test_an_arm_repeats_itself_at_temperature_0():
    def token(cell: Cell) -> None:
        for arm, which in (("treatment", 1), ("baseline", 1)):
            cell.ledger.loc[row(cell, "ledger", arm, which, -1), "token"] = 7

    found = edited(token)
    assert found["repeats"].startswith("run 7 (treatment) says other tokens than run 2 for the same prompt")

    def guess(cell: Cell) -> None:
        cell.draws.loc[row(cell, "draws", "treatment", 1, 1), "guess"] += 1

    assert edited(guess)["repeats"].startswith("run 7 (treatment) makes other guesses than run 2")
    again = edited(
        lambda cell: cell.ledger.__setitem__(
            "token", np.where(cell.ledger["run"].isin((1, 8)), 9, cell.ledger["token"])
        )
    )
    assert again["again_output"] == "run 1 (again) says other tokens than the baseline that it repeats"


def test_collisions_are_those_of_a_temperature():
    warm = guess_cell(temperature=0.7)
    assert told(warm) == {
        "temperature": "728 draws lack the collision probability that they have above temperature 0"
        if len(warm.draws) == 728
        else f"{len(warm.draws)} draws lack the collision probability that they have above temperature 0"
    }
    warm.draws["collision"] = 0.5
    assert told(warm) == {}
    warm.draws.loc[3, "collision"] = np.nan
    assert told(warm)["temperature"].startswith("1 draws lack")


def test_grades_are_those_of_the_ledgers():
    facts = guess_cell().facts["lossless"]
    assert "lossless" and len(facts) == 28 - 8 - 0
    doubled = edited(lambda cell: cell.facts["lossless"].append(dict(cell.facts["lossless"][0])))
    assert doubled["grades"] == "facts.json grades one answer twice"
    lost = edited(lambda cell: cell.facts["lossless"].pop(0))
    assert lost["grades"] == "the answer to 'p0' (again, seed 1) has no grade"
    odd = edited(lambda cell: cell.facts["lossless"].append({**cell.facts["lossless"][0], "seed": 9}))
    assert odd["grades"] == "facts.json grades an answer to 'p0' (again, seed 9), and no run says it"
    differs = {"position": 4, "token_baseline": 4, "token_arm": 9}
    told_so = edited(lambda cell: cell.facts["lossless"][2].update(first_difference=differs))
    assert told_so["grades"] == (
        "the answer to 'p0' (treatment, seed 1) first differs nowhere by the ledgers, and at position 4 (4 against 9) "
        "by its grade"
    )

    def parted(cell: Cell) -> None:
        for place in (6, 4):
            setting("ledger", "token", 9, arm="oracle", place=place)(cell)

    found = edited(parted)
    assert found["grades"].startswith(
        "the answer to 'p0' (oracle, seed 1) first differs at position 4 (4 against 9) by"
    )


def test_every_token_stands_against_one_of_the_baselines():
    def longer(cell: Cell) -> None:
        cell.ledger.loc[row(cell, "ledger", "treatment", 0, -1), "position"] = 50

    assert edited(longer)["compared"] == (
        "run 2 (treatment) says position 50 of stream 0, and no run of the baseline does; 1 tokens in all"
    )
    case = case_of(guess_cell())
    mine, base, there = pairs(case)
    assert there.all() and (mine.token == base).all() and len(base) == 20 * 41
    found = places(case)
    rounds = guess_cell().rounds
    assert found.begins.tolist() == [int(rounds.index[rounds["run"] == run][0]) for run in range(28)]


@pytest.mark.parametrize(
    ("change", "name", "words"),
    [
        (lambda cell: cell.config.update(machine="other"), "machine", "cell.yaml says that it was measured on other"),
        (
            lambda cell: cell.env["machine"].update(name="other"),
            "machine",
            "env.json says that it was measured on other",
        ),
        (
            lambda cell: cell.facts["engine"]["treatment"].update(layers_offloaded=3),
            "machine",
            "layers were offloaded, and",
        ),
        (
            lambda cell: [cell.facts["model"].update(layers_offloaded=3),
                          *(engine.pop("layers_offloaded") for engine in cell.facts["engine"].values())],
            "machine",
            "layers were offloaded, and the machine",
        ),
        (
            lambda cell: (
                cell.env["engine"].update(llama_cpp_commit="0c1e57098"),
                cell.facts["engine"]["baseline"].update(build="5f2c8d1a4"),
            ),
            "commit",
            "the context of baseline was",
        ),
        (
            lambda cell: cell.env["engine"].update(build="0.3-5f2c8d1a4-cpu", llama_cpp_commit="0c1e57098"),
            "commit",
            "env.json names build 0.3-5f2c8d1a4-cpu and commit 0c1e57098",
        ),
    ],
)
def test_a_cell_names_one_machine_and_one_build(change, name, words):
    found = edited(change)
    assert list(found) == [name] and found[name].startswith(words)


def test_builds_may_be_told_by_fewer_digits():
    def build(commit: str, told_by: str, name: str = "b1") -> Edit:
        def edit(cell: Cell) -> None:
            cell.env["engine"].update(llama_cpp_commit=commit, build=name)
            for facts in cell.facts["engine"].values():
                facts["build"] = told_by

        return edit

    assert edited(build("0c1e57098aa", "0c1e57098")) == {} == edited(build("0c1e57098", "0c1e57098aa"))
    assert edited(build("0c1e57", "5f2c8d1a4")) == {} == edited(build("0c1e57098", "5f2c8d"))
    assert edited(build("0c1e57098", "", "0.3-0c1e570-cpu")) == {} != edited(build("0c1e57098", "", "0.3-0c1e571-cpu"))
    assert edited(build("0c1e57098", "", "llama-0.3-0c1e571")) == {} == edited(build("0c1e57", "", "0.3-0c1e571"))


def test_a_profile_has_all_its_passes():
    whole = profile_cell({1: 50, 2: 55}, passes=4)
    whole.config["measure"] = {"step_passes": 4}
    assert told(whole) == {}
    whole.config["measure"] = {"step_passes": 5}
    assert told(whole) == {"passes": "5 passes were configured, and 4 are stored"}
    lacks = profile_cell({1: 50, 2: 55})
    drop(lacks, "steps", 5)
    assert told(lacks)["passes"] == "a pass lacks a width of the layout tokens that another pass has"
    empty = profile_cell({1: 50})
    drop(empty, "steps", empty.steps.index)
    assert passes_are_there(case_of(empty)) == "no step was timed"


@pytest.mark.parametrize(("ms", "wrong"), [(4.8, False), (4.7, True)])
def test_no_step_reads_faster_than_the_memory(ms, wrong):
    # 100 MB at 21 GB/s take 4.762 ms.
    found = told(profile_cell({1: 5.0, 2: ms}, warm_up=1.0, pace=1e-6))
    assert list(found) == (["bound"] if wrong else [])
    if wrong:
        assert (
            found["bound"] == "a step of width 2 takes 4.700 ms, so it would read 21.3 GB/s, above the 21.0 GB/s "
            "measured here"
        )


def test_passes_that_are_no_repeats():
    def profile(*factors: float, widths: int = 3, both: bool = True) -> Cell:
        cell = profile_cell({k + 1: 50 for k in range(4)}, passes=5, warm_up=1.0, pace=1e-6)
        for width in range(2, 2 + widths):
            for number, factor in enumerate(factors):
                mine = (cell.steps["width"] == width) & (cell.steps["repeat"] == number)
                cell.steps.loc[mine, "decode_ns"] = int(50 * MS * factor)
        return cell

    apart = (9.0, 1.0, 1.0, 2.2, 2.2)
    found = told(profile(*apart))
    assert found["agreement"] == (
        "3 of 4 widths have passes that are no repeats of each other; the passes of width 2 (tokens) take 50.000 to "
        "110.000 ms"
    )
    assert found["steady"] == "the passes of width 2 (tokens) take 50.000 to 110.000 ms"
    assert list(told(profile(*apart, widths=2))) == ["steady"], "half of the widths may be disturbed"
    assert told(profile(9.0, 1.0, 1.0, 1.9, 1.9)) == {} == told(profile(0.5, 1.0, 1.0, 1.0, 1.0))


@pytest.mark.parametrize(("factor", "wrong"), [(1.98, False), (2.02, True)])
def test_one_token_of_one_sequence_costs_the_same_in_both_layouts(factor, wrong):
    cell, other = profile_cell({1: 50, 2: 60}), profile_cell({1: 50 * factor, 2: 60 * factor}, layout="sequences")
    both = Cell(**{**cell.__dict__, "steps": pd.concat([cell.steps, other.steps], ignore_index=True)})
    found = told(both)
    assert list(found) == (["agreement"] if wrong else [])
    if wrong:
        assert found["agreement"].startswith("one token of one sequence takes 101.") and "50." in found["agreement"]
