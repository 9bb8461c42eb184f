"""What was configured once, measured once, and named once: where each begins to be told, and in which words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from bench.judge.invariants import grades, inputs, settings, texts
from tests.judge.judge_cells import Cell, case_of, guess_cell

Check = Callable[[Any], str | None]


def said(check: Check, change: Callable[[Cell], Any] = lambda cell: None) -> str | None:
    cell = guess_cell()
    cell.config["schema"] = 3
    cell.facts["process"] = {"draws": "argmax"}
    cell.facts["engine"]["again"] = dict(cell.facts["engine"]["baseline"])
    change(cell)
    return check(case_of(cell))


def engine(arm: str, **values: Any) -> Callable[[Cell], Any]:
    return lambda cell: cell.facts["engine"][arm].update(values)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda cell: None, None),
        (engine("baseline", type_k="q8_0"), "the context of baseline has type_k=q8_0, and type_k=f16 was configured"),
        (engine("again", type_v="q8_0"), "the context of again has type_v=q8_0, and type_v=f16 was configured"),
        (engine("baseline", threads=3), "the context of baseline has threads=3, and threads=2 was configured"),
        (engine("baseline", kv_unified=True), None),
        (engine("baseline", type_k=None), None),
        (engine("treatment", type_k="q8_0"), None),
        (engine("baseline", n_seq_max=2), "the context of baseline holds 2 sequences, and plain decoding's holds one"),
        (engine("again", n_seq_max=3), "the context of again holds 3 sequences, and plain decoding's holds one"),
        (lambda cell: cell.config.update(streams=5),
         "the treatment's context holds 4 sequences, and 5 streams were decoded in it"),
        (lambda cell: cell.config.update(streams=4), None),
        (lambda cell: (cell.config.update(streams=5), cell.facts["engine"]["treatment"].pop("n_seq_max")), None),
        (lambda cell: (cell.config["engine"].update(kv_unified=True)),
         "the context of baseline has kv_unified=False, and kv_unified=True was configured"),
        (lambda cell: (engine("baseline", threads=3)(cell), cell.config.pop("schema")), None),
        (lambda cell: (engine("baseline", threads=3)(cell), cell.facts["model"].update(quantization="F32 as BF16")),
         None),
        (lambda cell: (engine("baseline", threads=3)(cell), cell.config.update(engine={})), None),
        (lambda cell: cell.facts.update(engine={}), None),
    ],
)  # fmt: skip
def test_contexts_have_the_settings_that_were_asked_for(change: Callable[[Cell], Any], told: str | None) -> None:
    assert said(settings.settings_as_configured, change) == told


def items(*texts_of: tuple[str, Any]) -> list[dict[str, Any]]:
    return [{"id": name, "class": "prose", "text": text} for name, text in texts_of]


@pytest.mark.parametrize(
    ("text", "told"),
    [("ninebytes", None), ("8 bytes.", "'p0' has 10 prompt tokens, and its text 9 bytes"), ("äöü€", None),
     (["a", "list"], None)],
)  # fmt: skip
def test_a_prompt_has_no_more_tokens_than_its_text_has_bytes_and_a_first_one(text: Any, told: str | None) -> None:
    def change(cell: Cell) -> None:
        cell.config["prompts"] = {"items": items(("p0", text))}

    assert said(settings.prompts_as_configured, change) == told


def test_a_group_of_prompts_has_all_of_their_bytes() -> None:
    def together(text: str) -> Callable[[Cell], None]:
        def change(cell: Cell) -> None:
            cell.runs["prompt"] = cell.runs["prompt"].replace({"p0": "p0+p9"})
            cell.config["prompts"] = {"items": items(("p0", "1234"), ("p9", text))}

        return change

    assert said(settings.prompts_as_configured, together("5678")) is None
    assert "its text 9 bytes" in str(said(settings.prompts_as_configured, together("567")))
    assert said(settings.prompts_as_configured) is None


def test_a_prompt_has_one_length() -> None:
    def change(cell: Cell) -> None:
        cell.runs.loc[3, "n_prompt"] = 12

    assert said(settings.prompts_as_configured, change) == "'p0' has 10 prompt tokens in one run and 12 in another"


def test_tokens_are_of_the_vocabulary() -> None:
    most = {name: int(getattr(guess_cell(), table)[name].max())
            for table, name in (("ledger", "token"), ("draws", "guess"), ("draws", "drawn"))}  # fmt: skip
    size = max(most.values()) + 1
    assert said(settings.tokens_of_the_vocabulary, lambda cell: cell.facts["model"].update(n_vocab=size)) is None
    told = said(settings.tokens_of_the_vocabulary, lambda cell: cell.facts["model"].update(n_vocab=most["guess"]))
    assert told == f"draws: guess is {most['guess']} in a row, and the vocabulary has {most['guess']} tokens"
    told = said(settings.tokens_of_the_vocabulary, lambda cell: cell.facts["model"].update(n_vocab=most["token"]))
    assert told == f"ledger: token is {most['token']} in a row, and the vocabulary has {most['token']} tokens"
    assert said(settings.tokens_of_the_vocabulary, lambda cell: cell.facts["model"].update(n_vocab=0)) is None
    assert said(settings.tokens_of_the_vocabulary) is None


def test_a_made_name_is_of_its_parts() -> None:
    def about(name: str, **machine: Any) -> Callable[[Cell], Any]:
        def change(cell: Cell) -> None:
            cell.__dict__["machine"] = name
            cell.env["machine"] |= {"cpu": "AMD EPYC", "cores": 2, "gpus": [], **machine}

        return change

    assert said(inputs.name_is_made, about("amd-epyc-2c")) is None
    assert said(inputs.name_is_made, about("amd-epyc-4c")) == (
        "its processor and GPU give the name amd-epyc-2c, and it lies among the cells of amd-epyc-4c")  # fmt: skip
    assert said(inputs.name_is_made, about("mine")) is None
    assert said(inputs.name_is_made, about("amd-epyc-4c", cpu="")) is None
    assert said(inputs.name_is_made, about("h200-amd-epyc-2c", gpus=[{"name": "H200"}])) is None
    assert said(inputs.name_is_made, about("amd-epyc-2c", gpus=[{"name": "H200"}])) is not None


def trial(values: dict[str, Any], key: str, other: dict[str, Any] | None = None, **told: str) -> str | None:
    def change(cell: Cell) -> None:
        became = ", ".join(str(value) for value in values.values())
        words = f"build {became}" if "build" in values else f"{', '.join(values)}={became}"
        cell.config["engine"] |= {"threads": 2, "type_k": "f16"}
        cell.config.update(kind="trial", treatment={"engine": values, "declaration": {
            "key": key, "was": "2", "became": became, "words": words} | told})  # fmt: skip
        if other is not None:
            cell.env["treatment"] = other

    return said(inputs.difference_is_told, change)


def test_one_setting_is_on_trial() -> None:
    assert trial({"threads": 4}, "threads") is None
    assert trial({"threads": 4}, "type_k") == "cell.yaml says that type_k is on trial, and lists threads"
    assert trial({}, "type_k") == "cell.yaml says that type_k is on trial, and lists nothing"
    assert trial({"a": 1, "b": 2}, "a, b") is None
    assert trial({"threads": 4}, "threads", {"build": "x"}) == (
        "env.json has a build of the treatment's own, which is not on trial")  # fmt: skip
    assert trial({"build": "x"}, "build", {"build": "x"}) is None
    assert trial({"build": "x"}, "build", {"build": "y"}) == "build x is on trial, and env.json describes y"
    assert trial({"build": "x"}, "build") == "build x is on trial, and env.json describes none"
    wrong = {"build": "x+0123456789", "libraries": {"libggml.so": "ab"}}
    assert "its libraries make x+" in str(trial({"build": "x+0123456789"}, "build", wrong))


@pytest.mark.parametrize(
    ("values", "key", "told", "sentence"),
    [
        ({"threads": 4}, "threads", {"became": "8"}, "cell.yaml says that threads became 4, and calls it '8'"),
        ({"threads": 4}, "threads", {"words": "more"}, "cell.yaml says that threads became 4, and calls it 'more'"),
        ({"threads": 4}, "threads", {"was": "1"}, "cell.yaml says that threads was 2, and calls it '1'"),
        ({"type_k": "q8_0"}, "type_k", {"was": "f16"}, None), ({"unset": 3}, "unset", {"was": "any"}, None),
        ({"kv_unified": True}, "kv_unified", {"became": "true", "words": "kv_unified=true", "was": "false"}, None),
        ({"server": "/a/b"}, "server", {"became": "b", "words": "server b"}, None),
        ({"build": "x"}, "build", {"became": "packed", "words": "build packed"}, "build x is on trial, and env.json "
         "describes none"),
        ({"build": "x"}, "build", {"became": "packed", "words": "build stock"},
         "cell.yaml says build packed, and calls it 'build stock'"),
    ],
)  # fmt: skip
def test_what_is_on_trial_is_called_by_its_value(values: dict[str, Any], key: str, told: dict[str, str],
                                                 sentence: str | None) -> None:  # fmt: skip
    assert trial(values, key, None, **told) == sentence


@pytest.mark.parametrize(
    ("asked", "own", "told"),
    [
        ({"n_ctx": 512}, {"n_ctx": 512}, None), ({"n_ctx": 500}, {"n_ctx": 512}, None),
        ({"n_ctx": 512}, {"n_ctx": 767}, None),
        ({"n_ctx": 512}, {"n_ctx": 768}, "the context of baseline has 768 tokens, and n_ctx=512 was configured"),
        ({"n_ctx": 513}, {"n_ctx": 512}, "the context of baseline has 512 tokens, and n_ctx=513 was configured"),
        ({"n_batch": 2048}, {"n_batch": 512}, None), ({"n_batch": 256}, {"n_batch": 256}, None),
        ({"n_batch": 256}, {"n_batch": 512}, "the context of baseline has n_batch=512, and n_batch=256 was configured"),
        ({"n_ubatch": 8}, {"n_ubatch": 4}, "the context of baseline has n_ubatch=4, and n_ubatch=8 was configured"),
        ({"flash_attn": "on"}, {"flash_attn": "enabled"}, None), ({"flash_attn": "off"}, {"flash_attn": "off"}, None),
        ({"flash_attn": "auto"}, {"flash_attn": "disabled"}, None),
        ({"flash_attn": "on"}, {"flash_attn": "disabled"},
         "the context of baseline has flash_attn=disabled, and flash_attn=on was configured"),
        ({"n_gpu_layers": 0}, {"layers_offloaded": 0}, None), ({"n_gpu_layers": -1}, {"layers_offloaded": 3}, None),
        ({"n_gpu_layers": 0}, {"layers_offloaded": 3},
         "the context of baseline has 3 layers offloaded, and none was to be"),
        ({"sampler": "device"}, {"sampler": "host"},
         "the context of baseline has sampler=host, and sampler=device was configured"),
        ({"sampler": "device"}, {}, None),
    ],
)  # fmt: skip
def test_contexts_are_as_they_were_asked_for(asked: dict[str, Any], own: dict[str, Any], told: str | None) -> None:
    def change(cell: Cell) -> None:
        cell.config["engine"] |= asked
        cell.facts["engine"].pop("again")
        cell.facts["engine"]["baseline"].update(own)

    assert said(settings.settings_as_configured, change) == told


def test_a_context_has_room_for_what_stands_before_the_prompts() -> None:
    def deep(length: int) -> Callable[[Cell], Any]:
        return lambda cell: (cell.config.update(depth=1000), engine("baseline", n_ctx=length)(cell),
                             engine("again", n_ctx=length)(cell))  # fmt: skip

    assert said(settings.settings_as_configured, deep(1512)) is None
    assert said(settings.settings_as_configured, deep(512)) == (
        "the context of baseline has 512 tokens, and n_ctx=1512 was configured")  # fmt: skip


def test_a_processors_memory_is_read_by_the_threads_that_decode() -> None:
    def read(threads: int | None, cache: int = 1) -> Callable[[Cell], Any]:
        return lambda cell: cell.facts["bandwidth"].update(threads=threads, cache_bytes=cache)

    assert said(settings.facts_fit, read(2)) is None and said(settings.facts_fit, read(None)) is None
    assert said(settings.facts_fit, read(1, 0)) is None, "a card is read by one copy"
    assert said(settings.facts_fit, read(1)) == "the memory was read by 1 threads, and 2 decode"


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda cell: None, None),
        (lambda cell: cell.facts.update(engine={"baseline": {"n_ctx": 1}}),
         "it lacks the engine's settings of treatment"),
        (lambda cell: cell.facts["engine"].pop("baseline"), "it lacks the engine's settings of baseline"),
        (lambda cell: cell.facts.update(noise={}), None),
        (lambda cell: (cell.facts.update(noise={}), cell.config.update(measure={"noise_prompts": 1})),
         "it lacks the noise between shapes of a decode"),
        (lambda cell: cell.config.update(measure={"noise_prompts": 1}), None),
        (lambda cell: cell.facts.update(bandwidth={}), "it lacks the read bandwidth"),
        (lambda cell: (cell.facts.update(bandwidth={}), cell.facts["model"].update(layers_offloadable=31),
                       cell.facts["engine"]["treatment"].update(layers_offloaded=20)), None),
        (lambda cell: (cell.facts.update(bandwidth={}), cell.facts["model"].update(layers_offloadable=31),
                       cell.facts["engine"]["treatment"].update(layers_offloaded=31)), "it lacks the read bandwidth"),
        (lambda cell: cell.facts.pop("process"), "it lacks the process that measured"),
        (lambda cell: (cell.facts.pop("process"), cell.config.update(schema=2)), None),
        (lambda cell: cell.facts["model"].update(step_bytes=0), "it lacks the bytes of the weights"),
        (lambda cell: (cell.facts.update(bandwidth={}), cell.facts["model"].update(step_bytes=0)),
         "it lacks the read bandwidth, the bytes of the weights"),
        (lambda cell: (cell.facts.update(bandwidth={}), cell.config.pop("schema")), None),
    ],
)  # fmt: skip
def test_what_every_cell_measures_is_there(change: Callable[[Cell], Any], told: str | None) -> None:
    assert said(inputs.facts_are_there, change) == told


def graded(row: dict[str, Any] | None = None, noise: dict[str, Any] | None = None, **config: Any) -> str | None:
    """What is said of one answer's grade, the others being equal to the baseline's."""

    def change(cell: Cell) -> None:
        cell.config.update(config)
        cell.facts["noise"] = noise or {"positions": 64}
        if row is not None:
            first = {"position": 5, "gap_arm": 0.2, "quantity": "logit_gap"}
            forced = {"positions": 36, "disagreements": 1, "worst_gap": 0.2}
            answer = next(one for one in cell.facts["lossless"] if one["arm"] == "treatment")
            answer |= {"first_difference": first, "teacher_forced": forced, **row}

    return said(grades.replays_fit, change)


def forced(**values: Any) -> dict[str, Any]:
    return {"teacher_forced": {"positions": 36, "disagreements": 1, "worst_gap": 0.2, **values}}


@pytest.mark.parametrize(
    ("row", "told"),
    [
        (None, None), ({}, None), (forced(positions=41), None),
        (forced(positions=42), "was replayed over 42 positions with 1 disagreements, and has 41"),
        (forced(disagreements=36), None),
        (forced(disagreements=37), "was replayed over 36 positions with 37 disagreements, and has 41"),
        (forced(disagreements=0), "has a replay that prefers the arm's token by 0.2, and disagrees nowhere so far"),
        (forced(worst_gap=0.1), "prefers the arm's token by 0.2"), (forced(worst_gap=0.3), None),
        ({"arm_forced": {"positions": 36, "disagreements": 1, "worst_gap": 0.1}}, "prefers the arm's token by 0.2"),
        ({"arm_forced": {"positions": 36, "disagreements": 1, "worst_gap": 0.2}, **forced(disagreements=0)}, None),
        ({"teacher_forced": None}, "has a first difference or a replay that follows it, and they come together"),
        ({"first_difference": None}, "has a first difference or a replay that follows it, and they come together"),
        ({"n": 40}, "is compared over 40 tokens, and it has more"), ({"n": 41}, None),
        ({"n": 42}, "is compared over 42 tokens, and 41 were asked for"),
        ({"first_difference": {"position": 5, "gap_arm": 0.2}}, None),
        ({"first_difference": {"position": 5, "gap_arm": 0.2, "quantity": "cdf_distance"}},
         "differs by 'cdf_distance', and at this temperature it is a logit_gap"),
        ({"first_difference": {"position": 5, "gap_arm": 0.0}, **forced(disagreements=0, worst_gap=0.0)}, None),
    ],
)  # fmt: skip
def test_replays_fit_their_answers(row: dict[str, Any] | None, told: str | None) -> None:
    found = graded(row)
    assert found is None if told is None else told in str(found)


def test_the_noise_disagrees_no_more_often_than_it_has_positions() -> None:
    assert graded(noise={"positions": 64, "disagreements": 64}) is None
    assert graded(noise={"positions": 64, "disagreements": 65}) == (
        "the noise has 65 disagreements at 64 positions")  # fmt: skip
    logits = {"first_difference": {"position": 5, "quantity": "logit_gap"}}
    assert "at this temperature it is a cdf_distance" in str(graded(logits, temperature=0.7))


def untimed(*rows: tuple[str, int, list[tuple[int, int]]], **measure: Any) -> str | None:
    """(prompt, tokens, rounds of (count, width)) as they are stored."""

    def change(cell: Cell) -> None:
        cell.config.update(n_predict=9, measure={"texts": 2, "per_class": 1, **measure}, prompts={"items": [
            {"id": f"{kind}{at}", "class": kind} for kind in ("prose", "code") for at in range(3)]})  # fmt: skip
        cell.facts["untimed"] = [{"prompt": name, "tokens": tokens, "rounds": [
            {"count": count, "width": width} for count, width in rounds]} for name, tokens, rounds in rows]  # fmt: skip

    return said(texts.untimed_as_configured, change)


NAMES = ("code1", "code2", "prose1", "prose2")


@pytest.mark.parametrize(
    ("tokens", "rounds", "told"),
    [(8, [(2, 3), (1, 2)], None), (8, [(2, 3), (1, 1)], "has 8 tokens of 7 rows in 3 rounds"),
     (7, [(2, 4)], "has 7 tokens, and 8 were asked for"), (9, [(3, 4)], "has 9 tokens, and 8 were asked for"),
     (8, [], "has 8 tokens of 0 rows in 0 rounds")],
)  # fmt: skip
def test_untimed_texts_are_those_behind_the_timed_ones(tokens: int, rounds: list, told: str | None) -> None:
    good = [(name, 8, [(8, 1)]) for name in NAMES]
    found = untimed(*good[:3], ("prose2", tokens, rounds))
    assert found is None if told is None else told in str(found) and "'prose2'" in str(found)


def test_untimed_texts_that_nobody_asked_for_and_those_that_lack() -> None:
    good = [(name, 8, [(8, 1)]) for name in NAMES]
    assert untimed(*good) is None
    assert untimed(*good[:3]) == "4 further texts were configured, and 3 are stored, or others"
    assert untimed(*good[::-1]) is not None and untimed(*good[:2], classes=["code"]) is None
    assert untimed(*good[::2], texts=1) is None and untimed(texts=0) is None
    assert untimed(("code0", 8, [(8, 1)]), ("prose0", 8, [(8, 1)]), per_class=0, texts=1) is None
