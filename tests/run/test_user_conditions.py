"""Conditions that users have, on SmolLM2: its own chat template, answers that end by themselves, a sampler chain."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest

from bench.errors import UserError
from bench.judge.measure.chi_square import DIFFERENT, Group, assess
from bench.plan.settings import Config, EngineConfig, MethodConfig
from bench.run import draw_counts
from bench.run.arms import Arms, Prompt, Task
from bench.run.draw_counts import Distribution
from bench.run.prompt_text import TEMPLATE, facts, plain, says
from bench.run.worker import tokenized
from pti_loop.engine import Unsupported
from pti_loop.gguf.file import read
from pti_loop.parameters import resolve

QUESTION = "What is 2+2? Answer with one number."
ASKED = ("<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
         f"<|im_start|>user\n{QUESTION}<|im_end|>\n<|im_start|>assistant\n")  # fmt: skip
BRIEF = "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
COLUMNS = ("count", "probability", "moved")
START, STOP = 1, 2
"""SmolLM2's ids of `<|im_start|>` and `<|im_end|>`, which ends an answer too."""


@pytest.fixture(scope="module")
def file(smollm2):
    return read(Path(smollm2))


def config(method="lookup", **given) -> Config:
    own = {key: given.pop(key) for key in ("draft", "ngram", "emission", "rebuild", "window") if key in given}
    made = Config(method=MethodConfig(method, dict(resolve(method, own))), engine=EngineConfig(threads=1), streams=2)
    made.measure.sharp, made.profile = False, False
    made.prompts.items = [{"id": "sum", "class": "math", "text": QUESTION}]
    for key, value in given.items():
        setattr(made, key, value)
    return made


def test_the_model_s_own_template_is_what_the_file_says(file, model):
    made = config()
    assert says(made, file)(made.prompts.items[0]) == QUESTION
    made.prompts.template = "model"
    said = says(made, file)
    assert said({"id": "a", "text": QUESTION}) == ASKED
    assert said({"id": "a", "text": "Hi", "system": "Be brief."}) == BRIEF
    assert plain({"text": "Hi", "system": "Be brief."}) == "Be brief.\n\nHi"
    (prompt,) = tokenized(model, made, file)
    assert prompt.tokens.count(START) == 3 and prompt.tokens.count(STOP) == 2
    assert model.detokenize(prompt.tokens) == ASKED
    digest = hashlib.sha256(file.metadata[TEMPLATE].encode()).hexdigest()
    assert facts(made, file) == {"chat_template_sha256": digest} and facts(config(), file) == {}


def test_words_of_a_prompt_are_no_special_tokens_without_a_template(file, model):
    made = config()
    made.prompts.items = [{"id": "a", "class": "x", "text": ASKED}]
    (prompt,) = tokenized(model, made, file)
    assert START not in prompt.tokens and STOP not in prompt.tokens


def test_a_file_without_a_template_and_one_that_refuses(file):
    made = config()
    made.prompts.template = "model"

    class Other:
        name, path, metadata = "m", file.path, {}

    with pytest.raises(Unsupported, match=r"m has no chat template in its file .*use prompts\.template=none"):
        says(made, Other())
    with pytest.raises(Unsupported, match="an address has none"):
        says(made, None)
    Other.metadata = {TEMPLATE: "{{ raise_exception('no system role') }}"}
    with pytest.raises(UserError, match=r"refuses the prompt 'sum' .*no system role"):
        says(made, Other())(made.prompts.items[0])
    Other.metadata = {TEMPLATE: "{% if %}"}
    with pytest.raises(Unsupported, match="cannot be read"):
        says(made, Other())
    Other.metadata = {TEMPLATE: "{{ strftime_now('%d %b %Y') }}: {{ messages[-1].content }}"}
    assert says(made, Other())({"id": "a", "text": "Hi"}) == "01 Jan 2026: Hi", "the same text every day"


@pytest.mark.parametrize(
    ("method", "more"),
    [("lookup", {}), ("packed", {}), ("stagger", {}), ("stagger", {"emission": "distinct", "rebuild": "exact"}),
     ("jacobi", {"temperature": 0.7, "top_k": 40, "top_p": 0.95, "repeat_penalty": 1.1})],
)  # fmt: skip
def test_answers_end_by_themselves_in_both_arms(file, model, method, more):
    """A chat's answer to a small sum is short; the arms' own texts and ends are compared by their ids."""
    made = config(method, n_predict=32, ignore_eos=False, **more)
    made.prompts.template = "model"
    made.prompts.items += [{"id": "hi", "class": "chat", "text": "Say hello."}]
    prompts = tokenized(model, made, file)
    opened = Arms(model, made, prompts[0].tokens)
    try:
        assert opened.settings.ends == tuple(model.end_tokens)
        task = Task(0, tuple(prompts[: opened.answers]))
        plain, mine = (opened.run(arm, task, 7, 0) for arm in ("baseline", "treatment"))
    finally:
        opened.close()
    for answer in range(opened.answers):
        left, right = plain.text(answer), mine.said(answer)
        for text in (left, right):
            assert all(token not in model.end_tokens for token in text[:-1])
            assert text[-1] in model.end_tokens or len(text) == 32
        assert left[0] == right[0]
        if not answer:
            assert left == right, "the answer to a sum is the same"
            assert len(left) < 32 or made.temperature, "and a likely one is short"


CHAIN = {"top_k": 30, "top_p": 0.9, "min_p": 0.02, "repeat_penalty": 1.3, "presence_penalty": 0.2}


def test_draws_of_a_method_have_the_chain_s_distribution(model, monkeypatch):
    """Tokens of prompt lookup, half of them against a guess, counted against plain decoding's probabilities.

    A penalty decides them: the text repeats itself, and the guess is a token that was said.
    """
    monkeypatch.setattr(draw_counts, "POSITIONS", 2)
    made = config("lookup", ngram=1, draft=1, temperature=0.7, n_predict=8, **CHAIN)
    made.engine.n_ctx, made.measure.distribution = 64, 60
    tokens = tuple(model.tokenize("one two three, one two four, one two"))
    opened = Arms(model, made, tokens)
    try:
        task = Task(0, (Prompt("text", "prose", tokens),))
        found = [(task, opened.run("treatment", task, 1, 0))]
        counts, _ = Distribution(opened, made, found, lambda *_: None).run(("treatment",))
        made.repeat_penalty = 1.0
        other, _ = Distribution(opened, made, found, lambda *_: None).run(("treatment",))
    finally:
        opened.close()
    groups = [[row for row in counts if row.group == number] for number in {row.group for row in counts}]
    assert all(sum(row.probability for row in rows) == pytest.approx(1) for rows in groups)
    told = assess([Group(*(np.array([getattr(row, name) for row in rows]) for name in COLUMNS))
                   for rows in groups])  # fmt: skip
    assert told.verdict != DIFFERENT and told.tv < told.tv_high
    shares = [{row.token: row.probability for row in rows if row.group == 0} for rows in (counts, other)]
    assert shares[0] != shares[1], "the exact probabilities are those behind the penalty"
