"""What a cell says that it is, against what else it says: id, machine, build, facts. It looks at no run."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from bench.build_name import digest
from bench.judge.findings import engine_build
from bench.machine_name import machine_id, make_of
from bench.records.identity import stored_id

TELLS_PROCESS = 3
"""The first schema whose every contrast tells of its process."""
OF_BASELINE = ("baseline", "again", "reference")
"""Contexts that the baseline's build makes."""

if TYPE_CHECKING:
    from bench.judge.measure.case import Case


def recomputed_id(case: Case) -> str | None:
    """The id by what is stored; None for a cell of schema 1 whose method reads a file, whose hash it does not tell."""
    cell = case.cell
    return stored_id(cell.config, engine_build(cell), str((cell.facts.get("model") or {}).get("sha256") or ""))


def id_is_the_hash(case: Case) -> str | None:
    """The id against the one that its configuration, weights and build give, where they tell it."""
    made = recomputed_id(case)
    if made is None or made == case.cell.cell:
        return None
    return f"the cell is called {case.cell.cell}, and its configuration, weights and build give {made}"


def machines_agree(case: Case) -> str | None:
    """Folder, configuration and provenance."""
    cell = case.cell
    about = cell.env.get("machine") or {}
    named = {"cell.yaml": cell.config.get("machine"), "env.json": about.get("name")}
    for file, name in named.items():
        if name is not None and name != make_of(cell.machine):
            return f"{file} says that it was measured on {name}, and it lies among the cells of {make_of(cell.machine)}"
    model = cell.facts.get("model") or {}
    offloaded = [facts.get("layers_offloaded") for facts in ((cell.facts.get("engine") or {}).values()) if facts]
    if any([*offloaded, model.get("layers_offloaded")]) and "gpus" in about and not about["gpus"]:
        return "layers were offloaded, and the machine has no GPU"
    if cell.env.get("device") == "gpu" and about.get("gpus") == []:
        return "env.json says that a GPU was in use, and lists none"
    known = {str(gpu.get("name")) for gpu in about.get("gpus") or []}
    if "gpus" in about and (other := sorted(cell.log.devices - known)):
        return f"llama.cpp found the GPU {other[0]}, and env.json lists {', '.join(sorted(known)) or 'none'}"
    return None


def name_is_made(case: Case) -> str | None:
    """A name that ends as made ones do is made of this processor and GPU; any other was given by somebody."""
    about, machine = case.cell.env.get("machine") or {}, make_of(case.cell.machine)
    if not re.search(r"-\d+c$", machine) or not about.get("cpu"):
        return None
    made = machine_id(str(about["cpu"]), int(about.get("cores") or 0), about.get("gpus") or [])
    if made == machine:
        return None
    return f"its processor and GPU give the name {made}, and it lies among the cells of {machine}"


def builds_agree(case: Case) -> str | None:
    """The build of each context against that of the provenance: one commit, however many digits of it are told."""
    commit = str((case.cell.env.get("engine") or {}).get("llama_cpp_commit") or "")
    build = engine_build(case.cell)
    if len(commit) >= 7 and "llama" not in build and commit[:7] not in build and "-" in build:
        return f"env.json names build {build} and commit {commit}, which are not one"
    if told := not_its_files(case.cell.env.get("engine") or {}):
        return told
    other = str((case.cell.env.get("treatment") or {}).get("llama_cpp_commit") or "")
    of_baseline = commit
    for arm, facts in (case.cell.facts.get("engine") or {}).items():
        told = str((facts or {}).get("build") or "")
        commit = of_baseline if arm in OF_BASELINE or not other else other
        if len(commit) >= 7 and len(told) >= 7 and not (commit.startswith(told) or told.startswith(commit)):
            return f"the context of {arm} was made by build {told}, and env.json names commit {commit}"
    return None


def difference_is_told(case: Case) -> str | None:
    """The treatment's setting in words and as a value; of a build, the one that env.json describes."""
    treatment = case.cell.config.get("treatment") or {}
    values, told = treatment.get("engine") or {}, case.difference
    if not values or ", ".join(values) != told.get("key"):
        listed = ", ".join(values) or "nothing"
        return f"cell.yaml says that {told.get('key') or 'nothing'} is on trial, and lists {listed}"
    other = case.cell.env.get("treatment") or {}
    if wrong := _told_otherwise(values, told, case.cell.config.get("engine") or {}):
        return wrong
    if "build" not in values:
        return "env.json has a build of the treatment's own, which is not on trial" if other else None
    if values["build"] != other.get("build"):
        return f"build {values['build']} is on trial, and env.json describes {other.get('build') or 'none'}"
    return not_its_files(other)


def _told_otherwise(values: Mapping[str, Any], told: Mapping[str, str], engine: Mapping[str, Any]) -> str | None:
    """The words of a setting on trial against its value; those of a build are made of what it is called."""
    if "build" in values:
        made = f"build {told.get('became')}"
        return None if told.get("words") == made else f"cell.yaml says {made}, and calls it '{told.get('words')}'"
    if any("/" in str(value) for value in values.values()):
        return None
    became = ", ".join(dict.fromkeys(map(_word, values.values())))
    key = ", ".join(values)
    for name, made in (("became", became), ("words", f"{key}={became}")):
        if told.get(name) not in (made, None) and all(values.values()):
            return f"cell.yaml says that {key} became {became}, and calls it '{told[name]}'"
    was = [engine.get(name) for name in values]
    if None not in was and (made := ", ".join(dict.fromkeys(map(_word, was)))) != told.get("was", made):
        return f"cell.yaml says that {key} was {made}, and calls it '{told['was']}'"
    return None


def _word(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def not_its_files(engine: Mapping[str, Any]) -> str | None:
    """Why a build is not called by the libraries that are listed beside its name; None where it is, or none are."""
    name, _, told = str(engine.get("build") or "").partition("+")
    files = engine.get("libraries")
    if told and "libraries" in engine and not files:
        return f"env.json names build {name}+{told}, and lists none of its libraries"
    if not told or not isinstance(files, Mapping) or not files:
        return None
    made = digest({str(file): str(value) for file, value in files.items()})
    return None if made == told else f"env.json names build {name}+{told}, and its libraries make {name}+{made}"


def facts_are_there(case: Case) -> str | None:
    """What the worker writes beside the runs of every contrast. Nothing is asked of a cell without a schema."""
    facts, config = case.cell.facts, case.cell.config
    if "schema" not in config:
        return None
    engines = facts.get("engine") or {}
    lacking = [f"the engine's settings of {arm}" for arm in ("baseline", "treatment") if not engines.get(arm)]
    if (config.get("measure") or {}).get("noise_prompts") and not (facts.get("noise") or {}).get("positions"):
        lacking.append("the noise between shapes of a decode")
    if int(config["schema"]) >= TELLS_PROCESS and not facts.get("process"):
        lacking.append("the process that measured")
    model = facts.get("model") or {}
    layers = (engines.get("treatment") or {}).get("layers_offloaded"), model.get("layers_offloadable")
    divided = bool(layers[0]) and layers[0] != layers[1]
    if not (facts.get("bandwidth") or {}).get("read_gb_s") and not divided:
        lacking.append("the read bandwidth")
    if not model.get("step_bytes"):
        lacking.append("the bytes of the weights")
    return f"it lacks {', '.join(lacking)}" if lacking else None
