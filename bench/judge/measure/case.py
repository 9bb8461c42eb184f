"""One stored cell while it is judged: its records summed up once, its checks, and what its rows have in common.

It knows no figure. What several measures need of a cell is computed when it is first asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar, cast

from bench.judge.arm import arm_of
from bench.judge.engine_settings import PRICED, TOLD
from bench.judge.findings import VOID, Control, is_synthetic, model_of, origin
from bench.judge.measure.curve import Curve, curves
from bench.judge.measure.layout import Design, contrast_design
from bench.judge.measure.runs import run_table
from bench.judge.measure.stalls import Settled, settled
from bench.judge.tables import CONTROLS, PROFILE, named
from bench.records.drawing import drawing, drawn_words
from bench.records.stopping import FIXED
from pti_loop.ledger import RecordError

if TYPE_CHECKING:
    from bench.judge.arm import Arm
    from bench.judge.measure.runs import RunTable
    from bench.records.cells import StoredCell

T = TypeVar("T")


@dataclass(frozen=True)
class Profile:
    """The step-cost curves of a profile, and what a cell must share with it to be priced by them."""

    cell: str
    identity: tuple[object, ...]
    curves: Sequence[Curve]
    host: str = ""
    """Key of the host that it was measured on; empty where the record does not tell."""


class Profiles:
    """The profiles that there are, found by what a cell must share with them, however many there are."""

    def __init__(self, profiles: Iterable[Profile] = ()) -> None:
        self._alike: dict[tuple[object, ...], list[Profile]] = {}
        self._own: dict[tuple[object, str], Profile] = {}
        for one in profiles:
            self._alike.setdefault(one.identity, []).append(one)
            self._own.setdefault((one.identity[0], one.cell), one)

    def alike(self, identity: tuple[object, ...]) -> Sequence[Profile]:
        """Those of an identity, in their order."""
        return self._alike.get(identity, ())

    def own(self, machine: str, cell: str) -> Profile | None:
        """The profile that a cell is."""
        return self._own.get((machine, cell))


class Case:
    """A cell and the profiles that there are. Figures of a contrast raise RecordError where its records say nothing."""

    def __init__(self, cell: StoredCell, profiles: Iterable[Profile] | Profiles = (), contradiction: str = "") -> None:
        """`contradiction` is what the records were found to say against themselves, as a sentence."""
        self.cell, self.contradiction = cell, contradiction
        self._profiles = profiles if isinstance(profiles, Profiles) else Profiles(profiles)
        self._known: dict[Callable[[Case], Any], Any] = {}

    def once(self, what: Callable[[Case], T]) -> T:
        """What a function says of this case, computed the first time."""
        if what not in self._known:
            self._known[what] = what(self)
        return cast(T, self._known[what])

    @cached_property
    def done(self) -> bool:
        """Whether the cell has finished."""
        return self.cell.status.get("state") == "done"

    @cached_property
    def kind(self) -> str:
        """Contrast or profile."""
        return str(self.cell.config.get("kind", ""))

    @cached_property
    def temperature(self) -> float:
        """Of the sampling."""
        return float(self.cell.config.get("temperature", 0.0))

    @cached_property
    def arm(self) -> Arm:
        """What is on trial."""
        return arm_of(self.cell)

    @cached_property
    def runs(self) -> RunTable:
        """The runs of a contrast, summed up."""
        return run_table(self.cell)

    @cached_property
    def stalls(self) -> Settled:
        """What stalls took of them."""
        return settled(self.runs)

    @cached_property
    def settled(self) -> RunTable:
        """The runs without their stalls: what every estimate of a ratio rests on."""
        return self.stalls.table

    @cached_property
    def design(self) -> Design:
        """The layout of the contrast over all its prompts. Raises RecordError when no block has both arms."""
        found = contrast_design(self.runs)
        if found is None:
            raise RecordError("no block has both a baseline and a treatment run")
        return found

    @cached_property
    def stopped(self) -> str:
        """Why the cell got no further block, by its record: `fixed` where its plan had so many."""
        return str((self.cell.facts.get("stopping") or {}).get("why") or FIXED)

    @cached_property
    def curves(self) -> Sequence[Curve]:
        """The step-cost curves of the cell itself."""
        mine = self._profiles.own(self.cell.machine, self.cell.cell)
        return mine.curves if mine else curves(self.cell.steps)

    @cached_property
    def priced_by(self) -> tuple[str, Curve] | None:
        """Cell and step-cost curve of the same machine, build, weights and settings; None where there is none.

        The arm's own layout comes first, the other stands in for it, then its own host, then the nearest context.
        """
        fits = [(one, curve) for one in self._profiles.alike(identity(self.cell))
                for curve in one.curves if 1 in curve.step_ms]  # fmt: skip
        if not fits:
            return None
        host = host_of(self.cell)
        n_past = float(self.cell.runs["n_prompt"].mean()) / max(int(self.cell.config.get("streams") or 1), 1)
        layout = self.arm.layout
        found, curve = min(fits, key=lambda fit: (fit[1].layout != layout, fit[0].host != host,
                                                  abs(fit[1].n_past - n_past), fit[0].cell))  # fmt: skip
        return found.cell, curve

    @cached_property
    def controls(self) -> Sequence[Control]:
        """The checks of a finished cell. Records that contradict themselves are one check, which voids the cell."""
        if self.contradiction:
            return [Control("records", VOID, f"{self.contradiction}; run the cell again")]
        names = CONTROLS.get(self.kind, ()) if self.done else ()
        return [control for name in names for control in named(name)(self)]

    @cached_property
    def void_reason(self) -> str:
        """The checks that failed, with what they say; empty for a sound cell."""
        failed = (control for control in self.controls if control.severity == VOID)
        return "; ".join(f"{control.control}: {control.sentence}" for control in failed)

    @cached_property
    def of_model(self) -> Mapping[str, Any]:
        """Columns that every row about the cell's model has."""
        synthetic = {"synthetic": True} if is_synthetic(self.cell) else {}
        return {**origin(self.cell), **model_of(self.cell), "conditions": self.settings | synthetic}

    @cached_property
    def of_arm(self) -> Mapping[str, Any]:
        """Columns that every row about the cell's arm has. What is true of the whole cell is one mapping."""
        arm, shared = self.arm, self.of_model
        conditions = {
            **arm.parameters, **shared["conditions"], "parameters": dict(arm.parameters), "guesses": arm.guesses,
            "plain": arm.plain, "label": self._named(arm.label), "n_predict": self.cell.config.get("n_predict"),
            "depth": int(self.cell.config.get("depth") or 0), **drawing(self.cell.config),
        }  # fmt: skip
        return {
            **shared, "conditions": conditions, "method": arm.method, "short": self._named(arm.short),
            "streams": self.cell.config.get("streams", 1), "temperature": self.temperature,
            "void": bool(self.void_reason), "void_reason": self.void_reason,
        }  # fmt: skip

    def _named(self, arm: str) -> str:
        """The arm with what else is on trial, which alone is told of plain decoding."""
        words = self.difference.get("words", "")
        return ", ".join(filter(None, ("" if words and self.arm.plain else arm, drawn_words(self.cell.config), words)))

    @cached_property
    def difference(self) -> Mapping[str, str]:
        """In what the arms differ beside the method, as the record says it: `key`, `was`, `became` and `words`.

        Empty where nothing but the method is on trial.
        """
        told = (self.cell.config.get("treatment") or {}).get("declaration") or {}
        return {str(name): str(value) for name, value in told.items()}

    @cached_property
    def settings(self) -> dict[str, Any]:
        """The engine's settings that are among the conditions."""
        engine = self.cell.config.get("engine") or {}
        return {name: engine.get(name) for name in TOLD}


def identity(cell: StoredCell) -> tuple[object, ...]:
    """What a step-cost curve must share with a cell: machine, build, weights and settings that decide a step's time."""
    engine, model = cell.config.get("engine") or {}, cell.facts.get("model") or {}
    weights = model.get("sha256") or (cell.config.get("model") or {}).get("name")
    return (cell.machine, origin(cell)["build"], weights, *(str(engine.get(name)) for name in PRICED))


def is_profile(cell: StoredCell) -> bool:
    """Whether the cell has finished step-cost curves to offer."""
    return cell.status.get("state") == "done" and cell.config.get("kind") == PROFILE


def profile_of(cell: StoredCell) -> Profile:
    """A profile as other cells need it."""
    return Profile(cell.cell, identity(cell), curves(cell.steps), host_of(cell))


def host_of(cell: StoredCell) -> str:
    """Key of the host that a cell was measured on; empty where its record does not tell."""
    return str(cell.env.get("host") or "")
