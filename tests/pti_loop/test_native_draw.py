"""Draws against an oracle of their own, wherever u lies: by the compiled search, by numpy and by the engine's code."""

from __future__ import annotations

import ctypes
from pathlib import Path

import llama_cpp
import numpy as np
import pytest

from pti_loop import native_draw, sampling
from pti_loop.engine import ContextSpec
from pti_loop.native_draw import NativeDraw
from pti_loop.sampling import Sampler, WeighedDraw, uniform
from pti_loop.weights import by_ggml, by_numpy
from tests.pti_loop.loops import run, toy

GGML = by_ggml(Path(llama_cpp.__file__).parent / "lib" / "libggml-cpu.so")
TEMPERATURES = [0.05, 0.3, 0.7, 1.0, 1.5, 5.0]
ROOM = 1e-13
"""Float64 itself cannot tell a boundary that is nearer."""


def made(kind: str, n_vocab: int, temperature: float) -> Sampler:
    """A sampler that searches in one way."""
    sampler = Sampler(n_vocab, temperature, 0)
    if kind != "compiled":
        search = WeighedDraw(n_vocab, {"numpy": by_numpy, "ggml": GGML}[kind])
        sampler._search, sampler._slack = search, sampling.slack(n_vocab, search.added)
    assert isinstance(sampler._search, NativeDraw) == (kind == "compiled") and sampling.drawn_by() == "compiled"
    return sampler


def boundaries(logits: np.ndarray, temperature: float) -> np.ndarray:
    """The oracle: cumulative shares in extended precision, summed in order of ids."""
    steps = (logits.astype(np.longdouble) - np.longdouble(logits.max())) / np.longdouble(temperature)
    sums = np.add.accumulate(np.exp(steps))
    return sums / sums[-1]


