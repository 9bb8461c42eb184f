"""What methods declare: read without numpy, equal to what the file itself has, and resolved or refused."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from pti_loop.methods import METHODS
from pti_loop.parameters import (
    ParameterError,
    Spec,
    declare,
    declared,
    drafters,
    module_of,
    read_spec,
    resolve,
)
from pti_loop.rollback import STRATEGIES
from pti_loop.settings import settings_of

ROOT = Path(__file__).resolve().parents[2]


def test_declarations_are_read_without_numpy_and_without_the_files():
    code = (
        "import sys; from pti_loop.parameters import declared, declare, resolve\n"
        "for name in declared(): declare(name, resolve(name, {}), 4)\n"
        "print(sorted(m for m in sys.modules if m.startswith(('numpy', 'pti_loop.'))))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout.strip() == "['pti_loop.parameters']"


@pytest.mark.parametrize("name", declared())
def test_the_declaration_that_is_read_is_the_one_that_is_imported(name):
    assert declared()[name] == import_module(module_of(name)).SPEC


@pytest.mark.parametrize("name", declared())
def test_a_method_fits_its_declaration(name):
    settings = settings_of(name, streams=3)
    method = METHODS[name]
    assert method.guesses(settings) == declared()[name].guesses
    assert method.width(settings) >= 1 and method.sequences(settings) >= 1
    assert method.answers(settings) == (3 if declared()[name].answers == "independent" else 1)
    assert method.rolls_back(settings) == ("rollback" in resolve(name, {}))


@pytest.mark.parametrize("name", drafters())
def test_a_packed_answer_has_the_parameters_of_its_drafter(name):
    values = resolve("packed", {"drafter": name})
    assert {**resolve(name, {}), "drafter": name} == values
    found = declare("packed", values, 4)
    assert (found.guesses, found.layout, found.repeats) == (True, "tokens", False)
    assert name in found.label and f"drafter={name}" in found.short


def test_only_the_loop_that_says_tokens_twice_declares_it():
    repeating = {name for name in declared() if declare(name, resolve(name, {})).repeats}
    assert repeating == {"stagger"}
    assert not declare("stagger", resolve("stagger", {"emission": "distinct"})).repeats
    assert declare("stagger", resolve("stagger", {"stop": "rounds"})).by_rounds


def test_every_strategy_of_rollback_can_be_chosen():
    (parameter,) = (one for one in declared()["lookup"].parameters if one.name == "rollback")
    assert parameter.choices == ("auto", *STRATEGIES)


@pytest.mark.parametrize(
    ("name", "given", "sentence"),
    [
        ("lookupp", {}, "there is no method 'lookupp'"),
        ("lookup", {"drafft": 3}, "method=lookup has no parameter 'drafft'"),
        ("stagger", {"draft": 3}, "method=stagger has no parameter 'draft'"),
        ("autoregressive", {"draft": 3}, "method=autoregressive has no parameter 'draft'"),
        ("packed", {"drafter": "mtp", "ngram": 3}, "method=packed with drafter=mtp has no parameter 'ngram'"),
        ("packed", {"drafter": "none", "draft": 3}, "method=packed with drafter=none has no parameter 'draft'"),
        ("packed", {"drafter": "stagger"}, "method.drafter=stagger is not a choice"),
        ("lookup", {"draft": 0}, "method.draft=0 is below 1"),
        ("jacobi", {"window": 1}, "method.window=1 is below 2"),
        ("lookup", {"draft": True}, "method.draft=True is no whole number"),
        ("lookup", {"draft": "3"}, "method.draft=3 is no whole number"),
        ("lookup", {"gate": 1}, "method.gate=1 is no truth value"),
        ("stagger", {"emission": "publishd"}, "method.emission=publishd is not a choice"),
    ],
)
def test_what_a_method_does_not_have_is_refused(name, given, sentence):
    with pytest.raises(ParameterError, match=sentence):
        resolve(name, given)


def test_none_is_not_given_and_truth_may_be_written_as_a_word():
    assert resolve("lookup", {"draft": None, "gate": "true"}) == {**resolve("lookup", {}), "gate": True}


def test_a_declaration_that_needs_more_than_this_module_is_a_sentence(tmp_path):
    path = tmp_path / "odd.py"
    path.write_text("import numpy\nfrom pti_loop.parameters import Spec\n\nSPEC = Spec('odd', numpy.pi)\n")
    with pytest.raises(ParameterError, match=r"odd.py: SPEC uses 'numpy', and may use only what it imports"):
        read_spec(path)
    plain = tmp_path / "plain.py"
    plain.write_text("VALUE = 1\n")
    assert read_spec(plain) is None
    good = tmp_path / "good.py"
    good.write_text("from pti_loop.parameters import Spec\n\nSPEC = Spec('good', 'a good one')\n")
    assert read_spec(good) == Spec("good", "a good one")
