"""The sections of the page: which tables each holds, under which columns they open, and which of them has a picture.

Every table of the report is in one of them; a row opens to all its columns. Knows nothing about files and templates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class View:
    """One table. `only` names a column and the values of it that are shown: then the whole table is in another view."""

    table: str
    label: str
    columns: tuple[str, ...]
    picture: bool = False
    only: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Part:
    """A section: `empty` says what to do where none of its tables has a row."""

    key: str
    short: str
    """What the list of sections calls it."""
    title: str
    intro: str
    empty: str
    views: tuple[View, ...]


PARTS = (
    Part(
        "speedup", "Speed-up", "Speed-up by way of decoding and class of text",
        "Different tokens a second over plain decoding's, on a logarithmic axis: left of 1.00 it is slower. A line is "
        "the 95 % interval. Where a way of decoding says tokens again, the hollow mark is what counting every emit "
        "would print.",
        "No contrast has finished; `make bench` runs the default ones.",
        (
            View("speedup", "Speed-up", ("short", "model", "machine", "prompt_class", "scope", "temperature", "speedup",
                                         "tok_s", "baseline_tok_s", "lossless", "cells"), picture=True),
            View("trials", "Builds and settings on trial", ("short", "difference", "was", "became", "speedup", "tok_s",
                                                            "lossless", "machine", "cells")),
            View("servers", "Servers on trial", ("short", "arm", "when", "tok_s", "own_tok_s", "drafted", "accepted",
                                                 "machine", "cells")),
            View("timeline", "Tokens over time, where tokens are said again", ("cell", "t_s", "counted", "distinct",
                                                                               "machine", "cells")),
        ),
    ),
    Part(
        "step_cost", "Step cost", "What a wider decode costs",
        "Time of one `llama_decode` of a width over that of width 1. Along the diagonal nothing is gained by decoding "
        "several tokens at once. Nothing is interpolated.",
        "No step-cost curve was measured; `python -m bench sweep profile=true` measures one.",
        (View("step_cost", "Step cost", ("width", "layout", "relative_cost", "step_ms", "model", "machine", "build",
                                         "cells"), picture=True),),
    ),
    Part(
        "acceptance", "Acceptance", "How often guesses are right",
        "Accepted guesses against the collision probability of the text, the sum of p(x)^2: what two independent draws "
        "agree by. Acceptance says nothing about speed.",
        "No guess was tested; `python -m bench sweep method=lookup` tests some.",
        (
            View("acceptance", "Acceptance", ("short", "streams", "temperature", "depth", "rate", "tested", "accepted",
                                              "collision_mean", "machine", "cells"), picture=True),
            View("distribution", "Distribution of the draws", ("short", "arm", "verdict", "tokens", "tv", "tv_expected",
                                                               "p", "machine", "cells")),
            View("domain", "On and off a drafter's domain", ("short", "signal", "window", "on_mean", "off_mean", "auc",
                                                             "machine", "cells")),
            View("kept_drafters", "Drafters that are kept", ("short", "prompt", "when", "tokens_per_round", "over_cold",
                                                             "machine", "cells")),
        ),
    ),
    Part(
        "round_time", "Time", "Where the time goes",
        "Mean milliseconds of a round by part, with plain decoding of the same cell as the thin bar below. *host* is "
        "what lies outside the named parts.",
        "No round was timed.",
        (View("decomposition", "Where a round's time goes", ("short", "arm", "total_ms", "decode_ms", "draft_ms",
                                                             "sample_ms", "rollback_ms", "host_ms", "machine",
                                                             "cells"), picture=True),),
    ),
    Part(
        "predictions", "Predictions", "Predicted and measured",
        "What the cost model says of an arm before anybody times it, against what was measured; on the diagonal they "
        "agree. The curve prices the decodes, everything else is as measured.",
        "No contrast has a step-cost curve of the same machine, build, model and settings.",
        (View("predictions", "Predictions", ("short", "arm", "prompt_class", "predicted", "measured", "ratio",
                                             "from_draws", "best_draft", "best_speedup", "machine", "cells"),
              picture=True),),
    ),
    Part(
        "kernels", "Kernels", "Kernels and counters",
        "A kernel's time for one matrix and several activation vectors, checked against float64 before it was timed. "
        "The read ceiling is a plain kernel that reads the weights' bytes; what is above it is void.",
        "No kernel was timed; `python -m bench kernels` times them on a GPU.",
        (
            View("kernels", "Kernels", ("variant", "format", "streams", "rows", "cols", "us", "gb_s",
                                        "share_of_read_peak", "relative_cost", "ratio_to_llama_cpp", "machine")),
            View("counters", "Counters", ("kernel", "format", "width", "dram_bytes", "l2_bytes", "l2_hit_rate", "us",
                                          "machine")),
            View("ssq", "What SSQ saves", ("what", "variant", "rows", "cols", "bytes_per_multiply",
                                           "bytes_over_one_model", "us", "machine")),
            View("kernel_resources", "Registers and memory of kernels", ("kernel", "vgprs", "sgprs", "spilled",
                                                                         "machine")),
        ),
    ),
    Part(
        "memory", "Memory", "Memory",
        "Bytes that a context of so many streams takes: computed from the model's shape, and measured.",
        "No memory was measured.",
        (View("memory", "Memory", ("model", "streams", "source", "arm", "kv_bytes", "state_bytes", "measured_bytes",
                                   "per_stream_bytes", "machine", "cells")),),
    ),
    Part(
        "energy", "Energy", "Energy",
        "By the driver's own counters over the timed windows. A token is a different one, of all answers together.",
        "No driver here counts energy.",
        (View("energy", "Energy", ("short", "arm", "joules_per_token", "mean_w", "power_cap_w", "tokens", "machine",
                                   "cells")),),
    ),
    Part(
        "noise", "Controls", "Was it measured well",
        "Every check of every cell, what held a run up, answers that are not the baseline's, and what other programs "
        "say of the same model. A cell with a failed control is void and counts for nothing.",
        "No cell was checked.",
        (
            View("controls", "Controls", ("control", "severity", "value", "sentence", "machine", "cells")),
            View("contexts", "A/A of all cells of a machine", ("again", "spread", "half_width", "readings", "machine",
                                                               "build", "cells")),
            View("hosts", "Hosts of one make", ("host", "against", "result", "step_ratio", "sentence", "machine",
                                                "build", "cells")),
            View("stalls", "Runs that were held up", ("cell", "run", "arm", "round", "lost_ms", "took_ms", "share",
                                                      "other_cpus", "steal", "machine", "cells")),
            View("differences", "Answers that are not the baseline's", ("cell", "arm", "prompt", "position", "grade",
                                                                        "gap_arm", "gap_baseline", "noise", "machine",
                                                                        "cells")),
            View("peers", "Other programs", ("tool", "width", "tok_s", "ours_tok_s", "ratio", "decode_ratio", "model",
                                             "machine", "cells")),
            View("bandwidth", "Read bandwidth", ("machine", "build", "threads", "read_gb_s", "best_gb_s", "cells")),
        ),
    ),
    Part(
        "not_run", "Not run", "What could not run, and what would",
        "Claims that nothing here measures, each with the command that would, and cells that failed or that this "
        "machine or model cannot run.",
        "Every claim was judged, and every cell has finished.",
        (
            View("claims", "Claims that nothing here measures", ("says", "published", "reason", "claim_id"),
                 only=("verdict", "not_run")),
            View("cells", "Cells that are not done", ("cell", "state", "reason", "label", "model", "machine", "cells"),
                 only=("state", "failed", "unsupported", "damaged")),
        ),
    ),
    Part(
        "provenance", "Provenance", "Provenance",
        "Every row of every file lists the cells that it rests on; each cell is a folder of raw records, whose panel "
        "shows what was recorded and the command that measures it again.",
        "No cell is stored; `make bench` measures the default ones.",
        (View("cells", "Cells", ("cell", "state", "kind", "label", "model", "machine", "build", "time_utc", "warnings",
                                 "reason", "cells")),),
    ),
)  # fmt: skip
"""In the order of the page, behind the claims."""
FEW = 9
"""Columns that a table opens with that has no view of its own."""
FURTHER = Part("further", "Further", "Further tables", "Tables without a section of their own.", "There is none.", ())


def parts(columns: Mapping[str, Sequence[str]]) -> tuple[Part, ...]:
    """The sections for some tables, by their columns: one that no view names stands behind all others."""
    known = {view.table for part in PARTS for view in part.views}
    rest = [View(name, name.replace("_", " "), tuple(names[:FEW])) for name, names in columns.items()
            if name not in known]  # fmt: skip
    return (*PARTS, replace(FURTHER, views=tuple(rest))) if rest else PARTS
