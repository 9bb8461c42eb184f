"""What must hold in every stored cell, whatever it measured: one list, run wherever a cell is judged.

Each invariant is a function `Case -> str | None` that recomputes something from columns that the cell has anyway, and
says in one sentence what contradicts it. A cell that fails one is void. None looks at which arm wins, and none knows a
method by name. A record whose columns were all rewritten so that they agree passes: docs/limits.md says so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench.judge.findings import OK, VOID, WARNING, Control, rerun
from bench.judge.invariants.inputs import recomputed_id
from bench.judge.tables import CONTRAST, CONTRASTS, COUNTERS, PROFILE, SERVED, TRIAL, named

if TYPE_CHECKING:
    from bench.judge.measure.case import Case

Check = Callable[["Case"], "str | None"]


@dataclass(frozen=True, slots=True)
class Invariant:
    """One thing that must hold."""

    name: str
    check: str
    """`module:function` below this package."""
    words: str
    """What holds, for the guide."""
    of: tuple[str, ...] = CONTRASTS
    """Kinds of cell that it is about."""
    severity: str = VOID

    def fault(self, case: Case) -> str | None:
        """What contradicts it, as a sentence; None where it holds."""
        check: Check = named(f"{__name__}.{self.check}")
        return check(case)


TIMED = (*CONTRASTS, SERVED)
"""Kinds of contrast that have runs; what is about rounds is asked of `CONTRASTS` alone."""
EVERY = (*TIMED, PROFILE, COUNTERS)
INVARIANTS = (
    Invariant("rows", "rows:rows_make_sense", "every row could have been written: no negative time, no more accepted "
              "than verified than drafted, rounds numbered from 0, parts of a round within its total", EVERY),
    Invariant("id", "inputs:id_is_the_hash", "the cell is called by the hash of its configuration, weights and build",
              EVERY),
    Invariant("machine", "inputs:machines_agree", "folder, configuration and provenance name one machine, layers on "
              "a GPU had a GPU, and llama.cpp's log names no other", EVERY),
    Invariant("name", "inputs:name_is_made", "a machine's name that ends as made ones do is made of its processor and "
              "GPU; this warns, since names may be given", EVERY, WARNING),
    Invariant("commit", "inputs:builds_agree", "every context was made by the build that the provenance names", EVERY),
    Invariant("facts", "inputs:facts_are_there", "what every cell measures beside its runs is there: engine, noise, "
              "bandwidth, grades"),
    Invariant("settings", "settings:settings_as_configured", "plain decoding's contexts have the settings that were "
              "configured and one sequence, and the treatment's holds its streams"),
    Invariant("once", "settings:facts_fit", "the bandwidth is the quickest that was read, by the threads that decode",
              EVERY),
    Invariant("configured", "model:model_is_configured", "name and weights of the model, and whether these are random, "
              "are those of cell.yaml", EVERY),
    Invariant("model", "model:model_fits_itself", "bytes, weights, layers and caches of the model fit each other, its "
              "name and its contexts: a step reads no more than the tensors have", EVERY),
    Invariant("loaded", "model:model_is_the_logs", "the model is the one that llama.cpp's log of the cell tells of",
              EVERY),
    Invariant("contexts", "model:contexts_are_the_logs", "every context caches in a format, and holds a number of "
              "sequences, that some context of llama.cpp's log does", EVERY),
    Invariant("rollback", "settings:rollback_was_seen", "the way in which rejected tokens were forgotten passed its "
              "probe"),
    Invariant("seconds", "settings:seconds_cover_the_runs", "the windows of all runs lie within the time that the cell "
              "took, and so does the time from the first to the last", TIMED),
    Invariant("prompts", "settings:prompts_as_configured", "a prompt has as many tokens in every run, and no more than "
              "its text has bytes"),
    Invariant("vocabulary", "settings:tokens_of_the_vocabulary", "no token is beyond the model's vocabulary", TIMED),
    Invariant("blocks", "plan:blocks_as_configured", "there are the blocks that were configured, each with its "
              "prompts and classes, its arms twice, and the controls", TIMED),
    Invariant("drawn", "plan:drawn_by_the_id", "blocks, their arms and their controls come in the order that the "
              "cell's id draws, which is another for another configuration", TIMED),
    Invariant("stopping", "plan:stopped_by_the_rule", "blocks that went on until they were enough ended where "
              "their rule says", TIMED),
    Invariant("ends", "beside:ends_as_configured", "answers may end by themselves where that was configured, and "
              "nowhere else"),
    Invariant("texts", "texts:untimed_as_configured", "texts that were decoded untimed are those that were configured, "
              "each to its full length"),
    Invariant("company", "texts:padded_is_there", "a method that guesses for one answer was also compared where no row "
              "is decoded alone, in each block with planted guesses", (CONTRAST,)),
    Invariant("seeds", "plan:seeds_as_configured", "every run has the seed of its block and turn, and the length that "
              "was asked for", TIMED),
    Invariant("windows", "times:windows_add_up", "a run's window is the time from its start to its end, without the "
              "prefills in between", TIMED),
    Invariant("rounds", "times:rounds_fill_the_window", "the rounds of a run last no longer than its window, and fill "
              "it"),
    Invariant("parts", "times:parts_fill_the_rounds", "drafting, decoding, sampling and rolling back fill the rounds "
              "of every run"),
    Invariant("copies", "alike:no_run_is_a_copy", "no two runs took the same time, to the nanosecond, in all of their "
              "rounds"),
    Invariant("pace", "alike:one_pace", "the carried prompt's decodes take as long as decodes of the same shape in the "
              "treatment's other runs"),
    Invariant("emits", "times:emits_in_their_rounds", "every token came out within its run's window, after the rounds "
              "before its own and before those behind it"),
    Invariant("sequence", "pieces:runs_follow_each_other", "runs do not overlap, and follow each other as they are "
              "numbered", TIMED),
    Invariant("turns", "pieces:turns_are_told", "turns that runs took at once add up to their windows, do not overlap, "
              "come in the order of their runs, and fill the time"),
    Invariant("decodes", "times:rounds_decode", "no round decodes in less than half of the baseline's quickest decode: "
              "every round reads the weights", (CONTRAST,)),
    Invariant("prefills", "times:prefills_alike", "the prompt takes both arms the same time before their windows",
              (CONTRAST,)),
    Invariant("declared", "declared:declared_as_known", "what its method declares of itself is what this version's "
              "file of that method does", TIMED),
    Invariant("called", "declared:called_as_known", "the method, its parameters and its label are ones that this "
              "version knows; this warns, since another version may know others", TIMED, WARNING),
    Invariant("said_again", "declared:says_again", "a method that declares to say tokens again does so"),
    Invariant("lengths", "declared:guesses_as_far", "rounds guess no further than the method's parameters let them, "
              "and controls so far"),
    Invariant("drafter", "declared:drafter_is_configured", "the drafter is what the method's parameters say, and "
              "rejected tokens were forgotten as they say"),
    Invariant("trial", "inputs:difference_is_told", "what is on trial is what cell.yaml and env.json say: one setting, "
              "or a build whose name its files make", (TRIAL,)),
    Invariant("clocks", "times:clocks_alike", "both arms ran at the same clock, and it was read in both or in "
              "neither", TIMED),
    Invariant("made", "around:contexts_as_configured", "contexts were made anew before the blocks that were "
              "configured"),
    Invariant("around", "around:machine_around_is_one", "what else ran is told in CPUs that there are, once for runs "
              "that were open at once, and the load fades no quicker than a mean of a minute", TIMED),
    Invariant("load", "around:load_is_the_runs", "whoever decodes is a part of the machine's load; this warns, since "
              "some sandboxes tell no load", TIMED, WARNING),
    Invariant("start", "rows:starts_come_first", "rounds of the start come first, guess nothing, and are as many in "
              "every run of an arm"),
    Invariant("emitted", "tokens:tokens_are_draws", "a round says one draw of its own an answer and the guesses that "
              "were accepted, and no more than its decode had rows"),
    Invariant("draws", "tokens:draws_are_there", "every guess that was verified is stored with the draw that it was "
              "compared with, and the draw is the token that came out"),
    Invariant("dropped", "tokens:guesses_are_dropped_behind_a_wrong_one", "guesses of one answer are left uncompared "
              "behind a wrong one only, and a decode has as many rows beside them as in the controls"),
    Invariant("answers", "tokens:answers_as_asked", "a run says as many answers as it has prompts, each once and to "
              "its full length", TIMED),
    Invariant("verified", "tokens:verified", "what nothing confirmed is no answer", TIMED),
    Invariant("compared", "tokens:compared", "every token that counts is compared with one of the baseline's", TIMED),
    Invariant("plain", "tokens:plain_decodes_plainly", "a baseline guesses nothing and decodes one row a token, and a "
              "method that declares no guesses makes none"),
    Invariant("shapes", "beside:noise_is_the_shapes", "the noise is that between a row alone and the treatment's "
              "decode, at all positions that were asked for"),
    Invariant("replays", "grades:replays_fit", "replays have the positions of their answers, disagree no more often, "
              "disagree where the arm's replay prefers its own token, and differ in what a temperature has"),
    Invariant("grades", "grades:grades_are_the_ledgers", "each answer's stored first difference is that of the "
              "ledgers, and each answer has one", TIMED),
    Invariant("f16", "sharp:sharp_is_told", "the grade on F16 weights is there where it was asked for, whole, and "
              "that of what was said on them"),
    Invariant("repeats", "sameness:repeats_repeat", "at temperature 0 an arm says and drafts the same both times"),
    Invariant("again_output", "sameness:again_says_the_same", "plain decoding says the same when it is run again"),
    Invariant("carry", "sameness:nothing_is_carried_over", "one prompt, decoded cold, again and after all others, "
              "gives the same tokens, guesses, rounds and decodes"),
    Invariant("outside", "account:work_is_in_the_window", "outside its window a run decodes its prompt, and nothing "
              "else"),
    Invariant("depth", "beginnings:restored_as_told", "what all prompts begin with is restored in every run of all "
              "arms or in none, and what evaluating it once took is told"),
    Invariant("decoded", "account:decodes_are_rounds", "every decode that a context counted is in a round, and every "
              "token is a row of its logits"),
    Invariant("account", "account:time_is_told", "a run is its prefills and its window from begin to finish"),
    Invariant("whole", "account:account_is_whole", "what contexts counted of the runs is told as a whole or not at "
              "all"),
    Invariant("counted", "account:account_is_kept", "records tell what their contexts counted; this warns where they "
              "do not", severity=WARNING),
    Invariant("temperature", "collisions:collisions_fit", "draws have a collision probability above temperature 0, and "
              "none at it"),
    Invariant("collisions", "collisions:collisions_are_the_draws", "one text has one collision probability behind it, "
              "and guesses are right as often as those of their draws let them"),
    Invariant("drafters", "beside:drafters_decode", "a drafter with a context decodes in it when it drafts, and one "
              "without decodes nowhere"),
    Invariant("held", "beside:memory_is_one_process", "what a process held grows from context to context, by the "
              "caches of each at least by half", (*CONTRASTS, PROFILE)),
    Invariant("joules", "beside:energy_fits", "energy, power and its limit fit each other, in both arms alike"),
    Invariant("servers", "served:difference_is_told", "what is on trial is what cell.yaml and env.json say: one option "
              "of a server, or another server", (SERVED,)),
    Invariant("requests", "served:requests_are_told", "each answer of a server is told of once, with the tokens and "
              "the window of its run", (SERVED,)),
    Invariant("own_times", "served:own_times_fit", "a server's own times lie within those that its client waited",
              (SERVED,)),
    Invariant("tallies", "served:counts_fit", "a server counts the prompts of its runs, hardly more right guesses than "
              "tokens, and each fresh start once", (SERVED,)),
    Invariant("said", "served:texts_are_the_hashes", "equal ids have equal texts, and texts that are said to be equal "
              "are", (SERVED,)),
    Invariant("same_again", "served:repeats_repeat", "a fresh server says the same text to one prompt and seed each "
              "time, asked alone", (SERVED,)),
    Invariant("by", "served:compared_as_told", "answers that were compared by ids have them, and no others", (SERVED,)),
    Invariant("passes", "profiles:passes_are_there", "every width was timed in every pass, behind as long a text as "
              "was asked for", (PROFILE,)),
    Invariant("bound", "profiles:below_the_bound", "no step reads the weights faster than the memory was seen to be "
              "read", (PROFILE,)),
    Invariant("agreement", "profiles:repeats_agree", "the passes of most widths agree with each other, and both "
              "layouts at width 1", (PROFILE,)),
    Invariant("steady", "profiles:widths_are_steady", "the passes of every width agree; this warns, since a disturbed "
              "machine does that", (PROFILE,), WARNING),
    Invariant("launches", "counted:launches_are_there", "every width was counted or left out with a reason, and the "
              "decodes of a width launch the same kernels", (COUNTERS,)),
    Invariant("timed", "counted:times_make_sense", "decodes without a profiler take time, and are queued before they "
              "end", (COUNTERS,)),
)  # fmt: skip
"""In the order in which they are told. `rows` is first: where it fails, the others are not asked."""


def invariants(case: Case) -> list[Control]:
    """A check for every invariant that fails, else one that says how many hold."""
    asked = [one for one in INVARIANTS if case.kind in one.of]
    failed: list[Control] = []
    for one in asked:
        if fault := one.fault(case):
            failed.append(Control(one.name, one.severity, f"{fault}; {rerun(case.cell)}"))
            if one is INVARIANTS[0]:
                break
    if failed:
        return failed
    told = f"{len(asked)} invariants hold"
    if "schema" in case.cell.config and recomputed_id(case) is None:
        told += "; the id of a cell of schema 1 whose method reads a file of its own cannot be recomputed"
    return [Control("invariants", OK, told, float(len(asked)))]
