"""Edits of what is measured beside the runs, by who has the public code: drafters, memory, energy, noise, servers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.faults.agreeing import renamed
from tests.faults.consistent import LOOKUP_3, TWIN
from tests.faults.records import HONEST, LOOKUP, fault
from tests.faults.served import SERVED
from tests.faults.sharp import SHARP
from tests.faults.stored import Record

CARD, STEPS = "0a7d0a74e628", "8ded458b1115"
"""A 27B on a card, with energy; a profile of today's schema."""


def _fault_of_column(words: str, cell: str, check: str, table: str, column: str, change: Callable[[Any], Any],
                     arm: str = "") -> None:  # fmt: skip
    @fault(words, cell, check)
    def _(record: Record) -> None:
        rows = record.tables[table]
        mine = record.mask(table, arm) if arm else rows[column].notna()
        rows.loc[mine, column] = change(rows.loc[mine, column])


def _fault_of_fact(words: str, cell: str, check: str, change: Callable[[dict[str, Any]], Any]) -> None:
    @fault(words, cell, check)
    def _(record: Record) -> None:
        change(record.facts)


# Drafters.


@fault("a twin decodes nowhere", TWIN, "drafters")
def _(record: Record) -> None:
    record.tables["runs"][["beside_outside_tokens", "beside_window_decodes", "beside_window_tokens"]] = 0


