"""The runs that a configuration asks for, against those that are there. It looks at no time and no token."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from bench.judge.invariants.pieces import machine_times
from bench.judge.invariants.places import CARRY, KEPT
from bench.judge.invariants.settings import SLACK
from bench.judge.tables import SERVED
from bench.records.arms import APART, PLANTED
from bench.records.contexts import anew, usual
from bench.records.drawn import Drawn
from bench.records.stopping import BUDGET, FIXED, NARROW, STOPPED, looked

if TYPE_CHECKING:
    from bench.judge.measure.case import Case

DRAWN = 3
"""The first schema whose every contrast is drawn as it is today."""
SEEDS = 1_000_003
"""Between the seeds of two configurations: more than a cell has runs."""


def blocks_as_configured(case: Case) -> str | None:
    """Blocks, their prompts and classes, and each arm twice; controls in as many blocks as were asked for.

    Where blocks went on until they were enough, those of the plan come again and again, each time as a whole.
    """
    wanted = _tasks(case)
    if wanted is None:
        return None
    table, measure = case.runs, case.cell.config["measure"]
    own = ~table.any_of(APART)
    there = sorted(set(table.block[own].tolist()))
    passes, more = divmod(len(there), len(wanted))
    if there != list(range(len(there))) or more or not (passes == 1 or (passes > 1 and looked(case.cell.config))):
        each = " a pass" if looked(case.cell.config) else ""
        return f"{len(wanted)} blocks{each} were configured, and {len(there)} are stored"
    arms: dict[int, Counter[str]] = {block: Counter() for block in there}
    about: dict[int, str] = {}
    runs = zip(table.block[own].tolist(), table.arm[own].tolist(), table.prompt[own].tolist(), strict=True)
    for block, arm, prompt in runs:
        arms[block][arm] += 1
        if about.setdefault(block, prompt) != prompt:
            return f"block {block} decodes '{about[block]}' and '{prompt}', and a block is about one prompt"
    for first in range(0, len(there), len(wanted)):
        if odd := Counter(wanted) - Counter(about[block] for block in there[first : first + len(wanted)]):
            return f"no block from {first} on is about '{next(iter(odd))}', which was configured"
    classes = _classes(case)
    for prompt, kind in set(zip(table.prompt.tolist(), table.prompt_class.tolist(), strict=True)):
        if classes and classes.get(prompt, kind) != kind:
            return f"'{prompt}' is of the class {classes[prompt]}, and runs of it say {kind}"
    for block, count in arms.items():
        if lone := [arm for arm in ("baseline", "treatment", *count) if count[arm] != 2]:
            return f"block {block} has {count[lone[0]]} runs of {lone[0]}, and every arm runs twice in a block"
    return _controls(case, measure, list(arms.values()), len(wanted))


def _classes(case: Case) -> dict[str, str]:
    """The class of each prompt or group of prompts that a run is about, as configured: `mixed` for one of several."""
    items = (case.cell.config.get("prompts") or {}).get("items") or []
    known = {str(item["id"]): str(item["class"]) for item in items}
    found = {}
    for prompt in set(case.runs.prompt.tolist()):
        kinds = {known.get(part, "") for part in prompt.split("+")}
        found[prompt] = kinds.pop() if len(kinds) == 1 else "mixed"
    return found if known else {}


def _controls(case: Case, measure: Mapping[str, Any], arms: list[Counter[str]], planned: int) -> str | None:
    asked = {"again": measure.get("again_blocks") or 0}
    own = measure.get("control_blocks") or 0
    if case.arm.guesses:
        asked |= dict.fromkeys(PLANTED, own)
    sequences = ((case.cell.facts.get("engine") or {}).get("treatment") or {}).get("n_seq_max") or 1
    if sequences > 1 and case.kind != SERVED:  # both servers have as many slots, and none runs alone beside them
        asked["solo"] = own
    for arm, count in asked.items():
        found, wanted = sum(arm in block for block in arms), min(count, planned)
        if found != wanted:
            return f"{wanted} blocks with the control {arm} were configured, and {found} have it"
    return None


def drawn_by_the_id(case: Case) -> str | None:
    """Blocks and the arms in them, in the order that the cell's id draws: of another configuration it draws another."""
    wanted, table = _tasks(case), case.runs
    if int(case.cell.config.get("schema") or 0) < DRAWN or not wanted:
        return None
    measure = case.cell.config["measure"]
    drawn, own = Drawn(case.cell.cell), ~table.any_of(APART)
    blocks = int(table.block[own].max()) + 1
    there = set(table.arm[own].tolist())
    controls = [arm for arm in (*PLANTED, "solo") if arm in there]
    turning = (case.cell.facts.get("turns") or {}).get("arms") or ()
    prompts = drawn.plan_pass(wanted)
    again = drawn.in_each_context(len(wanted), int(measure.get("again_blocks") or 0), renewals(case, len(wanted)))
    controlled = drawn.chosen(len(wanted), int(measure.get("control_blocks") or 0) if controls else 0)
    for block in range(blocks):
        if block == len(prompts):
            prompts += drawn.plan_pass(wanted)
        more = [*(["again"] if block in again else []), *(controls if block in controlled else [])]
        half = drawn.arms(block, more, turning)
        mine = np.flatnonzero(own & (table.block == block))
        mine = mine[np.argsort(table.order[mine], kind="stable")]
        if [*half, *half[::-1]] != table.arm[mine].tolist() or {prompts[block]} != set(table.prompt[mine].tolist()):
            return (f"block {block} decodes '{table.prompt[mine[0]] if len(mine) else ''}' by "
                    f"{', '.join(table.arm[mine].tolist())}, and the cell's id draws '{prompts[block]}' by "
                    f"{', '.join(half)} and back: it is another cell's record")  # fmt: skip
    return None


