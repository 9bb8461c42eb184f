"""The chain before a draw against three oracles: llama.cpp's own samplers, transformers' processors, numpy alone."""

from __future__ import annotations

import ctypes
import math

import llama_cpp
import numpy as np
import pytest

from pti_loop.chain import Chain, largest, nucleus
from pti_loop.sampling import Sampler

N = 3000
PENALTIES = {"repeat_penalty": 1.3, "frequency_penalty": 0.2, "presence_penalty": 0.4}
CHAINS = [
    {"top_k": 40}, {"top_p": 0.9}, {"min_p": 0.05}, {"top_k": 40, "top_p": 0.95, "min_p": 0.05}, {"top_k": 1},
    {"top_p": 1e-6}, {"top_k": 5000, "top_p": 0.9999}, {"min_p": 0.9999}, {"top_p": 0.8, "min_p": 0.2},
    {"repeat_penalty": 1.1}, PENALTIES, PENALTIES | {"repeat_last_n": 8}, PENALTIES | {"repeat_last_n": -1},
    PENALTIES | {"top_k": 20, "top_p": 0.9, "min_p": 0.02}, {"repeat_penalty": 0.7, "top_k": 10},
    {"repeat_penalty": 1.3, "repeat_last_n": 0},
]  # fmt: skip
BOTH = [chain for chain in CHAINS if not chain.get("frequency_penalty") and chain.get("repeat_last_n") != 0]
"""Those whose penalties transformers has."""


def rows(seed: int, spread: float = 3.0):
    """Logits, and a text of tokens that are likely, some of them many times."""
    random = np.random.default_rng(seed)
    logits = (spread * random.standard_normal(N)).astype(np.float32)
    likely = np.argsort(-logits)[:30]
    return logits, [int(token) for token in random.choice(np.concatenate([likely, likely[:3], np.arange(5)]), 100)]


def by_llama_cpp(chain: dict, logits: np.ndarray, text: list[int], temperature: float) -> dict[int, float]:
    """Probability by token that is left, by llama.cpp's samplers in the order of its own default."""
    own = {**Chain().as_dict(), **chain}
    made = llama_cpp.llama_sampler_chain_init(llama_cpp.llama_sampler_chain_default_params())
    last = len(text) if own["repeat_last_n"] < 0 else int(own["repeat_last_n"])
    for one in (
        llama_cpp.llama_sampler_init_penalties(len(logits), last, own["repeat_penalty"], own["frequency_penalty"],
                                               own["presence_penalty"]),
        llama_cpp.llama_sampler_init_top_k(own["top_k"]), llama_cpp.llama_sampler_init_top_p(own["top_p"], 1),
        llama_cpp.llama_sampler_init_min_p(own["min_p"], 1), llama_cpp.llama_sampler_init_temp(temperature),
        llama_cpp.llama_sampler_init_dist(1),
    ):  # fmt: skip
        llama_cpp.llama_sampler_chain_add(made, one)
    data = (llama_cpp.llama_token_data * len(logits))(
        *[llama_cpp.llama_token_data(token, float(logit), 0.0) for token, logit in enumerate(logits)])  # fmt: skip
    found = llama_cpp.llama_token_data_array(data, len(logits), -1, False)
    try:
        for token in text:
            llama_cpp.llama_sampler_accept(made, token)
        llama_cpp.llama_sampler_apply(made, ctypes.byref(found))
        return {found.data[place].id: found.data[place].p for place in range(found.size)}
    finally:
        llama_cpp.llama_sampler_free(made)


def ours(chain: dict, logits: np.ndarray, text: list[int], temperature: float) -> dict[int, float]:
    """The same of the chain and a softmax in float64."""
    row = Sampler(len(logits), temperature, 0, chain=Chain(**chain)).seen(logits, 1, text).astype(np.float64)
    weights = np.exp((row - row.max()) / temperature)
    shares = weights / weights.sum()
    return {int(token): float(shares[token]) for token in np.flatnonzero(shares > 0)}


def the_same(mine: dict[int, float], theirs: dict[int, float]) -> None:
    """Tokens and shares. Sums in single precision may take one more of the rarest."""
    named = {token for token, share in (*mine.items(), *theirs.items()) if share > 1e-4}
    assert abs(len(mine) - len(theirs)) < 0.01 * N
    assert named <= set(mine) and named <= set(theirs), "one of the two cuts a token that the other leaves"
    assert [mine[token] for token in named] == pytest.approx([theirs[token] for token in named], rel=2e-4)


@pytest.mark.parametrize("temperature", [0.3, 1.0, 1.7])
@pytest.mark.parametrize("chain", CHAINS, ids=str)
def test_it_is_llama_cpp_s_own(chain, temperature):
    for seed in range(6):
        logits, text = rows(seed)
        the_same(ours(chain, logits, text, temperature), by_llama_cpp(chain, logits, text, temperature))


