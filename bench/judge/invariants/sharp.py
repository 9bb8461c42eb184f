"""What a cell stores of the grade on F16 weights: there where it was asked for, whole, and the rows' own.

It knows nothing about grades; which differences are worth what is no business of it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from bench.judge.invariants.model import HEAD_BYTES, WORD_BYTES
from bench.judge.invariants.plan import SEEDS
from bench.judge.measure.lossless import said
from bench.judge.measure.sharp import GRADED, LEFT_OUT, SAME
from bench.judge.measure.tokens import arrays

if TYPE_CHECKING:
    from bench.judge.measure.case import Case

Answer = tuple[str, str, int, int]
"""Arm, prompt, place among the answers, seed."""
ALIKE, LEAST_TOKENS = 0.1, 32
"""Share of a text on F16 weights that the cell's own text of the prompt has too, in whatever order: 0.23 is the least
that was seen, and 0.05 the most where every token was another."""
MOST_NOISE = 1.0
"""Logits: 0.04 is the most that a change of width was seen to move on F16 weights."""
_DIGEST = re.compile(r"[0-9a-f]{64}")
_WIDE = re.compile(r"^(B?F16|F32|F64)$| as ")
"""Names of quantizations that are none, and of those that an engine widens."""


def sharp_is_told(case: Case) -> str | None:
    """A cell that was to be graded on F16 weights says what became of it, and one that was not has nothing."""
    facts, config = case.cell.facts, case.cell.config
    stored, asked = facts.get("sharp") or {}, bool((config.get("measure") or {}).get("sharp"))
    if not asked:
        return "it has a grade on F16 weights, and its configuration asks for none" if stored else None
    state, model = stored.get("state"), facts.get("model") or {}
    if state == SAME:
        if stored.get("sha256") != model.get("sha256"):
            return "its weights are said to be no coarser than F16, by the hash of another file"
        if not _WIDE.search(str(model.get("quantization") or "")):
            return f"its weights are said to be no coarser than F16, and they are {model.get('quantization')}"
        return None
    if state == LEFT_OUT:
        return _left_out(stored, model)
    if state != GRADED:
        return "the grade on F16 weights that its configuration asks for is not there"
    return _file(stored, model) or _answers(case, stored)


def _left_out(stored: Mapping[str, Any], model: Mapping[str, Any]) -> str | None:
    """Memory that was short has to be short by the record's own numbers."""
    need, free = stored.get("needed_bytes"), stored.get("free_bytes")
    if not stored.get("reason"):
        return "the grade on F16 weights was left out, and nothing says why"
    if "are free" in str(stored["reason"]) and not (need and free is not None and need > free):
        return f"the grade on F16 weights was left out for want of memory, and {need} bytes of {free} were needed"
    least = 2 * int(model.get("n_params") or 0)
    if need and least and not least <= need:
        return f"F16 weights are said to need {need} bytes, and the model's parameters take {least} of them"
    return None


def _file(stored: Mapping[str, Any], model: Mapping[str, Any]) -> str | None:
    """The file of F16 weights, as far as its digest, type and size tell."""
    digest, size = str(stored.get("sha256") or ""), float(stored.get("bytes") or 0)
    if not _DIGEST.fullmatch(digest) or stored.get("type") != "F16":
        return f"the grade on F16 weights was made on '{stored.get('type')}' with the digest '{digest[:12]}'"
    if digest == model.get("sha256"):
        return "the grade on F16 weights was made on the cell's own file"
    least = 2 * int(model.get("n_params") or 0)
    if least and size < least:
        return f"the file of F16 weights has {size:.0f} bytes, and the model's parameters take {least}"
    most = 2 * least + WORD_BYTES * int(model.get("n_vocab") or 0) + HEAD_BYTES
    if least and size > most:
        return f"the file of F16 weights has {size:.0f} bytes, and parameters of four bytes would take {most}"
    noise = stored.get("noise") or {}
    if not noise.get("positions"):
        return "the grade on F16 weights lacks the noise between shapes of a decode"
    if float(noise.get("logit_gap") or 0) > MOST_NOISE:
        return (f"the shape of a decode is said to move a gap by {float(noise['logit_gap']):.2g} logits on F16 "
                f"weights, and no rounding of them moves it by {MOST_NOISE:g}")  # fmt: skip
    return None


