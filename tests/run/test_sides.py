"""Two processes that take turns, with a toy model in each: they say what a model of this process says."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from bench.run import side as side_module
from bench.run.arms import Arms, Task
from bench.run.replay import Shape
from bench.run.side import Side
from bench.run.sides import HELD, Sides
from pti_loop.engine import EngineError, Unsupported
from tests.run.test_contrast import PROMPTS, toy
from tests.run.test_trial import on_trial

ROOT = Path(__file__).resolve().parents[2]
TICKS_S = 0.03
"""CPU time that a process may seem to have taken while it stood still: the system tells it in hundredths of a second,
and a toy's run lasts no longer than one of them."""
CHILD = """
import os, signal, sys, threading
sys.path.insert(0, {root!r})
from multiprocessing.connection import Connection
from bench.run.side_process import Server, serve
from pti_loop.engine import Unsupported
from pti_loop.fake import FakeModel

from tests.run.test_contrast import PROMPTS
from tests.run.test_trial import on_trial

from bench.run.engines import llama
llama.build = lambda: {{"build": "toy"}}

class Toy(Server):
    def die(self):
        os.kill(os.getpid(), signal.SIGSEGV)
    def refuse(self):
        raise Unsupported("not on this toy")
    def spin(self):
        threading.Thread(target=lambda: [None for _ in iter(int, 1)], daemon=True).start()

def load(job):
    model = FakeModel(step_ns=lambda width: 1_000_000)
    facts = model.facts()
    model.facts = lambda: facts | {{"layers_offloaded": 0, "side": job["side"], "variable": os.environ.get("ARM", "")}}
    return model, on_trial(build="native"), {{"step_bytes": 1}}, PROMPTS

serve(Connection(int(sys.argv[1])), Toy(load))
"""


@pytest.fixture
def toys(tmp_path, monkeypatch):
    """Both sides, each a process of its own that runs a toy."""
    script = tmp_path / "child.py"
    script.write_text(CHILD.format(root=str(ROOT)))
    real = subprocess.Popen
    monkeypatch.setattr(side_module.subprocess, "Popen",
                        lambda command, **more: real([sys.executable, str(script), *command[3:]], **more))  # fmt: skip
    opened: list[Sides] = []

    def make(together=True) -> Sides:
        both = {name: Side(name, {"ARM": name}) for name in HELD}
        opened.append(Sides(both, on_trial(build="native"), {"job": 1}, together))
        return opened[-1]

    yield make
    for one in opened:
        for side in one.sides.values():
            side.close()


