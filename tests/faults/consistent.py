"""Edits after which id, manifest and label are those that the public code makes: what is left is another witness."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bench.records.declaring import declaration
from tests.faults.agreeing import renamed
from tests.faults.records import DRAWN, HONEST, LOOKUP, PACKED, PUBLISHED, fault
from tests.faults.served import SERVED
from tests.faults.sharp import SHARP
from tests.faults.stored import Record

COUPLED, LOOKUP_3, JACOBI, TWIN = "3b686bc95e71", "27811d55be23", "d5467a99f243", "2781b2a5b7bf"
REMEMBERS = "6122103d0d44"
HOT, GREEDY = "c510667b66c0", "118ce0522bd5"
"""Copies at temperature 1, and a head whose guesses are its likeliest."""
LOUD = "9348f3302e5f"
"""A cell of which two runs were measured again."""


def with_parameters(record: Record, **parameters: Any) -> None:
    """Other parameters, with the declaration and the id that they give."""
    method = record.config["method"]
    method["parameters"] |= parameters
    made = declaration(method["name"], method["parameters"], record.config["streams"])
    method["declaration"] = made.as_dict()
    renamed(record)


def _fault_of_declaration(name: str, value: Any, cell: str, check: str, words: str, verdict: str = "void") -> None:
    @fault(words, cell, check, verdict)
    def _(record: Record) -> None:
        record.config["method"]["declaration"][name] = value


_fault_of_declaration("layout", "sequences", SHARP, "declared", "tokens of one sequence are declared as sequences")
_fault_of_declaration("repeats", True, SHARP, "declared", "a method that says tokens once declares to say them again")
_fault_of_declaration("by_rounds", True, HONEST, "declared", "a method is declared to end by rounds")
_fault_of_declaration("tuned", True, LOOKUP_3, "declared", "a drafter is declared to be tuned")
_fault_of_declaration("answers", "one", PUBLISHED, "declared", "copies of an answer are declared as one")
_fault_of_declaration("label", "speculation without a drafter", SHARP, "called", "a method is called by another label",
                      "warning")  # fmt: skip
_fault_of_declaration("short", "stagger x2", SHARP, "called", "a method is called another one in short", "warning")
_fault_of_declaration("layout", "sequences", SERVED, "declared", "a server's answers are declared as sequences")


@fault("a method that nobody declares", LOOKUP, "called", "warning")
def _(record: Record) -> None:
    record.config["method"]["name"] = "wonder"
    renamed(record)


@fault("a parameter that the method has not", SHARP, "called")
def _(record: Record) -> None:
    record.config["method"]["parameters"]["luck"] = 7
    renamed(record)


@fault("one parameter is renamed, with the id that this gives", SHARP, "drawn")
def _(record: Record) -> None:
    with_parameters(record, n=4)


@fault("draws at one temperature are called those at another, with the id that this gives", DRAWN, "drawn")
def _(record: Record) -> None:
    record.config["temperature"] = 0.35
    renamed(record)


@fault("blocks are in another order than their id draws", DRAWN, "drawn")
def _(record: Record) -> None:
    runs = record.tables["runs"]
    runs["block"] = runs["block"].replace({0: 1, 1: 0})
    runs["seed"] = runs["seed"] + 2 * runs["block"].map({0: -1, 1: 1}).fillna(0).astype(int)


# Parameters.


def _fault_of_parameter(words: str, cell: str, check: str, **parameters: Any) -> None:
    @fault(words, cell, check)
    def _(record: Record) -> None:
        with_parameters(record, **parameters)


_fault_of_parameter("eight copied tokens are called four", SHARP, "lengths", m=4)
_fault_of_parameter("eight copied tokens are called sixteen", SHARP, "drafter", m=16)
_fault_of_parameter("three guesses are called two", LOOKUP_3, "lengths", draft=2)
_fault_of_parameter("three guesses are called five", LOOKUP_3, "lengths", draft=5)
_fault_of_parameter("a window of four is called one of six", JACOBI, "lengths", window=6)
_fault_of_parameter("a window of four is called one of three", JACOBI, "lengths", window=3)
_fault_of_parameter("a drafter of another type", SHARP, "drafter", type="ngram-map-k")
_fault_of_parameter("a twin of other bits", TWIN, "drafter", twin="q4_0")
_fault_of_parameter("rejected tokens were forgotten otherwise than configured", SHARP, "drafter", rollback="checkpoint")
_fault_of_parameter("guesses with a random number of their own are said to share it", DRAWN, "collisions",
                    draws="coupled")  # fmt: skip
_fault_of_parameter("guesses that share a random number are said to have their own", COUPLED, "collisions",
                    draws="independent")  # fmt: skip
_fault_of_parameter("tokens that are said once are said to be published again", HONEST, "said_again",
                    emission="published")  # fmt: skip


@fault("a drafter of another type by its own words too", SHARP, "drafter")
def _(record: Record) -> None:
    record.facts["drafter"]["types"] = ["ngram-map-k"]
    with_parameters(record, type="ngram-map-k")


@fault("a drafter makes more guesses by its own words", SHARP, "drafter")
def _(record: Record) -> None:
    record.facts["drafter"]["most"] = 4


@fault("four copies are called three", HONEST, "lengths")
def _(record: Record) -> None:
    record.config["streams"] = 3
    with_parameters(record)


@fault("draws of three tenths are called those of one token", DRAWN, "collisions")
def _(record: Record) -> None:
    record.config["top_k"] = 1
    renamed(record)


# Draws.


@fault("collision probabilities are their squares", HOT, "collisions")
def _(record: Record) -> None:
    record.tables["draws"]["collision"] **= 2


@fault("collision probabilities are higher than guesses were right", HOT, "collisions")
def _(record: Record) -> None:
    record.tables["draws"]["collision"] **= 0.3


@fault("a greedy drafter is right more often than any guess can be", GREEDY, "collisions")
def _(record: Record) -> None:
    record.tables["draws"]["collision"] **= 4


@fault("a collision probability is another than behind the same text elsewhere", DRAWN, "collisions")
def _(record: Record) -> None:
    draws = record.tables["draws"]
    draws.loc[draws.index[-1], "collision"] *= 0.8


@fault("a collision probability that no vocabulary has", GREEDY, "collisions")
def _(record: Record) -> None:
    record.tables["draws"].loc[5, "collision"] = 1e-7


# What was compared untimed.


@fault("no answer was compared where no row is alone", SHARP, "company")
def _(record: Record) -> None:
    record.facts["padded"] = []


@fault("nothing tells of answers where no row is alone", SHARP, "company")
def _(record: Record) -> None:
    del record.facts["padded"]


@fault("the answers where no row is alone are to another seed", SHARP, "company")
def _(record: Record) -> None:
    for row in record.facts["padded"]:
        row["seed"] += 1


@fault("the answers where no row is alone are short", SHARP, "company")
def _(record: Record) -> None:
    for row in record.facts["padded"]:
        row["n"] = 1


@fault("an answer where no row is alone differs behind its end", SHARP, "company")
def _(record: Record) -> None:
    record.facts["padded"][0] |= {"first_difference": 10**6, "noise": 0.5}


@fault("tokens of both arms on F16 weights are shifted alike", SHARP, "f16")
def _(record: Record) -> None:
    rows = record.tables["sharp"]
    rows["token"] = (rows["token"] + 1) % record.facts["model"]["n_vocab"]
    for row in record.facts["sharp"]["lossless"]:
        if first := row["first_difference"]:
            first |= {name: first[name] + 1 for name in ("token_baseline", "token_arm")}


@fault("a drafter that could be kept is said to keep nothing, and its kept runs are gone", REMEMBERS, "drafter")
def _(record: Record) -> None:
    record.facts["drafter"]["remembers"] = False
    record.drop("kept")


# Contexts, and what else ran.


@fault("contexts were made anew, and none were to be", DRAWN, "made")
def _(record: Record) -> None:
    runs = record.tables["runs"]
    runs.loc[runs["block"] > 1, "context"] = 1


@fault("contexts were to be made anew, and none were", DRAWN, "made")
def _(record: Record) -> None:
    record.config["measure"]["contexts"] = 2
    renamed(record)


def _fault_beside(words: str, check: str, change: Callable[[Any], Any], column: str, verdict: str = "void") -> None:
    @fault(words, DRAWN, check, verdict)
    def _(record: Record) -> None:
        runs = record.tables["runs"]
        runs[column] = change(runs[column].to_numpy(dtype=float))


_fault_beside("others took more CPUs than there are", "around", lambda own: own + 9, "other_cpus")
_fault_beside("the hypervisor took less than nothing", "around", lambda own: own - 1, "steal")
_fault_beside("runs that were open at once stood beside different loads", "around",
              lambda own: own + np.linspace(0, 0.5, len(own)), "load")  # fmt: skip
_fault_beside("the load is gone at once", "around", lambda own: np.where(np.arange(len(own)) < 8, own + 3, own), "load")


@fault("a run was measured again although nothing disturbed it", LOUD, "around")
def _(record: Record) -> None:
    for row in record.facts["repeated"]["attempts"]:
        row |= {"other_cpus": 0.01, "steal": 0.0}


@fault("runs were measured again for longer than configured", LOUD, "around")
def _(record: Record) -> None:
    record.facts["repeated"]["share"] = 9.0


@fault("the machine had no load, though it decoded", "a8cb6d9aec00", "load", "warning")
def _(record: Record) -> None:
    record.tables["runs"]["load"] = 0.0


@fault("the memory's median reading is beyond its quickest", PACKED, "once")
def _(record: Record) -> None:
    record.facts["bandwidth"]["median_gb_s"] *= 3