_fault_of_column("a twin never saw a prompt", TWIN, "drafters", "runs", "beside_outside_tokens", lambda own: 0 * own)
_fault_of_column("a twin decodes in few of the rounds that it drafts in", TWIN, "drafters", "runs",
                 "beside_window_decodes", lambda own: own // 4)  # fmt: skip
_fault_of_column("contexts beside a drafter that has none", LOOKUP_3, "drafters", "runs", "beside_window_decodes",
                 lambda own: own + 50)  # fmt: skip


@fault("copies make their guesses of nothing", HONEST, "drafter")
def _(record: Record) -> None:
    rounds, runs = record.tables["rounds"], record.tables["runs"]
    spent = runs["run"].map(rounds.groupby("run")["redecoded"].sum())
    runs[["window_decodes", "window_tokens", "window_outputs"]] -= spent.to_numpy()[:, None]
    rounds["redecoded"] = 0


_fault_of_fact("rejected tokens were forgotten, and nothing tells how", SHARP, "rollback",
               lambda facts: facts.update(rollback={}))  # fmt: skip
_fault_of_fact("a probe passed that restored another state", SHARP, "rollback",
               lambda facts: facts["rollback"]["tried"][0].update(distance=99.0))  # fmt: skip


# Memory and energy.


def _held(facts: dict[str, Any], arm: str, change: int) -> None:
    for name in ("process_bytes", "rss_bytes"):
        facts["memory"][arm][name] += change


_fault_of_fact("a context took less than its caches", LOOKUP_3, "held",
               lambda facts: _held(facts, "treatment", -(15 << 20)))  # fmt: skip
_fault_of_fact("a context made the process smaller", LOOKUP_3, "held",
               lambda facts: _held(facts, "treatment", -(60 << 20)))  # fmt: skip
_fault_of_fact("the process held more between two contexts than they took", LOOKUP_3, "held",
               lambda facts: _held(facts, "baseline", 9 << 20))  # fmt: skip
_fault_of_fact("a context took of the process alone", LOOKUP_3, "held",
               lambda facts: facts["memory"]["treatment"].update(rss_bytes=2**40))  # fmt: skip


@fault("more streams take no more memory", STEPS, "held")
def _(record: Record) -> None:
    for one in record.facts["memory_by_streams"]:
        one["process_bytes"], one["rss_bytes"] = one["process_bytes_before"] + 1000, one["rss_bytes_before"] + 1000


_fault_of_column("the treatment takes a third of its energy", CARD, "joules", "runs", "energy_j", lambda own: own * 0.3,
                 "treatment")  # fmt: skip
_fault_of_column("the treatment gives energy back", CARD, "joules", "runs", "energy_j", lambda own: -own, "treatment")
_fault_of_column("the limit of power is far below what was taken", CARD, "joules", "runs", "power_cap_w",
                 lambda own: own / 7)  # fmt: skip
_fault_of_column("the treatment's memory ran at twice the clock", CARD, "clocks", "runs", "memory_mhz",
                 lambda own: 2 * own, "treatment")  # fmt: skip


# Noise, ends, texts.


_fault_of_fact("the noise was measured at one position", SHARP, "shapes",
               lambda facts: facts["noise"].update(positions=1))  # fmt: skip
_fault_of_fact("the noise is between a row alone and itself", SHARP, "shapes",
               lambda facts: facts["noise"].update(widths=[1, 1]))  # fmt: skip
_fault_of_fact("tokens may end answers that none was to end", LOOKUP_3, "ends", lambda facts: facts.update(ends=[2]))
_fault_of_fact("nothing tells of the process that measured", LOOKUP_3, "facts", lambda facts: facts.pop("process"))
_fault_of_fact("blocks took less time than their runs", LOOKUP_3, "stopping",
               lambda facts: facts["stopping"].update(seconds=0.1))  # fmt: skip
_fault_of_fact("answers where no row is alone were decoded at widths that no round has", LOOKUP_3, "company",
               lambda facts: facts["padded"][0].update(widest=99))  # fmt: skip
_fault_of_fact("more CPUs are free than there are", LOOKUP_3, "around",
               lambda facts: facts["repeated"].update(free_cpus=64))  # fmt: skip
_fault_of_fact("weights were packed otherwise than configured", LOOKUP_3, "settings",
               lambda facts: [one.update(repack=False) for one in facts["engine"].values()])  # fmt: skip


@fault("prompts are told to come behind a long text that none comes behind", LOOKUP, "prompts")
def _(record: Record) -> None:
    record.config["depth"], record.config["engine"]["n_ctx"] = 200, 312
    renamed(record)


@fault("an untimed text's rounds are wider than its method decodes", LOOKUP, "texts")
def _(record: Record) -> None:
    record.config["measure"]["texts"] = 1
    items = record.config["prompts"]["items"]
    record.config["prompts"]["items"] = [more for one in items for more in (one, one | {"id": f"more_{one['id']}"})]
    full = record.config["n_predict"] - 1
    record.facts["untimed"] = [
        {"prompt": f"more_{one['id']}", "class": one["class"], "tokens": full,
         "rounds": [{"width": full, "redecoded": 0, "count": 1}]}
        for one in sorted(items, key=lambda one: one["class"])]  # fmt: skip
    renamed(record)


@fault("a GPU was in use, and there is none", LOOKUP_3, "machine")
def _(record: Record) -> None:
    record.env["device"] = "gpu"


@fault("a build is called by libraries that are not listed", LOOKUP_3, "commit")
def _(record: Record) -> None:
    record.env["engine"]["libraries"] = {}


@fault("all steps of a profile are of one layout", STEPS, "passes")
def _(record: Record) -> None:
    record.tables["steps"] = record.tables["steps"].query("layout == 'tokens'")


# Servers.

@fault("a server accepts many more guesses than it says tokens", SERVED, "tallies")
def _(record: Record) -> None:
    record.tables["served"].loc[record.mask("served", "treatment"), ["drafted", "accepted"]] = (900, 500)


_fault_of_column("a server counts another prompt", SERVED, "tallies", "served", "n_prompt", lambda own: own * 0 + 3)
_fault_of_column("a fresh server has cached its prompt", SERVED, "tallies", "served", "n_cached", lambda own: own + 5)
_fault_of_column("every answer is of one start of a server", SERVED, "tallies", "served", "starts",
                 lambda own: own * 0 + 1)  # fmt: skip
_fault_of_column("a server sends more pieces than tokens", SERVED, "tallies", "served", "events", lambda own: own + 99)
