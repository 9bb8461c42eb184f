"""llama.cpp's own drafters without a model: against a search, ours and their own counters; and who cannot have them."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from pti_loop.draft.lookup import Lookup
from pti_loop.draft.native import KINDS, N_MIN, SPEC, Native, length
from pti_loop.engine import EngineError, OwnDrafterSpec, Unsupported
from pti_loop.llama import own_drafters
from pti_loop.llama.own_drafters import LlamaDrafter, load
from pti_loop.methods import METHODS
from pti_loop.parameters import ParameterError, resolve
from pti_loop.rollback import STRATEGIES
from pti_loop.settings import settings_of
from tests.pti_loop.loops import run, toy


def made(*types: str, **values) -> LlamaDrafter:
    return LlamaDrafter(OwnDrafterSpec(types, **values), None, None)


def searched(text: list[int], n: int, m: int) -> list[int]:
    """What ngram-simple should draft behind a text, by looking at every place: llama.cpp's rules in words of our own.

    The newest match that ends before the newest token; place 0 counts as none; no draft shorter than the n-gram, and
    none while the text without its newest token has no more than n + m + 1 tokens.
    """
    held = len(text) - 1
    if held <= n + m + 1:
        return []
    for start in range(held - n - 1, 0, -1):
        if text[start : start + n] == text[-n:]:
            draft = text[start + n : held][:m]
            return draft if len(draft) >= n else []
    return []


def texts(seed: int, letters: int, size: int = 120):
    """A random text that grows by some tokens at a time."""
    rng = random.Random(seed)
    text = [rng.randrange(letters) for _ in range(20)]
    while len(text) < size:
        yield list(text)
        text += [rng.randrange(letters) for _ in range(rng.randrange(1, 4))]


def drafts(own: LlamaDrafter, seed: int, letters: int):
    """(text, what the drafter says behind it) for a text that grows."""
    drafter = Native(own)
    before: list[int] = []
    for text in texts(seed, letters):
        if before:
            drafter.observe(text[len(before) :], [], 0)
        else:
            drafter.begin(text)
        before = text
        yield text, drafter.propose(64)


@pytest.mark.parametrize(("n", "m"), [(2, 3), (3, 8), (1, 5)])
@pytest.mark.parametrize("letters", [2, 4, 9])
def test_ngram_simple_finds_what_a_search_finds(n, m, letters):
    found = [(draft, searched(text, n, m)) for text, draft in drafts(made("ngram-simple", n=n, m=m), n, letters)]
    assert [draft for draft, _ in found] == [wanted for _, wanted in found]
    assert any(draft for draft, _ in found)


@pytest.mark.parametrize(("n", "m"), [(2, 3), (3, 8)])
def test_ngram_simple_and_our_lookup_with_the_same_parameters_draft_the_same(n, m):
    """Ours copies on around its own end and asks for no length of the text; whatever llama.cpp drafts, ours does."""
    compared = 0
    for text, draft in (pair for seed in range(6) for pair in drafts(made("ngram-simple", n=n, m=m), seed, 5)):
        if not draft or len(set(text[-n - 1 :])) == 1:  # a run of one token is its own match to ours
            continue
        ours = Lookup(longest=n, shortest=n)
        ours.begin(text)
        assert ours.propose(m)[: len(draft)] == draft
        compared += 1
    assert compared > 20


def test_what_a_chain_drafts_is_what_its_first_type_with_a_draft_drafts():
    text = [50, 51, *range(1, 20), 1, 2, 3]
    alone, chain = made("ngram-simple", n=3, m=8), made("ngram-cache", "ngram-simple", n=3, m=8)
    wanted = []
    for own in (alone, chain):
        drafter = Native(own)
        drafter.begin(text)
        wanted.append(drafter.propose(8))
    assert wanted[0] == wanted[1] == [4, 5, 6, 7, 8, 9, 10, 11]
    assert chain.most == 8


def counters(own: LlamaDrafter, folder: Path) -> tuple[int, int]:
    """Tokens drafted and accepted, as llama.cpp counts them."""
    text = own.statistics(folder / "statistics.txt")
    drafted, accepted = re.search(r"#gen tokens =\s*(\d+), #acc tokens =\s*(\d+)", text).groups()
    return int(drafted), int(accepted)


@pytest.mark.parametrize("name", ["ngram-simple", "ngram-map-k", "ngram-map-k4v"])
def test_our_counts_are_llama_cpps_own(name, tmp_path):
    period = [*range(3, 15)] * 6
    own = made(name, n=3, m=6)
    drafter = Native(own)
    drafter.begin(period[:40])
    at, drafted, accepted = 40, 0, 0
    for right in (2, 0, 3, 1, 6, 0):
        guesses = drafter.propose(6)
        right = min(right, len(guesses))
        drafter.observe([*guesses[:right], period[at]], [], len(guesses))
        drafted, accepted, at = drafted + len(guesses), accepted + right, at + 1
    assert counters(own, tmp_path) == (drafted, accepted)
    assert drafted > accepted > 0


def replay(own: LlamaDrafter, prompt: list[int], answer: list[int]) -> float:
    """Tokens a round of an answer that is known, from one drafter that may have seen it."""
    drafter = Native(own)
    drafter.begin([*prompt, answer[0]])
    at, rounds = 1, 0
    while at < len(answer):
        guesses = drafter.propose(len(answer) - at - 1)
        right = 0
        while right < len(guesses) and guesses[right] == answer[at + right]:
            right += 1
        drafter.observe(answer[at : at + right + 1], [], len(guesses))
        at, rounds = at + right + 1, rounds + 1
    return (len(answer) - 1) / rounds


def test_a_drafter_that_is_kept_answers_from_memory_and_one_for_each_answer_does_not():
    rng = random.Random(3)
    prompt, answer = ([rng.randrange(50_000) for _ in range(size)] for size in (30, 400))
    kept = made("ngram-mod")
    assert [round(replay(kept, prompt, answer), 1) for _ in range(2)] == [1.0, 26.6]
    assert replay(made("ngram-mod"), prompt, answer) == 1


@pytest.mark.parametrize("name", ["ngram-map-k", "ngram-map-k4v"])
def test_a_long_foreign_prompt_takes_the_drafts_of_a_kept_map_away(name):
    rng = random.Random(4)
    prompt, foreign, words = ([rng.randrange(50_000) for _ in range(size)] for size in (200, 900, 20))
    answer = prompt[20:180]
    cold, kept = replay(made(name, n=3, m=8), prompt, answer), made(name, n=3, m=8)
    replay(kept, foreign, words)
    assert cold > 5
    assert [replay(kept, prompt, answer) for _ in range(2)] == [1, 1]


def test_defaults_are_those_of_the_library():
    for name in ("ngram-simple", "ngram-map-k", "ngram-map-k4v", "ngram-mod", "ngram-cache"):
        assert made(name).most == length(settings_of("native", type=name)) == KINDS[name].m
    assert set(KINDS) == set(load().drafter_types().decode().split(",")) - {"none"}
    (choices,) = (one.choices for one in SPEC.parameters if one.name == "type")
    assert set(choices) == set(KINDS)


def test_ngram_mods_least_draft_is_the_librarys():
    """A replay of fewer tokens than the least draft gets none, one of as many does."""
    rng = random.Random(5)
    text = [rng.randrange(50_000) for _ in range(40 + N_MIN)]
    drafter = Native(made("ngram-mod"))
    drafter.begin([*text, 0])
    for size, wanted in ((N_MIN - 1, 0), (N_MIN, N_MIN)):
        drafter.begin(text[: len(text) - size])
        assert drafter.propose(64) == text[len(text) - size :][:wanted]


def test_a_head_or_draft_model_forgets_only_where_nothing_is_decoded_again():
    for given, wanted in (({"type": "ngram-mod"}, tuple(STRATEGIES)), ({"type": "draft-mtp"}, ("rewind", "snapshots")),
                          ({"type": "draft-simple+ngram-mod"}, ("rewind", "snapshots"))):  # fmt: skip
        for name, more in (("native", {}), ("packed", {"drafter": "native"})):
            assert METHODS[name].strategies(settings_of(name, **given, **more)) == wanted
    assert METHODS["lookup"].strategies(settings_of("lookup")) == tuple(STRATEGIES)


def test_what_would_abort_the_process_is_refused():
    own = made("ngram-map-k", n=3, m=8)
    own.begin([1, 2, 3])
    with pytest.raises(EngineError, match="more was accepted than drafted"):
        own.accept(1, [4])
    own.close()
    own.close()


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"type": "ngram-simple", "n": 12, "m": 8}, "ngram-simple drafts nothing with m=8 below n=12"),
        ({"type": "ngram-mod", "m": 8}, "ngram-mod drafts nothing with m=8 below n_min=48"),
        ({"type": "draft-eagle3"}, "draft-eagle3 needs a draft model that was made for it; name it with"),
        ({"type": "draft-mtp+draft-simple"}, "draft-mtp.draft-simple need a draft context each"),
        ({"type": "ngram-simple"}, "this engine has no drafters of its own; use model.engine=llama"),
    ],
)
def test_what_cannot_draft_says_why(given, sentence):
    with pytest.raises(Unsupported, match=sentence):
        run("native", toy(), n_predict=8, **given)


def test_a_chain_has_each_type_once_and_none_that_there_is_not():
    assert resolve("native", {"type": "ngram-mod+ngram-cache"})["type"] == "ngram-mod+ngram-cache"
    for wrong in ("ngram-mod+ngram-mod", "ngram-modd", "ngram-mod+", ""):
        with pytest.raises(ParameterError, match="is not a choice"):
            resolve("native", {"type": wrong})


def test_without_headers_or_a_compiler_one_sentence_says_what_to_do(monkeypatch, tmp_path):
    monkeypatch.setattr(own_drafters, "kept", lambda commit: False)
    with pytest.raises(Unsupported, match=r"need the headers of its commit abc.* run `make setup`"):
        own_drafters.compiled("abc")
    monkeypatch.setattr(own_drafters, "kept", lambda commit: True)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    with pytest.raises(Unsupported, match=r"no C\+\+ compiler is on the PATH .* `apt-get install g\+\+`"):
        own_drafters.compiled("abc")


def test_a_compiler_that_fails_is_told_in_one_sentence(monkeypatch, tmp_path):
    monkeypatch.setattr(own_drafters, "headers", lambda commit: tmp_path)
    monkeypatch.setattr(own_drafters, "kept", lambda commit: True)
    with pytest.raises(Unsupported, match=r"own_drafters.cpp does not compile against this llama.cpp \(.*error"):
        own_drafters.compiled("abc")
    assert not list(tmp_path.glob("*.part"))


def test_a_type_that_the_library_does_not_have_is_refused_by_it():
    with pytest.raises(Unsupported, match="unknown speculative type: ngram-best"):
        made("ngram-best")