def renewals(case: Case, blocks: int) -> set[int]:
    """Blocks before which contexts were to be made anew, of so many; servers have none."""
    if case.kind == SERVED:
        return set()
    offloaded = ((case.cell.facts.get("engine") or {}).get("baseline") or {}).get("layers_offloaded")
    contexts = int((case.cell.config.get("measure") or {}).get("contexts") or usual(bool(offloaded)))
    if contexts == 1 and case.runs.made is not None and not case.runs.made.any():
        return set()  # whoever asks for one set of contexts need not make another for a further pass
    return anew(len(_tasks(case) or ()) or blocks, blocks, contexts)


def stopped_by_the_rule(case: Case) -> str | None:
    """What the rule saw after each pass against the blocks that are stored, and against where it says that it ended."""
    told, config = case.cell.facts.get("stopping") or {}, case.cell.config
    why = told.get("why") or FIXED
    if fault := _as_long(case, told.get("seconds")):
        return fault
    if not looked(config):
        return None if why == FIXED else f"blocks ended as '{why}', and no rule was configured that could end them"
    measure, seen = config["measure"], told.get("passes") or []
    if why not in STOPPED or not seen:
        return f"blocks ended as '{why}', and the record does not tell what the rule saw"
    blocks, each = len(np.unique(case.runs.block[~case.runs.any_of(APART)])), float(seen[0].get("blocks") or 0)
    if [one.get("blocks") for one in seen] != [each * (place + 1) for place in range(len(seen))] or each * len(
        seen) != blocks:  # fmt: skip
        return f"the rule saw {seen[-1].get('blocks')} blocks in {len(seen)} passes, and {blocks} are stored"
    narrow = [one.get("half_width") is not None and one["half_width"] <= measure["until"] for one in seen]
    if any(narrow[:-1]) or narrow[-1] != (why == NARROW):
        return f"blocks ended as '{why}' after {len(seen)} passes, and the half widths that its rule saw say another"
    spent = [0.0, *(float(one.get("seconds") or 0) for one in seen)]
    steps = np.diff(spent)
    over = spent[-1] + steps.max() > 60 * float(measure.get("budget") or 0)
    if (steps < 0).any() or (why == BUDGET and not over):
        return f"blocks ended as '{why}' after {spent[-1]:.0f} s, and the budget had room for another pass"
    return None