def _answers(case: Case, stored: Mapping[str, Any]) -> str | None:
    """Both arms' answers to every prompt, each whole, and the stored first differences against them."""
    texts = _texts(case)
    if isinstance(texts, str):
        return texts
    wanted = {(arm, part, place) for arm in ("baseline", "treatment")
              for name in set(case.runs.prompt[case.runs.of("treatment")].tolist())
              for place, part in enumerate(str(name).split("+"))}  # fmt: skip
    there = {(arm, prompt, place) for arm, prompt, place, _ in texts}
    if odd := sorted(wanted ^ there):
        lacking = odd[0] in wanted
        return (f"the answer to '{odd[0][1]}' ({odd[0][0]}) on F16 weights "
                + ("is not stored" if lacking else "is to a prompt that no run of the cell decodes"))  # fmt: skip
    own, first_seed = _shortest(case), int(case.cell.config.get("seed") or 0) * SEEDS
    blocks = int(case.runs.block.max()) + 1
    for (arm, prompt, _, seed), text in texts.items():
        if len(text) < own[arm] and text[-1] not in case.runs.ends:
            return (f"the answer to '{prompt}' ({arm}) on F16 weights has {len(text)} tokens, and its runs have "
                    f"{own[arm]}")  # fmt: skip
        if seed - first_seed not in range(0, 2 * blocks, 2):
            return f"the answer to '{prompt}' ({arm}) on F16 weights has the seed {seed}, which no block gives it"
    return _differences(texts, stored.get("lossless") or []) or _of_one_model(case, texts)


def _of_one_model(case: Case, texts: dict[Answer, list[int]]) -> str | None:
    """Plain decoding's answers on F16 weights against those on the cell's own: many of their tokens are the same."""
    every, own = said(case.runs), dict[str, Counter[int]]()
    mine = every.of(case.runs.of("baseline"))
    for at in range(len(mine.key)):
        prompts = str(case.runs.prompt[mine.owner[at]]).split("+")
        if (stream := mine.place(at)[0]) < len(prompts):
            own.setdefault(prompts[stream], Counter())[int(mine.token[at])] += 1
    here = [(Counter(text), own[prompt]) for (arm, prompt, _, _), text in texts.items()
            if arm == "baseline" and prompt in own]  # fmt: skip
    count, alike = sum(text.total() for text, _ in here), sum((text & words).total() for text, words in here)
    if count < LEAST_TOKENS or alike >= ALIKE * count:
        return None
    return (f"plain decoding says {count} tokens on F16 weights, and {alike} of them are among those that it says to "
            f"the same prompts on the cell's own: they are no one model's")  # fmt: skip


def _texts(case: Case) -> dict[Answer, list[int]] | str:
    """Tokens of each answer by position; a sentence where a position is missing or twice, or a token is none."""
    columns = arrays(case.cell.sharp)
    vocabulary = int((case.cell.facts.get("model") or {}).get("n_vocab") or 0)
    found: dict[Answer, list[int]] = {}
    rows = zip(*(columns[name].tolist() for name in ("arm", "prompt", "stream", "seed", "position", "token")),
               strict=True)  # fmt: skip
    for arm, prompt, stream, seed, position, token in rows:
        text = found.setdefault((str(arm), str(prompt), int(stream), int(seed)), [])
        if position != len(text):
            return f"the answer to '{prompt}' ({arm}) on F16 weights has position {position} after {len(text)} tokens"
        if vocabulary and not 0 <= token < vocabulary:
            return f"the answer to '{prompt}' ({arm}) on F16 weights says token {token} of {vocabulary}"
        text.append(int(token))
    return found


def _shortest(case: Case) -> dict[str, int]:
    """Tokens of the shortest answer of both arms in the cell's own runs."""
    every = said(case.runs)
    found = {}
    for arm in ("baseline", "treatment"):
        mine = every.of(case.runs.of(arm))
        streams = np.array([mine.place(at)[0] for at in range(len(mine.key))])
        counts = np.unique(np.stack([mine.owner, streams]), axis=1, return_counts=True)[1]
        found[arm] = int(counts.min())
    return found


def _differences(texts: dict[Answer, list[int]], rows: list[Mapping[str, Any]]) -> str | None:
    """The first difference of every treatment's answer, by the texts and by its grade."""
    stored = {(str(row.get("prompt")), int(row.get("stream") or 0), int(row.get("seed") or 0)): row for row in rows}
    mine = {key: text for key, text in texts.items() if key[0] == "treatment"}
    if len(stored) != len(rows) or {key[1:] for key in mine} != set(stored) or any(
        row.get("arm") != "treatment" for row in rows
    ):
        return "the grades on F16 weights are not one an answer"
    for (_, prompt, place, seed), text in mine.items():
        base = texts.get(("baseline", prompt, place, seed))
        if base is None:
            return f"plain decoding's answer to '{prompt}' on F16 weights has another seed"
        first = next(((at, left, right) for at, (left, right) in enumerate(zip(base, text, strict=False))
                      if left != right), None)  # fmt: skip
        told = stored[prompt, place, seed].get("first_difference")
        kept = told and tuple(told.get(name) for name in ("position", "token_baseline", "token_arm"))
        if kept != first:
            return f"the answer to '{prompt}' on F16 weights differs otherwise by what was said than by its grade"
    return None
