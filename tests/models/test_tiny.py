"""`pti-tiny` as it ships: the file, its tokenizer, its scores against numpy, and what its head is there to do."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import gguf
import numpy as np
import pytest

from bench.plan.compose import compose_points
from bench.plan.model_files import model_path
from models.nextn import NextnModel
from models.tiny_data import read_manifest
from models.tiny_measure import agreement, figures
from pti_loop.engine import Unsupported
from tests.models.numpy_qwen35 import NumpyQwen35

HERE = Path(__file__).parent
FOLDER = HERE.parent.parent / "models" / "pti-tiny"


@pytest.fixture(scope="module")
def path():
    return model_path(compose_points(["model=pti-tiny"])[0])


@pytest.fixture(scope="module")
def nextn(path):
    loaded = NextnModel(path)
    yield loaded
    loaded.close()


@pytest.fixture(scope="module")
def rows(nextn):
    """Excerpts of four held-out files, in token ids."""
    return [nextn.model.tokenize(text) for text in (HERE / "heldout.txt").read_text(encoding="utf-8").split("\f")]


def test_the_file_is_small_and_says_what_it_is(path):
    assert path.stat().st_size <= 20_000_000
    fields = {name: field.contents() for name, field in gguf.GGUFReader(path).fields.items()}
    assert fields["general.architecture"] == "qwen35"
    assert fields["qwen35.nextn_predict_layers"] == 1
    assert fields["general.license"] == "PSF-2.0"
    pieces = json.loads((FOLDER / "tokenizer.json").read_text(encoding="utf-8"))["model"]["vocab"]
    assert fields["tokenizer.ggml.tokens"] == sorted(pieces, key=pieces.get)
    assert 4000 <= len(pieces) <= 8000


def test_the_manifest_holds_out_whole_files():
    sources = read_manifest()
    assert len({source.path for source in sources}) == len(sources) > 1000
    assert {s.path for s in sources if s.heldout} == {
        s.path for s in sources if hashlib.sha256(s.path.encode()).digest()[0] < 10
    }


def test_llama_cpp_gives_the_ids_that_the_tokenizer_library_gave(nextn):
    """token_ids.json was written with the library `tokenizers` 0.23.3 from tokenizer.json."""
    for item in json.loads((HERE / "token_ids.json").read_text(encoding="utf-8")):
        assert nextn.model.tokenize(item["text"]) == item["ids"], item["text"]
        assert nextn.model.detokenize(item["ids"]) == item["text"]


def test_scores_are_those_of_a_second_implementation(path, nextn, rows):
    tokens = rows[0][:20]
    trunk, hidden = nextn.trunk(tokens)
    head = nextn.head(tokens, hidden)
    other = NumpyQwen35(path)
    before = np.zeros(hidden.shape[1])
    for position, token in enumerate(tokens):
        guess = other.scores(other.head(token, before, position))
        before = other.token(token, position)
        for name, ours, theirs in (("trunk", other.scores(before), trunk), ("head", guess, head)):
            error = np.linalg.norm(ours - theirs[position]) / np.linalg.norm(ours)
            assert error < 0.03, (name, position, error)  # the engine rounds activations to 8 bits


def test_the_head_says_what_the_trunk_will_say(nextn, rows):
    """On excerpts of held-out files: 60 % of positions, three times the most common token, a third of a unigram."""
    counts = np.zeros(nextn.model.n_vocab)
    found = agreement(nextn, rows)
    np.add.at(counts, found["token"], 1)  # counting the measured text itself flatters the unigram model
    said = figures(found, counts)
    assert said["positions"] > 1000
    assert said["head_says_the_trunk"] >= 0.6
    assert said["head_says_the_trunk"] >= 3 * said["most_common_choice"]
    assert said["perplexity"] < said["unigram_perplexity"] / 3


def test_the_head_needs_the_state_it_is_given(nextn, rows):
    """Else the agreement would be that of a bigram model."""
    tokens = rows[1]
    trunk, hidden = nextn.trunk(tokens)
    choice = trunk.argmax(axis=1)[1:]
    given, robbed = (nextn.head(tokens, state).argmax(axis=1)[1:] for state in (hidden, hidden[::-1]))
    assert (given == choice).mean() > (robbed == choice).mean() + 0.2


def test_a_model_without_a_head_is_refused(smollm2):
    with pytest.raises(Unsupported, match="has no nextn layer"):
        NextnModel(smollm2)