def rows(n_vocab: int) -> list[np.ndarray]:
    """Logits as models have them, flat ones, sure ones, ties, and some with most tokens banned."""
    rng = np.random.default_rng(n_vocab)
    normal = (3.2 * rng.standard_normal(n_vocab) + 5).astype(np.float32)
    sure, banned = normal.copy(), normal.copy()
    sure[n_vocab // 2] = 40.0
    banned[rng.random(n_vocab) < 0.9] = -np.inf
    banned[-1] = 1.0
    return [normal, sure, banned, np.round(normal), np.zeros(n_vocab, dtype=np.float32), normal * 3 - 300]


def numbers(edges: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Random numbers, both ends, and both sides of boundaries, nearer than float32 can tell."""
    some = edges[rng.integers(0, len(edges), 12)].astype(np.float64)
    near = np.concatenate([some + gap for gap in (-1e-6, -1e-8, -1e-11, 1e-11, 1e-8, 1e-6)])
    every = np.concatenate([rng.random(20), near, [0.0, 1e-300, 1 - 2**-53]])
    return every[(every >= 0) & (every < 1)]


def wrong(sampler: Sampler, n_vocab: int, temperature: float) -> list[tuple[int, float]]:
    """(row, u) at which a sampler draws another token than the oracle."""
    found, rng = [], np.random.default_rng(7)
    for place, logits in enumerate(rows(n_vocab)):
        edges = boundaries(logits, temperature)
        for u in numbers(edges, rng):
            token = sampler.pick(logits, float(u)).token
            low = edges[token - 1] if token else np.longdouble(0)
            if not (low - ROOM <= u < edges[token] + ROOM and logits[token] > -np.inf):
                found.append((place, float(u)))
    return found


@pytest.mark.parametrize("temperature", TEMPERATURES)
@pytest.mark.parametrize("n_vocab", [1, 2, 31, 255, 256, 257, 4099])
@pytest.mark.parametrize("kind", ["compiled", "numpy", "ggml"])
def test_every_search_draws_the_token_of_the_rule(kind, n_vocab, temperature) -> None:
    assert wrong(made(kind, n_vocab, temperature), n_vocab, temperature) == []


@pytest.mark.parametrize(("kind", "temperature"), [("compiled", 0.3), ("compiled", 0.7), ("numpy", 0.7)])
@pytest.mark.parametrize("n_vocab", [49152, 248320])
def test_so_they_do_over_the_vocabularies_of_real_models(kind, temperature, n_vocab) -> None:
    assert wrong(made(kind, n_vocab, temperature), n_vocab, temperature) == []


@pytest.mark.parametrize("temperature", [0.3, 0.7, 1.0, 1.5])
@pytest.mark.parametrize("n_vocab", [49152, 248320])
def test_every_draw_is_the_one_of_the_rule_itself(n_vocab, temperature) -> None:
    """Where most of a large vocabulary has next to nothing, the rule's own sum in float64 says which token it is."""
    sampler, rng = made("compiled", n_vocab, temperature), np.random.default_rng(11)
    for logits in rows(n_vocab):
        for u in rng.random(8):
            assert sampler.pick(logits, float(u)).token == sampling.exact(logits, temperature, float(u))


@pytest.mark.parametrize("kind", ["compiled", "numpy", "ggml"])
def test_a_search_that_trusts_its_rounding_would_be_noticed(kind) -> None:
    sampler = made(kind, 4099, 1.0)
    sampler._slack = 0.0
    assert wrong(sampler, 4099, 1.0) != []


@pytest.mark.parametrize("kind", ["numpy", "ggml"])
@pytest.mark.parametrize("temperature", [0.3, 0.7, 1.0])
def test_rounding_in_float32_stays_within_what_is_allowed_for_it(temperature, kind) -> None:
    """The nearest boundary that a search without slack puts on the wrong side is well inside the slack."""
    sampler = made(kind, 4099, temperature)
    allowed, sampler._slack = sampler._slack, 0.0
    for place, u in wrong(sampler, 4099, temperature):
        edges = boundaries(rows(4099)[place], temperature)
        assert u > 0 and float(np.abs(edges - u).min()) < allowed / 2


def test_the_compiled_search_goes_on_in_float64_by_itself(monkeypatch) -> None:
    monkeypatch.setattr(sampling, "exact", None)
    logits, sampler = rows(4099)[0], made("compiled", 4099, 1.5)
    edges = boundaries(logits, 1.5)
    for edge in edges[100:-100:37].astype(np.float64):
        for gap in (-1e-7, -1e-9, -1e-11, 1e-11, 1e-9, 1e-7):
            token = sampler.pick(logits, edge + gap).token
            assert edges[token - 1] <= edge + gap < edges[token]


@pytest.mark.parametrize("kind", ["compiled", "numpy", "ggml"])
def test_collision_is_the_sum_of_squared_probabilities(kind) -> None:
    for logits in rows(4099):
        shares = np.diff(boundaries(logits, 0.7), prepend=0)
        assert made(kind, 4099, 0.7).pick(logits, 0.4).collision == pytest.approx(float((shares**2).sum()), rel=2e-5)


def test_a_row_that_is_no_contiguous_float32_array_is_read_as_one() -> None:
    logits = rows(257)[0]
    spread = np.zeros((257, 2), dtype=np.float32)
    spread[:, 0] = logits
    fixed = logits.copy()
    fixed.setflags(write=False)
    sampler = made("compiled", 257, 0.7)
    for u in np.linspace(0, 0.99, 40):
        said = {sampler.pick(row, u).token for row in (logits, spread[:, 0], fixed, logits.astype(np.float64))}
        assert len(said) == 1
    with pytest.raises(ValueError, match=r"shape \(256,\), \(257,\) is expected"):
        sampler.pick(logits[:256], 0.5)


def test_an_engines_own_rows_are_not_copied(monkeypatch) -> None:
    buffer = (ctypes.c_float * 514)(*np.concatenate(rows(257)[:2]))
    view = np.ctypeslib.as_array(buffer).reshape(2, 257)
    said = [made("compiled", 257, 0.7).pick(row.copy(), 0.6).token for row in view]
    sampler = made("compiled", 257, 0.7)
    monkeypatch.setattr(native_draw, "np", None)
    assert [sampler.pick(row, 0.6).token for row in view] == said


def test_an_address_that_was_kept_is_that_of_the_row_itself() -> None:
    """Rows that are gone leave their number and their place to others, and a row that stays may hold other logits."""
    one, other = (row for row in rows(257)[:2])
    sampler, fresh = made("compiled", 257, 0.7), lambda row: made("compiled", 257, 0.7).pick(row.copy(), 0.6).token
    for place in range(300):
        row = (one, other)[place % 2] + np.float32(place % 3)
        assert sampler.pick(row, 0.6).token == fresh(row)
    kept = one.copy()
    first = sampler.pick(kept, 0.6).token
    kept[:] = other
    assert (first, sampler.pick(kept, 0.6).token) == (fresh(one), fresh(other))


@pytest.mark.parametrize("seed", range(20))
def test_a_text_of_the_toy_engine_is_the_oracles(seed) -> None:
    """The engine hands out rows that are gone with the next decode, and no arrays."""
    model, prompt = toy(), (1, 2, 3, 4)
    text = run("autoregressive", model, temperature=0.8, seed=seed, n_predict=30, prompts=(prompt,)).text()
    ctx, said = model.context(ContextSpec(n_ctx=64, n_seq_max=1)), list(prompt)
    ctx.decode(prompt, range(4), [0] * 4, [3])
    for position, token in enumerate(text):
        edges = boundaries(np.array(ctx.logits()[0]), 0.8)
        assert token == int(np.searchsorted(edges, uniform(seed, 0, position), side="right"))
        ctx.decode([token], [len(said)], [0], None)
        said.append(token)


@pytest.mark.parametrize("compiler", ["no-such-compiler", "false"])
def test_without_a_compiler_numpy_draws_the_same(compiler, monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("CXX", compiler)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(sampling, "compiled", native_draw.compiled.__wrapped__)
    sampler = Sampler(257, 0.7, 0)
    assert isinstance(sampler._search, WeighedDraw) and sampling.drawn_by() == "numpy"
    assert wrong(sampler, 257, 0.7) == []
    assert not list(tmp_path.rglob("*.so")), "what did not compile is not kept"


def test_it_is_compiled_once_a_machine_and_again_where_it_is_damaged(monkeypatch, tmp_path) -> None:
    made, compile_ = [], native_draw._compile
    monkeypatch.setattr(native_draw, "_compile", lambda compiler, out: (made.append(out), compile_(compiler, out)))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "sound"))
    for _ in range(2):
        assert native_draw.compiled.__wrapped__() is not None
        assert len(made) == 1
    (library,) = tmp_path.rglob("*.so")
    damaged = tmp_path / "other" / library.relative_to(tmp_path / "sound")
    damaged.parent.mkdir(parents=True)
    damaged.write_bytes(b"no library")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "other"))
    assert native_draw.compiled.__wrapped__() is not None
    assert len(made) == 2
