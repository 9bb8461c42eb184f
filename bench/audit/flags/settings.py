"""Under which conditions two sides were measured, and what of that differs.

Another build or backend may be what is compared, so it is named and the ratio stands; any other difference makes the
ratio one of two things at once. It knows no rates but the prompt's, which no way of decoding changes much.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from bench.audit.compare import Comparison
from bench.audit.numbers import number
from bench.audit.trials import Flag, Record, Trial

SUBJECTS = (
    "build",
    "build_commit",
    "build_number",
    "backends",
    "backend",
    "gpu_info",
    "devices",
    "device",
    "gpu",
    "driver",
    "engine",
    "machine",
    "host",
    "cpu_info",
)
"""Settings that people compare on purpose."""
BY_DESIGN = {"cell": ("n_seq_max", "n_ctx")}
"""Settings in which the harness's own arms differ: its baseline has a context of its own, `solo` the treatment's."""
FAMILIES = {
    "vLLM's benchmark": "a serving benchmark",
    "SGLang's bench_serving": "a serving benchmark",
    "mtp-bench's JSON": "mtp-bench",
    "speed-bench's JSON": "speed-bench",
    "Ollama's API": "Ollama",
    "llama-server's log": "llama-server",
    "llama-server's timings": "llama-server",
    "a CSV": "a table",
    "JSON rows": "a table",
    "llama-spec-bench's JSON": "llama-spec-bench",
    "TensorRT-LLM's report": "TensorRT-LLM's benchmark",
}
"""Two forms of one tool's output."""
PREFILL_MOVES = 1.4
SIZES = 0.005
"""A size that a table prints in GiB with two decimals."""
FEW = 3
"""Settings that one side may lack before it is taken for a text that says little, and those that both must say."""


def setting_flags(record: Record, against: Record | None, found: list[Comparison]) -> list[Flag]:
    """Flags about what two sides do not share."""
    flags = list(_tools(record, against))
    seen: set[str] = set()
    for one in found:
        if one.kind in ("width", "baseline"):
            continue
        for flag in [*_differences(record, one), *_prefill(one)]:
            if flag.sentence not in seen:
                seen.add(flag.sentence)
                flags.append(flag)
    return flags


def differing(left: Mapping[str, str], right: Mapping[str, str], ignore: tuple[str, ...] = ()) -> dict[str, str]:
    """Keys that differ, with both values. A key that one side lacks differs as well, unless that side lacks many."""
    keys = [key for key in dict.fromkeys([*left, *right]) if key not in ignore and not key.endswith("*")]
    both = [key for key in keys if key in left and key in right]
    if len(keys) - len(both) <= FEW <= len(both):
        both = keys
    return {
        key: f"{left.get(key, 'not said')} against {right.get(key, 'not said')}"
        for key in both
        if not _same(left.get(key), right.get(key))
    }


def _same(left: str | None, right: str | None) -> bool:
    if left is None or right is None or left == right:
        return left == right
    one, two = number(left), number(right)
    return (
        one is not None
        and two is not None
        and abs(one - two) <= SIZES * max(abs(one), abs(two))
        and max(one, two) > 1e6
    )


def _family(form: str) -> frozenset[str]:
    return frozenset(FAMILIES.get(name, name) for name in form.split(", "))


def _tools(record: Record, against: Record | None) -> Iterator[Flag]:
    if against is not None and not _family(record.format) & _family(against.format):
        yield Flag(
            "NOT_COMPARABLE",
            f"{record.format} against {against.format}: two tools time different things; measure both with one",
        )
    programs = dict.fromkeys(_family(record.format))
    if against is None and len(programs) > 1 and len({trial.block for trial in record.trials}) > 1:
        yield Flag(
            "NOT_COMPARABLE",
            f"{' and '.join(sorted(programs))} in one text: two tools time different things; measure both with one",
        )


def _differences(record: Record, one: Comparison) -> Iterator[Flag]:
    for pair in one.pairs:
        left, right = pair.treated[0], pair.base[0]
        odd = differing(left.settings, right.settings, BY_DESIGN.get(record.format, ()))
        if left.temperature != right.temperature:
            odd["temperature"] = f"{left.temperature} against {right.temperature}"
        if not odd:
            continue
        listed = ", ".join(f"{key} ({values})" for key, values in list(odd.items())[:12])
        subject = all(key in SUBJECTS for key in odd)
        yield Flag(
            "DIFFERS" if subject else "NOT_COMPARABLE",
            f"{one.where}: the two sides differ in {listed}"
            + ("; the ratio is that of this difference" if subject else "; the ratio is of all of that at once"),
            {"keys": len(odd)},
        )
        return


def _prefill(one: Comparison) -> Iterator[Flag]:
    """A prompt's rate that moves with the answer's: another placement or load, which no way of decoding explains."""
    if one.kind == "arm":
        return
    for pair in one.pairs:
        left, right = pair.treated[0], pair.base[0]
        if not _like(left, right):
            continue
        moved, ratio = left.prefill_rate / right.prefill_rate, pair.estimate.ratio
        if max(moved, 1 / moved) > PREFILL_MOVES and (moved > 1) == (ratio > 1) and abs(ratio - 1) > 0.1:
            silent = (
                ""
                if left.settings and right.settings
                else " Neither text says on what it ran (ollama ps, the build, the settings)."
            )
            yield Flag(
                "NOT_COMPARABLE",
                f"{one.where}: the prompt's rate moves too, {right.prefill_rate:.1f} to {left.prefill_rate:.1f} "
                f"tok/s ({moved:.2f}x): "
                f"another placement, build or load, and no way of decoding.{silent}",
                {"prefill": moved, "decode": ratio},
            )
            return


def _like(left: Trial, right: Trial) -> bool:
    """Whether both sides timed a prompt of about the same length."""
    if not left.prefill_rate > 0 or not right.prefill_rate > 0:
        return False
    return not left.prompt_tokens or not right.prompt_tokens or 0.5 < left.prompt_tokens / right.prompt_tokens < 2
