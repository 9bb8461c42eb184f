"""What an audit says, as data. `bench.audit.show` prints it."""

from __future__ import annotations

from dataclasses import dataclass, field

from bench.audit.trials import Flag


@dataclass(frozen=True)
class AuditReport:
    """What the audit found. `trials` has one dict a trial; a rate that the record does not give is nan."""

    path: str
    format: str
    answer: str
    trials: list[dict[str, object]]
    contrasts: list[dict[str, object]]
    launches: list[dict[str, object]]
    scope: list[str]
    notes: list[str]
    flags: list[Flag]
    claim: dict[str, object] | None = None
    readings: list[dict[str, object]] = field(default_factory=list)
    """Every reading of the trial that a published rate is of, or is nearest to."""

    @property
    def codes(self) -> list[str]:
        """Codes of the flags, each once, in order."""
        return list(dict.fromkeys(flag.code for flag in self.flags))

    @property
    def exit_code(self) -> int:
        """0 when nothing is flagged, 1 otherwise. A file that cannot be read is a UserError, exit code 2."""
        return 1 if self.flags else 0
