"""Verdicts on a claim sheet: every entry gets at least one row, and no row is blank where it matters.

Knows nothing about how the findings came about. An entry is judged from rows of the findings, from arithmetic, or from
a sourced fact; a projection stays `not_run`. An entry with rows from several machines or builds gets a row for each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from bench.judge.claims import again, beside, brief
from bench.judge.claims.claim import Claim
from bench.judge.claims.columns import RATIO_KINDS
from bench.judge.claims.command import needed
from bench.judge.claims.conditions import Elsewhere
from bench.judge.claims.facts import Facts
from bench.judge.claims.mechanism import CONDITIONS, mechanism, missing
from bench.judge.claims.names import Names
from bench.judge.claims.outcome import Outcome, step_down
from bench.judge.claims.recomputed import judge_arithmetic, judge_fact
from bench.judge.claims.relevant import keys_of
from bench.judge.claims.rows import (
    Indexed,
    Row,
    Tables,
    by_machine,
    cells,
    column_of,
    label,
    matching,
    measured,
    scope_text,
    value_of,
)
from bench.judge.claims.rule import rule_text
from bench.judge.claims.scope import ANY
from bench.judge.claims.synthetic import no_evidence
from bench.judge.claims.table_tests import TABLE_TESTS
from bench.judge.claims.tests import ROW_TESTS
from bench.judge.claims.words import number
from bench.judge.tables.claims import Verdict
from bench.judge.tables.contrast import CANNOT_TELL

ANYWHERE = ("any", "any")
"""Machine and build of a verdict that rests on no record."""

NEEDED_FOR_ANY = {"temperature": 4, "streams": 3, "width": 3, "draft": 3, "window": 3}
"""A claim at any value of a key needs so many values of it; of temperatures 0 and something above 0 among them."""

CONSTRUCTED = (
    " True by construction: with the same prefix the same model draws the same token, so this is a tautology and no "
    "evidence of speed."
)


def judge_claims(claims: Sequence[Claim], findings: Tables, facts: Facts) -> list[Verdict]:
    """One row a claim, machine and engine build, in sheet order.

    `measured`, its interval, `counted` and `distinct` are None where there is none. Raises UserError for a fact or a
    unit that does not fit.
    """
    rows, indexed = [], Indexed(findings, keys_of(claims))
    for claim in claims:
        for (machine, build), outcome in _judge(claim, indexed, facts).items():
            rows.append(_row(claim, machine, build, outcome))
    return rows


def _judge(claim: Claim, findings: Tables, facts: Facts) -> dict[tuple[str, str], Outcome]:
    """Outcomes by machine and build, with what the rule has beside them."""
    words, found = beside.told(claim, findings, facts.names)
    outcomes = _decided(claim, findings, facts)
    if not words:
        return outcomes
    return {origin: replace(one, reason=one.reason + words, cells=tuple(dict.fromkeys((*one.cells, *found))),
                            brief=one.brief or brief.why(claim, one))
            for origin, one in outcomes.items()}  # fmt: skip


def _decided(claim: Claim, findings: Tables, facts: Facts) -> dict[tuple[str, str], Outcome]:
    if claim.rule.kind == "arithmetic":
        return {ANYWHERE: judge_arithmetic(claim, facts)}
    if claim.rule.kind == "fact":
        return {ANYWHERE: judge_fact(claim, facts)}
    if claim.rule.kind == "projection":
        return {ANYWHERE: Outcome("not_run", _projected(claim))}
    absent = missing(claim)
    if absent:
        what = "as a gain" if claim.metric == "speedup" else "anywhere"
        why = f"It cannot be assessed {what}: it was published without {', '.join(absent)}. Where they are known, name "
        why += "them in the claim's conditions."
        return {ANYWHERE: Outcome("not_comparable", why, brief=brief.first_sentence(why))}
    groups = by_machine(matching(claim, findings, facts.names))
    if not groups:
        return {ANYWHERE: Outcome("not_run", f"No record of it. It takes: {needed(claim)}.")}
    return {origin: judge_rows(claim, rows, facts.names) for origin, rows in groups.items()}


def _projected(claim: Claim) -> str:
    nearest = f" What comes nearest to it: `{claim.rule.command}`." if claim.rule.command else ""
    return f"A projection that nobody measured{_as_gain(claim)}. It would take: {claim.rule.needs}.{nearest}"


def _as_gain(claim: Claim) -> str:
    """What a projected rate is of the baseline that it names."""
    if claim.unit != "tok/s" or "baseline_tok_s" not in claim.conditions:
        return ""
    against = float(claim.conditions["baseline_tok_s"])
    times = " to ".join(f"{float(text) / against:.2f}" for text in claim.published)
    return f", {times} times the {number(against)} tok/s of its own baseline"


def judge_rows(claim: Claim, rows: Sequence[Row], names: Names) -> Outcome:
    """The verdict of one machine's rows on a claim. Void rows support nothing; with no other row it is inconclusive."""
    refused = [no_evidence(claim, claim.table, row) for row in rows]
    if rows and all(refused):
        return Outcome("not_comparable", " ".join(dict.fromkeys(refused)), cells=tuple(cells(rows)), brief=refused[0])
    rows = [row for row, why in zip(rows, refused, strict=True) if not why]
    sound = [row for row in rows if not row.get("void")]
    voided = [row for row in rows if row.get("void")]
    if not sound:
        why = "; ".join(sorted({str(row.get("void_reason") or "no reason was recorded") for row in voided}))
        return Outcome("inconclusive", f"Every cell that it could rest on is void: {why}.", cells=tuple(cells(voided)))
    standing = [again.standing(claim, row) for row in sound]
    unlike = [row for row, how in zip(sound, standing, strict=True) if how == again.OFF]
    if len(unlike) == len(sound):
        why = f"Two contexts of one kind differ by more than a third of what is claimed: A/A is {again.told(unlike[0])}"
        return Outcome("inconclusive", f"{why}. Measure more cells of it.", cells=tuple(cells(unlike)))
    sound = [row for row, how in zip(sound, standing, strict=True) if how != again.OFF]
    outcome = _covered(claim, sound, combine(claim, _outcomes(claim, sound, names)))
    reason = outcome.reason + (f" {len(voided)} void rows were left out." if voided else "")
    if unlike:
        reason += f" {len(unlike)} rows were left out whose A/A is off by more than a third of what is claimed."
    if unsure := standing.count(CANNOT_TELL):
        reason += f" A/A of {unsure} of {len(sound)} rows is too wide for a difference of this size."
    if synthetic := sum(map(bool, refused)):
        reason += f" {synthetic} rows of synthetic models were left out: random weights are no evidence of this."
    if claim.rule.by_construction and outcome.verdict == "reproduced":
        reason += CONSTRUCTED
    return replace(outcome, reason=reason, cells=tuple(cells(sound)))


