"""The sentence that a reader came for and the printed report, word by word, for records whose figures are round."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from bench.audit.audit import judge
from bench.audit.launches import Launches
from bench.audit.options import AuditOptions
from bench.audit.show import format_audit, to_json
from bench.audit.trials import Flag, Record, Trial


def row(arm: str, rate: float, **more: object) -> Trial:
    return Trial("line 2", arm or "x", arm=arm, printed={"tok_s": rate}, **more)  # type: ignore[arg-type]


def record(*trials: Trial, **more: object) -> Record:
    return Record(Path("r"), "a table", trials, **more)  # type: ignore[arg-type]


def answer(*trials: Trial, against: Record | None = None, flags: tuple[Flag, ...] = (), **options: object) -> str:
    return judge(record(*trials, flags=flags), AuditOptions(**options), against).answer  # type: ignore[arg-type]


PAIR = [row("none", 10.0), row("mtp", 15.0)]
FOUR = [row("none", 10.0), row("mtp", 15.0), row("mtp", 15.6), row("none", 10.4)]
WIDE = [row("", 10.0), row("", 36.0, streams=4)]


@pytest.mark.parametrize(
    ("trials", "options", "words"),
    [
        ([], {}, "The record has no token in it: that is a failed run, not 0 tok/s."),
        ([Trial("l", "x", emitted=0)], {}, "The record has no token in it: that is a failed run, not 0 tok/s."),
        ([row("", 10.0)], {}, "One answer decodes at 10.0 tok/s; there is nothing here to compare it with."),
        ([row("", 10.0, spread=0.5)], {}, "One answer decodes at 10.0 ± 0.5 tok/s; there is nothing here to compare it"
         " with."),
        ([row("", 10.0), replace(row("", 10.5), label="y")], {}, "One answer decodes at 10.5 tok/s; there is nothing"
         " here to compare it with."),
        ([row("", 10.0), replace(row("", 11.0), label="y")], {}, "One answer decodes at 10.0 (x) to 11.0 tok/s (y);"
         " there is nothing here to compare it with."),
        ([row("", 10.0, drafted=9, accepted=5)], {}, "One answer decodes at 10.0 tok/s; no speed-up can be told from"
         " it."),
        ([row("", 30.0, streams=3)], {}, "One answer decodes at 10.0 tok/s; the 30.0 is the sum of 3; no speed-up can"
         " be told from it."),
        ([replace(row("", 10.0), label="task 1, under way")], {}, "One answer was at 10.0 tok/s when the log ends: a"
         " rate so far, not a final one."),
        ([row("", 90.0, unshared=True)], {}, "The 90.0 tok/s are a sum of answers whose number is not said: of one"
         " answer nothing is known."),
        ([Trial("l", "pp9", printed={"pp": 900.4})], {}, "The record has no rate of an answer, only the prompt's: 900"
         " tok/s (pp9)."),
        ([Trial("l", "x", printed={"pg": 55.0}, mixed_tokens=9)], {}, "The 55 tok/s have prompt tokens in them: the"
         " record has no rate of an answer."),
        ([Trial("l", "x", drafted=9, accepted=4)], {}, "The record counts guesses and has no rate: no speed follows"
         " from an acceptance."),
        ([Trial("l", "x", requested=3)], {}, "The record has no rate that can be told."),
        ([Trial("l", "x", printed={"tok_s": 10.0, "mean_length": 1.05})], {}, "One answer decodes at 10.0 tok/s; a step"
         " gives 1.05 tokens, so speculation can gain nothing; there is nothing here to compare it with."),
        (PAIR, {}, "mtp over none is 1.50x for one answer, from one pair of figures: without a spread it is not"
         " decided."),
        (FOUR, {}, "mtp over none is 1.50x (1.500 to 1.500) for one answer."),
        (FOUR, {"speedup": 1.5}, "mtp over none is 1.50x (1.500 to 1.500) for one answer; the published 1.5x holds."),
        (FOUR, {"speedup": 1.7}, "mtp over none is 1.50x (1.500 to 1.500) for one answer; the published 1.7x is not"
         " what the record shows."),
        (FOUR, {"claim": 15.0}, "The published 15 tok/s is what one answer has, 1.50x (1.500 to 1.500) the baseline."),
        (PAIR, {"claim": 15.0}, "The published 15 tok/s is what one answer has, 1.50x the baseline."),
        (FOUR, {"claim": 99.0}, "No reading of the record gives the published 99 tok/s; the nearest it has is 15.6."),
        (FOUR, {"claim": 8.0}, "No reading of the record gives the published 8 tok/s; the nearest it has is 10.0."),
        ([Trial("l", "x", requested=3)], {"claim": 8.0}, "No reading of the record gives the published 8 tok/s; it has"
         " no rate."),
        ([row("none", 10.0), row("mtp", 36.0, streams=4)], {}, "One answer is 0.90x the baseline; the 3.60x is the sum"
         " of 4."),
        ([row("none", 10.0), row("mtp", 36.0, streams=4)], {"claim": 36.0}, "The published 36 tok/s has all answers"
         " summed; put right, one answer has 9.0 tok/s, 0.90x the baseline, and the 3.60x is the sum of 4."),
        ([row("none", 10.0), row("mtp", 36.0, streams=4)], {"claim": 36.0, "per": "aggregate"}, "The published 36 tok/s"
         " is what the sum has, 0.90x the baseline, and the 3.60x is the sum of 4."),
        ([row("none", 10.0), row("mtp", 36.0, streams=4)], {"speedup": 3.6}, "One answer is 0.90x the baseline; the"
         " 3.60x is the sum of 4; the published 3.6x is the sum."),
        (WIDE, {}, "With 4 answers at once (x) one answer is 0.90x of one alone; the 3.60x is the sum of 4."),
        (WIDE, {"speedup": 3.6}, "With 4 answers at once (x) one answer is 0.90x of one alone; the 3.60x is the sum of"
         " 4; the published 3.6x is the sum."),
        ([*WIDE, row("", 24.0, streams=3)], {}, "With 4 answers at once (x) one answer is 0.90x of one alone; the 3.60x"
         " is the sum of 4."),
        ([*WIDE, row("", 24.0, streams=3)], {"speedup": 2.5}, "With 3 answers at once (x) one answer is 0.80x of one"
         " alone; the 2.40x is the sum of 3; the published 2.5x is not what the record shows."),
        ([row("none", 90.0, unshared=True), row("mtp", 99.0, unshared=True)], {}, "mtp over none: the sum of all"
         " answers is 1.10x; nobody says how many there were, so of one answer nothing is known."),
        ([row("", 10.0, block=0), row("", 15.0, block=1)], {}, "Run 2 over run 1 is 1.50x for one answer, from one pair"
         " of figures: without a spread it is not decided."),
        ([row("", 15.0)], {"baseline": 10.0, "speedup": 1.5}, "x is 1.50x for one answer, from one pair of"
         " figures: without a spread it is not decided; the published 1.5x holds."),
    ],
    ids=range(35),
)  # fmt: skip
def test_the_sentence(trials: list[Trial], options: dict[str, object], words: str) -> None:
    assert answer(*trials, **options) == words


def test_what_a_reader_must_hear_behind_it() -> None:
    differs = [replace(trial, settings={"build": trial.arm}) for trial in FOUR]
    assert answer(*differs).endswith(
        "for one answer; builds, backends or machines differ, and that is what is compared."
    )
    other = [replace(trial, settings={"ngl": trial.arm}) for trial in FOUR]
    assert answer(*other).endswith("; the two sides are not comparable as they stand.")
    later = [replace(trial, total_seconds=9.0 if trial.arm == "mtp" else 8.0) for trial in FOUR]
    assert answer(*later).endswith("; the whole answer comes later.")
    length = [replace(trial, emitted=90 if trial.arm == "mtp" else 80) for trial in FOUR]
    assert answer(*length).endswith("; the answers have other lengths, so that it is lossless is not shown.")


def test_many_comparisons_are_cut_to_the_ends() -> None:
    ratios = {0: 1.1, 512: 1.4, 1024: 1.2, 2048: 1.3, 4096: 1.5}
    trials = [row("none", 10.0, depth=depth) for depth in ratios]
    trials += [row("mtp", 10 * ratio, depth=depth) for depth, ratio in ratios.items()]
    found = answer(*trials)
    assert [part.split(" is ")[0] for part in found.split("; ")[:3]] == [
        "mtp over none, depth 0", "mtp over none, depth 1024", "mtp over none, depth 4096",
    ]  # fmt: skip
    assert found.endswith("; and 2 between them.")
    three = answer(*(trial for trial in trials if trial.depth in (0, 512, 1024)))
    assert "between" not in three and three.index("depth 512") < three.index("depth 1024"), "in the record's order"


def test_no_difference_is_told_from_not_known() -> None:
    equal = [row("none", 10.0), row("mtp", 10.0), row("mtp", 10.001), row("none", 10.0)]
    assert answer(*equal) == "mtp over none is 1.000x: no difference."
    spread = answer(row("none", 10.0), row("mtp", 12.0), row("mtp", 9.0), row("none", 10.0))
    assert spread.startswith("No difference can be told: mtp over none is 1.039x, and its interval 0.1")
    prompts = [row(arm, rate, prompt=p) for p, rates in (("p", (10.0, 12.0)), ("q", (10.0, 9.0)))
               for arm, rate in zip(("none", "mtp"), rates, strict=True)]  # fmt: skip
    assert "is 1.039x (single prompts 0.90x to 1.20x), and" in answer(*prompts)


def test_answers_of_a_server_run_together() -> None:
    def served(arm: str, rate: float, one: float) -> Trial:
        return Trial("l", arm, arm=arm, test="serving", streams=4, printed={"tok_s": rate, "answer_tok_s": one})

    assert answer(served("none", 100.0, 30.0), served("mtp", 120.0, 45.0)) == (
        "mtp over none: one answer, once it runs, is 1.50x the baseline; all of them together 1.20x."
    )


def test_two_runs_of_widths_are_two_answers() -> None:
    runs = [replace(trial, block=block, settings={"b": str(block)}) for block in (0, 1) for trial in WIDE]
    runs[3] = replace(runs[3], printed={"tok_s": 32.0})
    assert answer(*runs) == (
        "Several answers at once against one alone, each run with its own settings: run 1, x: one answer 0.90x, sum "
        "3.60x; run 2, x: one answer 0.80x, sum 3.20x."
    )
    assert answer(*runs, speedup=3.2).startswith("Run 2 over run 1")


def test_kernels_by_the_time_they_take() -> None:
    small = Launches("small", "line 2", calls=100, us=1.0)
    large = Launches("large", "line 3", calls=3, us=40.0, share=0.8)
    assert judge(record(launches=(small, large)), AuditOptions()).answer == (
        "large takes 40.0 us a launch, over 3 launch(es), 80 % of all kernels' time."
    )
    counts = replace(small, us=None, dram_bytes=12e6)
    assert judge(record(launches=(replace(counts, dram_bytes=None), counts)), AuditOptions()).answer == (
        "small reads 12.0 MB from memory a launch, 100 launch(es), without a time."
    )
    bad = replace(small, us=None, absent=("p",))
    assert judge(record(launches=(bad,)), AuditOptions()).answer == (
        "small was counted, 100 launch(es), without a time; its counters are not all to be trusted."
    )
    denied = answer(flags=(Flag("DENIED", "no permission"),))
    assert denied == "Nothing was counted: the profiler was denied the counters, for want of permission."


def test_how_far_it_holds() -> None:
    def scope(*trials: Trial) -> list[str]:
        return judge(record(*trials), AuditOptions()).scope

    silent = "the record does not say the model, the device, the build, the temperature"
    assert scope(*FOUR) == ["mtp over none: one text; nothing is said about others", silent]
    assert scope(*(replace(t, prompt="p") for t in FOUR))[0].startswith("mtp over none: one prompt, p;")
    two = [*(replace(t, prompt="p") for t in PAIR), row("none", 10.0, prompt="q"), row("mtp", 9.0, prompt="q")]
    alike = [replace(t, category="code") for t in two]
    assert scope(*alike)[0] == "mtp over none: worst of 2 prompts q 0.90x"
    assert scope(*two)[0] == "mtp over none, by class of prompts: p 1.50x, q 0.90x; worst q 0.90x"
    classes = [replace(t, category="code" if t.prompt == "p" else "prose") for t in two]
    assert scope(*classes)[0] == "mtp over none, by class of prompts: code 1.50x, prose 0.90x; worst prose 0.90x"
    settings = {"model": "m", "gpu": "g", "build": "auto"}
    told = scope(*(replace(t, settings=settings, temperature=0.5) for t in FOUR))
    assert told[1:] == ["of model m; device g; temperature 0.5", "the record does not say the build"]
    full = scope(*(replace(t, settings={**settings, "build": "b"}, temperature=0.5) for t in FOUR))
    assert full[1:] == ["of model m; device g; build b; temperature 0.5"]


FULL = Trial("line 2", "x", counted=120, distinct=80, first=2, seconds=10.0, streams=2, startup_counted=12,
             startup_distinct=8, startup_seconds=2.0, prompt_tokens=30, prefill_seconds=2.5, spread=0.25, drafted=60,
             tested=50, accepted=40, rounds=40, positions=(0.75, 0.5))  # fmt: skip


def test_a_row_of_the_report_by_hand() -> None:
    text = format_audit(judge(record(FULL), AuditOptions(baseline=4.0))).splitlines()
    begin = text.index("x (line 2)")
    assert text[begin + 1 : begin + 5] == [
        "  counted 122, distinct 82, 2 of them before the window in 10.000 s, 2 answer(s)",
        "  tok/s: one answer 4.0 ± 0.25; sum of answers 8.0; first token inside 4.1; start-up rounds left out 4.5; as "
        "counted 12.0; prefill 12.0; total, prompt and generated 9.0",
        "  time to one answer 12.500 s",
        "  guesses: drafted 60, tested 50, accepted 40 in 40 steps: accepted/tested 0.800, accepted/drafted 0.667, "
        "biased 0.800, emitted/drafted 1.333, accepted/step 1.000, mean_length 2.000; by place 0.75, 0.50",
    ]
    bare = replace(FULL, counted=80, first=0, streams=1, prefill_seconds=math.nan, spread=math.nan, prompt_tokens=0,
                   startup_seconds=0.0, drafted=None, accepted=None)  # fmt: skip
    text = format_audit(judge(record(bare), AuditOptions(baseline=8.0))).splitlines()
    begin = text.index("x (line 2)")
    assert text[begin + 1 : begin + 4] == [
        "  counted 80, distinct 80 in 10.000 s, 1 answer(s)", "  tok/s: one answer 8.0",
        "  time to one answer 10.000 s, prefill not recorded",
    ]  # fmt: skip
    emitted = format_audit(judge(record(row("", 9.0, emitted=40)), AuditOptions())).splitlines()
    assert emitted[emitted.index("x (line 2)") + 1 :][:2] == ["  40 tokens, 1 answer(s)", "  tok/s: one answer 9.0"]


def test_the_claim_and_its_readings_are_listed() -> None:
    text = format_audit(judge(record(FULL), AuditOptions(claim=12.2, per="aggregate"))).splitlines()
    assert text[2] == (
        "claim 12.2 tok/s is, for x: tokens emitted twice counted twice, the first token inside, though it was out "
        "before the window opened; put right 8.2 tok/s"
    )
    rates = [float(line.split()[0]) for line in text if line.startswith("  ") and " tok/s  " in line]
    assert rates[0] == 4.0 and {6.0, 8.0, 12.0, 6.1} <= set(rates)
    none = format_audit(judge(record(FULL), AuditOptions(claim=99.0))).splitlines()
    assert none[2] == "claim 99 tok/s: no reading of the record gives it"
    marked = format_audit(judge(record(replace(FULL, counted=80)), AuditOptions(claim=4.0))).splitlines()
    assert [line for line in marked if line.endswith("<- published")] == [
        "       4.00 tok/s  distinct tokens of one answer, prefill outside  <- published"
    ]


def test_comparisons_are_listed_with_their_interval() -> None:
    text = format_audit(judge(record(*FOUR), AuditOptions())).splitlines()
    assert (
        "  mtp over none: 1.500x, 95 % interval 1.500 to 1.500 over pairs of runs; smallest visible effect 1.000x"
        in text
    )
    single = format_audit(judge(record(*PAIR), AuditOptions())).splitlines()
    assert "  mtp over none: 1.500x, no interval" in single
    wide = format_audit(judge(record(row("none", 10.0), row("mtp", 36.0, streams=4)), AuditOptions())).splitlines()
    assert "  mtp over none: one answer 0.90x, sum 3.60x of the baseline, no interval" in wide


def test_long_reports_are_cut_and_say_so() -> None:
    many = [replace(row("", 10.0 + k), label=f"row {k}", place=f"line {k}") for k in range(43)]
    text = format_audit(judge(record(*many), AuditOptions(requested=1))).splitlines()
    assert sum(line.startswith("row ") for line in text) == 40 and "and 3 more (--json has all)" in text
    assert text[1] == "r: a table, 43 row(s)"
    depths = [replace(row(arm, rate, depth=k)) for k in range(26) for arm, rate in (("none", 10.0), ("mtp", 12.0))]
    text = format_audit(judge(record(*depths), AuditOptions())).splitlines()
    assert "  and 2 more comparisons (--json has all)" in text
    emitted = [replace(trial, emitted=5) for trial in many[:6]]
    text = format_audit(judge(record(*emitted), AuditOptions(requested=4))).splitlines()
    assert "EMITTED_MORE_THAN_REQUESTED  and 2 more of this kind (--json has all)" in text
    assert text[-1] == "6 flag(s): EMITTED_MORE_THAN_REQUESTED"
    exact = format_audit(judge(record(*many[:40]), AuditOptions())).splitlines()
    assert not [line for line in exact if "more (--json" in line] and exact[-1] == "nothing flagged"


def test_kernels_are_listed() -> None:
    one = Launches("gemv", "line 2", calls=2, us=40.5, us_low=40.0, us_high=41.0, registers=32.0, dram_bytes=12e6,
                   share=0.25, hit_rate=0.9, share_of_peak=0.5)  # fmt: skip
    text = format_audit(
        judge(record(launches=(one, Launches("empty", "line 3", calls=1))), AuditOptions())
    ).splitlines()
    begin = text.index("gemv (line 2): 2 launch(es)")
    assert text[begin + 1] == (
        "  40.50 us a launch, at least 40.00, at most 41.00, 32 registers, 12.0 MB from memory, 25.0 % of all kernels' "
        "time, 90.0 % hit rate, 50.0 % of the peak"
    )
    assert text[begin + 3] == "  no figure" and text[1] == "r: a table, 2 row(s)"


def test_what_is_not_known_is_null_in_json() -> None:
    found = json.loads(to_json(judge(record(row("", 9.0)), AuditOptions())))
    assert found["trials"][0]["seconds"] is None and found["trials"][0]["per_answer_tok_s"] == 9.0
    assert found["exit_code"] == 0 and found["claim"] is None and found["comparisons"] == []


def test_notes_of_the_report() -> None:
    def notes(*trials: Trial, **options: object) -> list[str]:
        return judge(record(*trials), AuditOptions(**options)).notes  # type: ignore[arg-type]

    two = row("", 9.0, streams=2, streams_known=True)
    assert notes(two, two, streams=4) == ["4 streams were claimed; x has 2 answer(s) at a time"]
    assert notes(two, streams=2) == [] == notes(replace(two, streams_known=False), streams=4)
    assert notes(row("", 9.0, samples=(2.0,))) == ["x (line 2): one repetition, so no spread is known"]
    assert notes(row("", 9.0, samples=(2.0, 2.0))) == []
    arms = [row("none", 9.0, settings={"seed*": "1", "k*": "2"}), row("mtp", 9.5, settings={"seed*": "3", "k*": "2"})]
    assert notes(*arms) == ["the arms also differ in seed"] and notes(arms[0], replace(arms[0], arm="mtp")) == []
    assert notes(row("Forced", 9.0))[0].startswith("Forced: an acceptance that was set by hand")
    assert notes(row("synthetic mtp", 9.0))[0].startswith("synthetic mtp: an acceptance")
    cold = [Trial("l", arm, arm=arm, counted=100, distinct=100, seconds=5.0, samples=samples)
            for arm, samples in (("none", (12.0, 5.0, 5.0, 5.0)), ("mtp", (4.0, 4.0, 4.0, 4.0)))]  # fmt: skip
    assert not [note for note in notes(cold[0], replace(cold[1], samples=())) if "left out" in note]
    assert notes(*cold)[-1] == "mtp over none, the first repetition of each side left out: 1.250x, 1.250 to 1.250"


def test_the_baselines_own_faults_are_its_own() -> None:
    base = Record(Path("base.csv"), "a table", (row("", 5.0, emitted=9, requested=8, test="t"),))
    found = judge(record(row("", 9.0, test="t")), AuditOptions(requested=99), base)
    own = [flag.sentence for flag in found.flags if flag.code == "EMITTED_MORE_THAN_REQUESTED"]
    assert own == [
        "baseline base.csv, x (line 2): 9 tokens emitted for one answer, 8 were requested; the loop counts something "
        "else than tokens"
    ]
    unmatched = judge(record(row("", 9.0, test="u")), AuditOptions(), base)
    assert "no row of r has a row of the same test, depth, prompt and width in base.csv, which has x" in [
        flag.sentence for flag in unmatched.flags
    ]