@pytest.mark.parametrize("chain", BOTH, ids=str)
def test_it_is_that_of_transformers_where_both_have_it(chain):
    torch = pytest.importorskip("torch")
    made = pytest.importorskip("transformers.generation.logits_process")
    temperature = 0.8
    for seed in range(6):
        logits, text = rows(seed)
        ids, scores = torch.tensor([text]), torch.tensor(logits)[None]
        chain_of = []
        if "repeat_penalty" in chain:
            chain_of.append(made.RepetitionPenaltyLogitsProcessor(chain["repeat_penalty"]))
        if chain.get("top_k"):
            chain_of.append(made.TopKLogitsWarper(min(chain["top_k"], N)))
        if chain.get("top_p", 1.0) < 1:
            chain_of.append(made.TopPLogitsWarper(chain["top_p"]))
        if chain.get("min_p"):
            chain_of.append(made.MinPLogitsWarper(chain["min_p"]))
        for one in (*chain_of, made.TemperatureLogitsWarper(temperature)):
            scores = one(ids, scores)
        shares = torch.softmax(scores.double(), -1)[0].numpy()
        theirs = {int(token): float(shares[token]) for token in np.flatnonzero(shares > 0)}
        the_same(ours({**chain, "repeat_last_n": -1}, logits, text, temperature), theirs)


def test_a_penalty_is_the_formula():
    logits = np.array([2.0, -2.0, 1.0, 0.5], dtype=np.float32)
    row = Chain(repeat_penalty=2.0, frequency_penalty=0.5, presence_penalty=0.25).penalised(logits, [0, 1, 1, 9 % 4])
    assert row.tolist() == [2 / 2 - 0.5 - 0.25, -2 * 2 - 2 * 0.5 - 0.25 - 0.5 * 1, 1.0, 0.5]
    assert logits.tolist() == [2.0, -2.0, 1.0, 0.5], "the engine's own buffer is not written to"


def test_equal_logits_go_by_their_ids():
    logits = np.array([1, 3, 3, 3, 0, 3], dtype=np.float32)
    assert largest(logits, 2).tolist() == [1, 2] and largest(logits, 5).tolist() == [0, 1, 2, 3, 5]
    assert nucleus(logits, 0.3).tolist() == [1, 2]


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.99, 0.999999])
@pytest.mark.parametrize("spread", [0.01, 1.0, 8.0])
def test_a_nucleus_is_the_fewest_tokens_that_have_the_share(share, spread):
    """Flat rows need thousands of tokens, which the first look does not put in order."""
    for seed in range(5):
        logits, _ = rows(seed, spread)
        weights = np.exp(logits.astype(np.longdouble))
        shares, kept = weights / weights.sum(), nucleus(logits, share)
        assert shares[kept].sum() >= share - 1e-9
        assert shares[kept].sum() - shares[kept].min() < share + 1e-9
        assert logits[kept].min() >= np.delete(logits, kept).max(initial=-math.inf)


def test_usual_values_leave_the_row_itself():
    logits, text = rows(1)
    assert Sampler(N, 0.7, 0).seen(logits, 3, text) is logits
    assert Sampler(N, 0.0, 0, chain=Chain(top_k=1, top_p=0.1, min_p=0.5)).seen(logits, 3, text) is logits


def test_an_end_is_no_answer_s_first_token():
    logits = np.array([1, 5, 3, 0], dtype=np.float32)
    sampler = Sampler(4, 0.0, 0, ends=[1])
    assert [sampler.draw(logits, 0, 0, position).token for position in (0, 1)] == [2, 1]
    warm = Sampler(4, 0.5, 3, ends=[1])
    assert 1 not in {warm.draw(logits, answer, 0, 0).token for answer in range(200)}
    assert 1 in {warm.draw(logits, answer, 0, 1).token for answer in range(200)}


def test_draws_have_the_frequencies_of_the_chain():
    logits, text = rows(4)
    chain = {"top_k": 12, "top_p": 0.9, **PENALTIES}
    sampler, exact = Sampler(N, 0.9, 5, chain=Chain(**chain)), by_llama_cpp(chain, logits, text, 0.9)
    drawn = np.bincount([sampler.draw(logits, 0, 0, position, text).token for position in range(1, 8001)], minlength=N)
    tokens = list(exact)
    wanted = np.array([exact[token] for token in tokens]) * 8000
    assert drawn.sum() == drawn[tokens].sum()
    assert float(((drawn[tokens] - wanted) ** 2 / wanted).sum()) < 2.5 * len(tokens) + 10
    shares = np.array(list(exact.values()))
    assert sampler.draw(logits, 0, 0, 1, text).collision == pytest.approx(float((shares**2).sum()), rel=1e-3)