def _outcomes(claim: Claim, rows: Sequence[Row], names: Names) -> list[Outcome]:
    """What each row says. One of other conditions says nothing about a figure that machine, model or text decide."""
    differing, decided = Elsewhere(claim, names), mechanism(claim)
    told = [(row, differing.told(row)) for row in rows]
    near = [(row, other) for row, other in told if decided.anywhere or not other]
    judged = _judged(claim, near) if near else []
    far = [] if decided.anywhere else [(row, other) for row, other in told if other]
    if not far or any(one.verdict != "not_comparable" for one in judged):
        return judged
    # None of them has an interval, so that of very many the first one is told, and how many there are.
    return [_of_another(claim, *far[0])] * len(far) + judged


def _judged(claim: Claim, near: Sequence[tuple[Row, str]]) -> list[Outcome]:
    """What rows that can speak say, each with the conditions in which it differs."""
    rows = [row for row, _ in near]
    if claim.rule.test in TABLE_TESTS:
        return TABLE_TESTS[claim.rule.test](replace(claim, family=len(near)), rows)
    test, differing = ROW_TESTS[claim.rule.test], {id(row): other for row, other in near}
    return step_down(rows, lambda row, left: test(replace(claim, family=left), row, differing[id(row)]))


def _of_another(claim: Claim, row: Row, other: str) -> Outcome:
    """A row of another machine or model. A rate of it is told in the reason alone, never beside the claim's."""
    found = measured(row, claim)
    shown = f"; here it is {number(found)} {claim.unit} for {label(row)}" if found is not None else ""
    ratio = column_of(claim).kind in RATIO_KINDS and not column_of(claim).counted
    reason = f"A figure of another set-up, judged {CONDITIONS.why}{shown}.{other}"
    return Outcome("not_comparable", reason, found if ratio else None, cells=tuple(cells([row])))


