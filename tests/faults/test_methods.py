"""Methods that cheat, each run through the contrast of the toy engine: what is recorded tells, whatever they say.

The same arithmetic finds nothing in any method of the project.
"""

from __future__ import annotations

import pytest

from bench.plan.settings import Config
from bench.run.contrast import Contrast
from pti_loop.ledger import RecordError
from pti_loop.loop import Guesses
from tests.faults.cheats import known_cheats
from tests.faults.methods.detects import Loop as Detects
from tests.faults.recorded import told
from tests.run.test_contrast import PROMPTS, config, toy

RUNS = {"treatment", "carry"}
LIST = [
    ("unverified", {}, {"tokens that nothing confirms": RUNS}),
    ("unverified", {"source": "verified"}, {"more confirmed tokens than rows of logits": RUNS}),
    ("before", {}, {"decodes outside the window": RUNS, "time in no account": RUNS}),
    ("before", {"where": "beside"}, {"decodes beside, outside the window": RUNS, "time in no account": RUNS}),
    ("streams", {}, {"streams beyond the answers": RUNS, "more confirmed tokens than rows of logits": RUNS}),
    ("remembers", {}, {"carry": {"carry"}}),
    ("detects", {}, {"decodes outside the window": RUNS, "time in no account": RUNS}),
]


@pytest.fixture(autouse=True)
def cheats():
    with known_cheats():
        yield


def measured(settings: Config, model=None):
    settings.measure.control_tokens = 0
    return Contrast(model or toy(), settings, PROMPTS, "order", lambda: (0.0, 0.0), lambda *_: None).run().tables


@pytest.mark.parametrize("temperature", [0.0, 0.7])
@pytest.mark.parametrize(("name", "parameters", "faults"), LIST)
def test_every_cheat_is_told_by_what_is_recorded(name, parameters, faults, temperature):
    assert told(measured(config(name, temperature=temperature, **parameters))) == faults


@pytest.mark.parametrize("name", ["before", "remembers", "detects"])
def test_a_cheat_is_as_fast_as_it_claims_and_says_what_plain_decoding_says(name):
    """So nothing but the account tells: its texts and its times are those of a method that is really faster."""
    tables = measured(config(name))
    window = {arm: [run.decode_window_ns for run in tables["runs"] if run.arm == arm] for arm in ("baseline", *RUNS)}
    assert sum(window["treatment"]) < 0.7 * sum(window["baseline"])
    texts: dict[tuple[str, int], set[tuple[int, ...]]] = {}
    for run in tables["runs"]:
        text = tuple(row.token for row in tables["ledger"] if row.run == run.run)
        texts.setdefault((run.prompt, run.seed), set()).add(text)
    assert all(len(said) == 1 for said in texts.values())


def test_what_was_said_before_the_window_stops_the_cell():
    with pytest.raises(RecordError, match="position 1 was emitted outside the timed window"):
        measured(config("early"))


@pytest.mark.parametrize("temperature", [0.0, 0.7])
@pytest.mark.parametrize(
    ("method", "parameters"),
    [("stagger", {"emission": "published"}), ("stagger", {"emission": "distinct", "rebuild": "exact"}),
     ("stagger", {"emission": "distinct", "rebuild": "mtp"}), ("packed", {}), ("packed", {"drafter": "mtp"}),
     ("packed", {"drafter": "jacobi"}), ("jacobi", {}), ("lookup", {}), ("lookup", {"adaptive": True}), ("mtp", {}),
     ("lookup_mtp", {}), ("twin", {"twin": "1"}), ("mtp", {"draft": 3, "rollback": "checkpoint"}),
     ("lookup", {"rollback": "checkpoint"})],
)  # fmt: skip
def test_nothing_is_told_of_a_sound_method(method, parameters, temperature):
    found = told(measured(config(method, streams=3, temperature=temperature, **parameters), toy(bad_head=0.3)))
    if method == "stagger" and parameters["emission"] == "published" and temperature > 0:
        assert found.pop("tokens that nothing confirms", set()) <= {*RUNS, "sabotage", "oracle"}
    assert found == {}


def test_no_arm_looks_otherwise_to_the_method():
    """What can be read off the decoder is the same in all runs but for their length; a planted guess alone tells."""
    Detects.seen.clear()
    settings = config("detects")
    settings.measure.warmup_tokens = settings.n_predict
    measured(settings)
    full = [(shown, controlled) for shown, controlled in Detects.seen if f"n_predict={settings.n_predict}" in shown]
    assert {controlled for _, controlled in full} == {False, True}
    assert len({shown for shown, _ in full}) == 1
    assert not [name for name in dir(Guesses()) if not name.startswith("_") and name not in ("replace", "fill", "twin")]


def test_the_carried_prompt_tells_a_memory_from_the_first_run_on():
    tables = measured(config("remembers"))
    accepted = [sum(row.accepted for row in tables["rounds"] if row.run == run.run)
                for run in tables["runs"] if run.arm == "carry"]  # fmt: skip
    assert accepted[0] == 0 and min(accepted[1:]) >= 20