def _as_long(case: Case, seconds: float | None) -> str | None:
    """The blocks took no less than their runs, and no more than the cell."""
    whole, own = case.cell.status.get("seconds"), ~case.runs.any_of(APART)
    if seconds is None or whole is None:
        return None
    start, end = machine_times(case)
    span = float(end[own].max() - start[own].min()) * 1e-9
    if span <= SLACK * seconds and seconds <= SLACK * float(whole):
        return None
    return f"the blocks took {seconds:.1f} s, their runs {span:.1f} s from first to last, and the cell {whole:.1f} s"


def _tasks(case: Case) -> list[str] | None:
    """The prompts of each block as the configuration has them; None where it does not tell."""
    config = case.cell.config
    measure, items = config.get("measure"), (config.get("prompts") or {}).get("items")
    if not measure or not items or "per_class" not in measure:
        return None
    streams = int(config.get("streams") or 1)
    found: list[str] = []
    for kind in measure.get("classes") or sorted({str(item["class"]) for item in items}):
        pool = [item for item in items if item["class"] == kind]
        for first in range(min(int(measure["per_class"]), len(pool))):
            group = [pool[first]]
            if case.arm.independent:
                rest = pool if len(pool) >= streams else items
                at = rest.index(pool[first])
                group = [rest[(at + place) % len(rest)] for place in range(streams)]
            found += ["+".join(str(item["id"]) for item in group)] * int(measure.get("blocks_per_prompt") or 1)
    return found


def seeds_as_configured(case: Case) -> str | None:
    """Seeds and lengths. The controls with planted guesses may be shorter, and nothing else."""
    config, table = case.cell.config, case.runs
    if "schema" not in config:
        return None
    told = _carried(case) or _kept(case)
    if told:
        return told
    own = ~table.any_of(APART)
    half = np.array([table.order[table.block == block].max() + 1 for block in table.block]) / 2
    seed = int(config["seed"]) * SEEDS + 2 * table.block + (table.order >= half)
    wrong = np.flatnonzero(own & (table.seed != seed))
    if len(wrong):
        at = wrong[0]
        return f"run {table.run[at]} has the seed {table.seed[at]}, and its block and turn give {seed[at]}"
    full = int(config["n_predict"])
    short = min(int((config.get("measure") or {}).get("control_tokens") or full), full)
    wrong = np.flatnonzero(table.n_predict != np.where(table.any_of(PLANTED), short, full))
    if len(wrong):
        at = wrong[0]
        return f"run {table.run[at]} ({table.arm[at]}) was asked for {table.n_predict[at]} tokens, not those configured"
    return None


def _carried(case: Case) -> str | None:
    """The carried prompt: cold, again and in the end, in a block behind all others, with the seed of its first turn."""
    table = case.runs
    carried = np.flatnonzero(table.of(CARRY))
    if not len(carried):
        return None
    if len(carried) != 3 or table.order[carried].tolist() != [0, 1, 2]:
        return f"the carried prompt has {len(carried)} runs; it is decoded cold, again and in the end"
    first, mine = carried[0], table.of("treatment")
    seeds = table.seed[mine & (table.prompt == table.prompt[first])].tolist()
    if set(table.seed[carried].tolist()) - set(seeds):
        return f"the carried prompt '{table.prompt[first]}' has a seed that no block gives it"
    return None


def _kept(case: Case) -> str | None:
    """A kept drafter's runs: the carried prompt with its seed, cold, again, after a foreign one and again, or none."""
    table = case.runs
    kept, remembers = np.flatnonzero(table.of(KEPT)), bool((case.cell.facts.get("drafter") or {}).get("remembers"))
    if not len(kept):
        return "the drafter could be kept from answer to answer, and no run tells what that does" if remembers else None
    if not remembers:
        return "runs with a drafter that is kept are stored, and the drafter keeps nothing"
    if table.order[kept].tolist() != [0, 1, 2, 3]:
        return f"a drafter that is kept has {len(kept)} runs; its prompt comes twice, and twice after a foreign one"
    if len({*table.prompt[kept].tolist(), *table.prompt[table.of(CARRY)].tolist()}) != 1 or len(
            {*table.seed[kept].tolist(), *table.seed[table.of(CARRY)].tolist()}) != 1:  # fmt: skip
        return "a drafter that is kept has another prompt or seed than the carried prompt's runs beside it"
    return None