def state(side: Side) -> str:
    """As in /proc: T is stopped, S asleep."""
    assert side._process is not None
    return Path(f"/proc/{side._process.pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_each_side_has_its_own_environment_and_waits_stopped(toys):
    arms = toys()
    about = arms.load()
    assert about.model["side"] == about.model["variable"] == "baseline"
    assert arms.about["treatment"].model["variable"] == "treatment"
    ends = time.monotonic() + 10
    while [state(side) for side in arms.sides.values()] != ["T", "T"]:
        assert time.monotonic() < ends, "they do not stop"


def test_a_run_elsewhere_is_the_run_of_a_model_of_this_process(toys):
    arms = toys()
    arms.load()
    arms.open(PROMPTS[7].tokens)
    task, own = Task(0, (PROMPTS[0],)), Arms(toy(), on_trial(build="native"), PROMPTS[7].tokens)
    for arm in ("baseline", "treatment"):
        began = time.monotonic()
        run, trace = arms.measure(arm, task, 0, 5, 3, 12)
        took = time.monotonic() - began
        mine, alike = own.measure(arm, task, 0, 5, 3, 12)
        assert trace.text() == alike.text() and len(trace.emits()) == 12 and trace.rounds()
        assert (run.arm, run.run, run.seed, run.window_decodes) == (mine.arm, mine.run, mine.seed, mine.window_decodes)
        assert 0 <= run.idle_cpus * took < TICKS_S, "the other one waits"
    assert set(arms.facts()) == {"baseline", "again", "treatment"}
    assert arms.controls() == [] and not arms.guesses and arms.guessing == {}


def test_runs_of_two_processes_take_turns_and_say_what_whole_runs_say(toys):
    arms = toys()
    arms.load()
    arms.open(PROMPTS[7].tokens)
    names, task = ("treatment", "baseline", "again"), Task(0, (PROMPTS[0],))
    began = time.monotonic()
    found = arms.measure_turns(names, task, 3, 5, 9, 12, 4)
    took = time.monotonic() - began
    own = Arms(toy(), on_trial(build="native"), PROMPTS[7].tokens).measure_turns(names, task, 3, 5, 9, 12, 4)
    for (run, trace, pieces), (mine, alike, like) in zip(found, own, strict=True):
        assert trace.text() == alike.text() and len(trace.emits()) == 12
        keys = ("run", "order", "arm", "seed", "window_decodes", "n_prompt_evaluated")
        assert [getattr(run, key) for key in keys] == [getattr(mine, key) for key in keys]
        assert [(one.run, one.turn, one.round) for one in pieces] == [(one.run, one.turn, one.round) for one in like]
        assert sum(one.end_ns - one.start_ns for one in pieces) == run.decode_window_ns
        assert 0 <= run.idle_cpus * took < len(found) * 4 * TICKS_S, "the other one waits"
    # The toys' clocks are of their processes, so that only the runs of one side can be put in order.
    spans = sorted((one.start_ns, one.end_ns, one.run) for _, _, pieces in found[1:] for one in pieces)
    assert all(end <= start for (_, end, _), (start, _, _) in pairwise(spans)), "one at a time"
    assert [run for _, _, run in spans] == [10, 11] * 3


def test_sides_that_are_there_one_at_a_time_take_no_turns(toys):
    assert toys(together=True).takes_turns() and not toys(together=False).takes_turns()


def test_both_replays_of_a_comparison_can_be_read_side_by_side(toys):
    arms = toys()
    arms.load()
    arms.open(PROMPTS[7].tokens)
    tokens, shape = list(range(5, 11)), Shape(1, "sequences")
    own = Arms(toy(), on_trial(build="native"), PROMPTS[7].tokens)
    rows = [arms.replay(arm, PROMPTS[0].tokens, tokens, shape) for arm in ("baseline", "treatment", "reference")]
    wanted = list(own.replay("baseline", PROMPTS[0].tokens, tokens, shape))
    for found in zip(*rows, wanted, strict=True):
        assert all(np.array_equal(one, found[-1]) for one in found[:-1])
    half = arms.replay("treatment", PROMPTS[0].tokens, tokens, shape)
    next(half)
    half.close()
    assert arms.run("treatment", Task(0, (PROMPTS[0],)), 1, -1, n_predict=4).text(), "what is unread is gone"


def test_a_thread_that_spins_is_stopped_with_its_process(toys):
    arms = toys()
    arms.load()
    arms.open(PROMPTS[7].tokens)
    side = arms.sides["treatment"]
    side.call("spin")
    before = side.cpu_seconds()
    time.sleep(0.5)
    assert side.cpu_seconds() - before < 0.05


def test_where_memory_is_short_one_side_is_there_at_a_time_and_warm(toys):
    arms = toys(together=False)
    arms.load()
    arms.open(PROMPTS[7].tokens)
    task = Task(0, (PROMPTS[0],))
    for arm in ("baseline", "treatment"):
        arms.run(arm, task, 0, -1, n_predict=6)
    for arm in ("baseline", "treatment", "treatment", "baseline"):
        arms.measure(arm, task, 0, 5, 3, 12)
        assert [side.is_open for side in arms.sides.values()] == [arm == name for name in HELD]
    rows = [list(arms.replay(arm, PROMPTS[0].tokens, [5, 6, 7], Shape(1, "sequences"))) for arm in HELD]
    assert np.array_equal(rows[0], rows[1])
    assert set(arms.facts()) == {"baseline", "again", "treatment"}
    arms.close()
    assert set(arms.kept()) == set(HELD) and not any(side.is_open for side in arms.sides.values())


def test_what_a_side_raises_is_raised_here_and_a_dead_side_is_a_sentence(toys):
    arms = toys()
    arms.load()
    side = arms.sides["treatment"]
    with pytest.raises(Unsupported, match="not on this toy"):
        side.call("refuse")
    with pytest.raises(EngineError, match=r"the process of the treatment's build ended with SIGSEGV"):
        side.call("die")


def test_sides_end_with_the_process_that_has_them(toys):
    arms = toys()
    arms.load()
    pids = [side._process.pid for side in arms.sides.values() if side._process]
    arms.close()
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def test_a_side_loads_the_engine_before_anything_that_brings_numpy_along():
    code = "import sys, bench.run.side_process; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0