def combine(claim: Claim, outcomes: Sequence[Outcome]) -> Outcome:
    """One verdict from several rows: agreement, else a counter-example where the claim is about a range, else none."""
    comparable = [outcome for outcome in outcomes if outcome.verdict != "not_comparable"] or list(outcomes)
    found = {outcome.verdict for outcome in comparable}
    universal = claim.rule.universal or any(
        value == ANY or isinstance(value, Mapping) for value in claim.scope.values()
    )
    if len(found) == 1:
        verdict = found.pop()
    elif "refuted" in found and (universal or "reproduced" not in found):
        verdict = "refuted"
    else:
        verdict = "inconclusive"
    agreeing = [outcome for outcome in comparable if outcome.verdict == verdict] or comparable
    chosen = min(agreeing, key=_width)
    reason = chosen.reason
    if len(comparable) > 1:
        counts = Counter(outcome.verdict for outcome in comparable)
        listed = ", ".join(f"{count} {word}" for word, count in sorted(counts.items()))
        reason = f"Of {len(comparable)} rows: {listed}. " + reason
        if verdict not in {outcome.verdict for outcome in comparable}:
            other = min((one for one in comparable if one.verdict != chosen.verdict), key=_width)
            reason += f" Against it: {other.reason}"
    return replace(chosen, verdict=verdict, reason=reason)


def _width(outcome: Outcome) -> float:
    if outcome.ci_low is None or outcome.ci_high is None:
        return float("inf")
    return outcome.ci_high - outcome.ci_low


def _covered(claim: Claim, rows: Sequence[Row], outcome: Outcome) -> Outcome:
    """A claim at any value of a key is not supported by a few, though one is enough to refute it."""
    if outcome.verdict != "reproduced":
        return outcome
    for key, value in claim.scope.items():
        if value != ANY or key not in NEEDED_FOR_ANY:
            continue
        found = sorted({float(known) for row in rows if (known := value_of(row, key)) is not None})
        zero = key != "temperature" or (bool(found) and found[0] == 0 and found[-1] > 0)
        if len(found) < NEEDED_FOR_ANY[key] or not zero:
            listed = ", ".join(f"{one:g}" for one in found)
            among = ", 0 among them" if key == "temperature" else ""
            why = f"Unsupported at any {key}: measured at {listed} only; {NEEDED_FOR_ANY[key]} are needed{among}."
            return replace(outcome, verdict="inconclusive", reason=f"{why} {outcome.reason}", brief=why)
    return outcome


def _row(claim: Claim, machine: str, build: str, outcome: Outcome) -> Verdict:
    reason = outcome.reason + (f" {claim.note}" if claim.note else "")
    if claim.verdict and claim.verdict != outcome.verdict:
        reason += f" The sheet expected '{claim.verdict}'."
    return Verdict(
        machine=machine, build=build, cells=list(outcome.cells), claim_id=claim.id, verdict=outcome.verdict,
        scope=scope_text(claim), published=_published(claim), measured=outcome.measured, ci_low=outcome.ci_low,
        ci_high=outcome.ci_high, unit=claim.unit, evidence=claim.evidence, reason=" ".join(reason.split()),
        says=claim.says, metric=claim.metric, judged_by=claim.rule.kind, author_status=_status(claim.author_status),
        place=claim.place, source=_source(claim.source), counted=outcome.counted, distinct=outcome.distinct,
        headline=claim.headline, why=brief.why(claim, outcome), would_change=brief.would_change(claim, outcome),
        **brief.ratios(claim, outcome),
        published_under=", ".join(f"{key}={value}" for key, value in claim.conditions.items()),
        rule=rule_text(claim.rule),
    )  # fmt: skip


def _published(claim: Claim) -> float | str | bool:
    return claim.value if len(claim.published) == 1 else claim.printed


def _status(status: Mapping[str, str]) -> str:
    dated = f"{status['state']} {status['date']}" if "date" in status else status["state"]
    return f"{dated}: {status['why']}" if "why" in status else dated


def _source(source: Mapping[str, str]) -> str:
    return ", ".join(source[key] for key in ("document", "date", "commit", "url") if key in source)
