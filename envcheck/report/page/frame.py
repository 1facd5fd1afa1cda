"""What stands around the stack on the page.

Above it the verdict by its cause, what was seen, how to fix it, and what else was found; below it probes that died,
what was assumed, what was not tested, and the count of the checks.
"""

from __future__ import annotations

import re

import msgspec

from envcheck.model.checks import ASSUMPTION, PLAN, STATUSES, Evidence, Report, ignored, pressing
from envcheck.model.names import fact_name, fact_title
from envcheck.model.snapshot import frameworks_in
from envcheck.report.page.findings import DIED, Finding, Outline, dead_probes, probe_end, probe_sentence
from envcheck.report.page.pen import (
    EVERYTHING,
    LABEL,
    WORDS,
    Line,
    Pen,
    Room,
    StyledSpan,
    fix_lines,
    labelled,
    labelled_items,
    tagged,
    title_lines,
)
from envcheck.report.page.subject import gpu_numbers, judged_environment, listed, place_of, subject_line
from envcheck.rules.facts.frameworks import is_trial
from envcheck.rules.facts.machine import and_more
from envcheck.rules.facts.measurements import only_measured
from envcheck.text.clean import clean
from envcheck.text.wrap import width


def head_lines(outline: Outline, pen: Pen, room: Room, *, details: bool = True) -> list[Line]:
    """The verdict by its cause, and with ``details`` what was seen and how to fix it."""
    report, finding = outline.report, outline.cause
    aside = labelled("aside", ignored(report.checks), pen, 1)
    if report.verdict == "pass":
        tested = has_trial(report) or only_measured(report.checks) or not frameworks_in(judged_environment(report))
        headline = report.headline + ("" if tested else " (static checks only)")
        set_aside = ignored(report.checks)  # the headline ends with it: it must not be cut
        return title_lines("PASS", "pass", headline, "", pen, room.title + bool(set_aside))
    if report.verdict == "unknown" and (named := outline.named):
        # What a text names is worth more than what could not be looked at.
        lines = title_lines("UNKNOWN", "unknown", named.title, named.rule, pen, room.title)
        why = labelled("why", report.headline, pen, room.why)
        return [*lines, *why, *(finding_details(named, outline, pen, room) if details else []), *aside]
    if report.verdict == "unknown":
        return [*_unknown(outline, pen, room), *aside]
    if finding is None:
        return [*title_lines(WORDS[report.verdict], report.verdict, report.headline, "", pen, room.title), *aside]
    title = finding.title if len(finding.checks) > 1 else finding.lead.title
    lines = title_lines(WORDS[finding.status], finding.status, title, finding.rule, pen, room.title)
    return [*lines, *(finding_details(finding, outline, pen, room) if details else []), *aside]


def other_lines(outline: Outline, pen: Pen, room: Room) -> list[Line]:
    """The findings after the first, what could not be judged, and the notes, in at most ``room.others`` lines."""
    named = outline.named
    rows = [_short(finding, pen, room) for finding in outline.findings[outline.cause is not None :] if finding != named]
    if outline.report.verdict != "unknown" and outline.unknowns:
        # The name of the rule for plans says nothing of what is open.
        titles = [each.title for each in outline.unknowns if each.rule == PLAN]
        rules = list(dict.fromkeys(each.rule for each in outline.unknowns if each.rule != PLAN))
        missing = outline.unknowns[0].lead.missing
        probe = f" (probe {missing[0].probe})" if missing and missing[0].probe else ""
        texts = [f"{titles[0]}{and_more(titles)}"] if titles else []
        texts += [f"not judged: {listed(rules)}{probe}"] if rules else []
        rows.append(title_lines("?", "unknown", "; ".join(texts), "", pen, room.title))
    rows += [_short(finding, pen, room) for finding in outline.notes if finding != named]
    if sum(map(len, rows)) <= room.others:
        return [line for entry in rows for line in entry]
    kept: list[Line] = []
    left = len(rows)
    for entry in rows:
        if len(kept) + len(entry) >= room.others:
            break
        kept += entry
        left -= 1
    return [*kept, (StyledSpan(f"      +{left} more (-v)"),)]


def has_trial(report: Report) -> bool:
    """Whether a framework was really run."""
    return any(check.decided_by == "framework-ran" for check in report.checks)


def finding_details(finding: Finding, outline: Outline, pen: Pen, room: Room) -> list[Line]:
    """What was seen of a finding, why it is one, how to fix it, and what follows from it."""
    check = finding.lead
    adds = check.message.strip(" .").lower() not in ("", check.title.strip(" .").lower())
    others = [other for other in finding.checks[1:] if other.fixes != check.fixes]
    separate = f"separate fixes for {gpu_numbers(others) or 'the others'} (-v)"
    # The first page that the check cites is the most relevant one. An address is never cut: where that one is too long,
    # another page of the same product stands in, else the rule's. A host documents many products, each in a folder.
    pages = [clean(source.address) for source in check.sources if source.address.startswith("https://")]
    alike = [page for page in pages if page.split("/")[2:5] == pages[0].split("/")[2:5]]
    docs = next((page for page in alike if width(page) <= pen.width - LABEL), f"envcheck rule {check.rule}")
    follows = outline.consequences(finding)
    also = [tagged("also", each.title, each.rule, pen) for each in follows if each.status != "unknown"]
    if open_questions := [each.rule for found in follows if found.status == "unknown" for each in found.checks]:
        subject = f"{len(open_questions)} checks" if len(open_questions) > 1 else "1 check"
        rules = listed(list(dict.fromkeys(open_questions)))
        also += labelled("also", f"{subject} cannot be judged because of it: {rules}", pen, 1)
    if left := len(also[room.also - 1 :]) if len(also) > room.also else 0:
        also = [*also[:-left], *labelled("also", f"+{left} consequences (-v)", pen, 1)]
    return [
        *_evidence_lines(finding, outline.report, pen, room),
        *(labelled("why", check.message, pen, room.why) if adds else []),
        *fix_lines(check, pen, room),
        *(labelled("", separate, pen, 1) if others else []),
        *(labelled("docs", docs, pen, 1) if room.docs and check.layer != "request" else []),
        *also,
    ]


def _evidence_lines(finding: Finding, report: Report, pen: Pen, room: Room) -> list[Line]:
    subject = subject_line(finding.checks, report)
    # What the line about the subject has already, as a word of its own, is not repeated.
    facts = [
        evidence_text(found)
        for found in finding.lead.evidence
        if not found.value or not re.search(rf"(?<![\w.]){re.escape(found.value)}(?![\w.])", subject)
    ]
    if len(finding.checks) > 1 and facts and (number := gpu_numbers(finding.checks[:1])):
        facts[0] = f"on {number}, {facts[0]}"
    if room.seen == 1:
        return labelled_items("seen", [*filter(None, (subject,)), *facts], pen, 1)
    first = labelled("seen", subject, pen, room.seen - bool(facts))
    return [*first, *labelled_items("" if first else "seen", facts, pen, room.seen - len(first))]


def evidence_text(evidence: Evidence) -> str:
    """``driver release: 550.54.14``."""
    return ": ".join(filter(None, (evidence.what, evidence.value)))


def _unknown(outline: Outline, pen: Pen, room: Room) -> list[Line]:
    report = outline.report
    first, *others = pressing(report.grounds) or (None,)
    if first is not None and first.source not in {check.rule for check in report.checks if check.status == "unknown"}:
        title = f"no verdict: {first.detail}" if first.status == "not-judged" else f"{first.what}: {first.detail}"
        also = f"not read or not judged: {listed([ground.what for ground in others if ground])}"
        return [
            *title_lines("UNKNOWN", "unknown", title, "", pen, room.title),
            *(labelled("also", also, pen, room.ask) if others else []),
        ]
    unknown = [check for check in report.checks if check.status == "unknown" and not check.missing]
    unknown = [check for check in unknown if check.rule in (ASSUMPTION, PLAN)] or [
        check for check in unknown if check.fixes
    ]
    for stated in unknown[:1]:
        rule = "" if stated.rule in (ASSUMPTION, PLAN) else stated.rule
        heading = title_lines("UNKNOWN", "unknown", stated.title, rule, pen, room.title)
        seen = labelled("seen", place_of(stated.location), pen, 1) if stated.location else []
        return [*heading, *seen, *labelled("why", stated.message, pen, room.why), *fix_lines(stated, pen, room)]
    # The check whose missing fact would settle most: the first that the report asks for.
    pending = [check for check in report.checks if check.missing and check.status in ("unknown", "skipped")]
    pending.sort(key=lambda check: (check.missing[0].fact not in report.ask[:1], check.status != "unknown"))
    if not pending:
        return title_lines("UNKNOWN", "unknown", report.headline, "", pen, room.title)
    check = pending[0]
    missing = check.missing[0]
    run = next((run for run in report.probes if run.name == missing.probe), None)
    dead = run is not None and run.status in DIED
    reason = f"probe {missing.probe} {probe_end(run)}" if run and dead else f"probe {missing.probe} did not report it"
    # Where nobody looked, the rule's own title states the problem.
    title = check.message if check.status == "skipped" and check.message else check.title
    title = f"{fact_title(missing.fact)} unknown: {reason}" if missing.probe else title
    needed = [found.rule for found in report.checks if any(lack.fact == missing.fact for lack in found.missing)]
    further = dict.fromkeys(fact_name(fact) for fact in report.ask if fact_name(fact) != fact_name(missing.fact))
    return [
        *title_lines("UNKNOWN", "unknown", title, check.rule, pen, room.title),
        *(labelled("why", check.message, pen, room.why) if not dead and check.message != title else []),
        *(labelled("for", listed(list(dict.fromkeys(needed))), pen, 1) if set(needed) - {check.rule} else []),
        *(labelled("also", f"unknown: {listed(list(further))}", pen, room.ask) if further else []),
    ]


def _short(finding: Finding, pen: Pen, room: Room) -> list[Line]:
    status = finding.status
    return title_lines(WORDS[status], status, finding.title, finding.rule, pen, room.title)


_GAP = 3
_WAYS = {"deep": "framework import (--deep)", "bench": "performance (--bench)"}  # What the probes of a kind test
_ASSUMED_AWAY = "not assumed ("  # How the reason begins for which a probe was left out beside ``--assume``


def tail_lines(report: Report, pen: Pen, room: Room) -> list[Line]:
    """All of it, ending in ``Not tested: framework import (--deep).   1 fail, 14 pass``."""
    assumed = ", ".join(f"{name} {value}".rstrip() for name, value in report.assumed.items())
    untried, number = untested(report), count_text(report, skipped=room is EVERYTHING)
    counts: list[Line] = [(StyledSpan(untried, "dim"), StyledSpan(" " * _GAP), StyledSpan(number))]
    if not untried or width(untried) + _GAP + width(number) > pen.width:
        counts = [(StyledSpan(text, "dim"),) for text in pen.fill(untried, pen.width)]
        counts += [(StyledSpan(text),) for text in pen.fill(number, pen.width)]
    dead = dead_probes(report)
    shown = dead if len(dead) <= room.probes else dead[: room.probes - 1]
    above = [pen.clip(probe_sentence(run), pen.width) for run in shown]
    if len(dead) > len(shown):
        left = ", ".join(run.name for run in dead[len(shown) :])
        above.append(pen.clip(f"Failed probes (-v): {left}", pen.width))
    if assumed:
        above += pen.fill(f"Assumed: {assumed}", pen.width, room.row)
    if report.configuration:
        changed = sum(check.judged is not None for check in report.checks)
        aside = sum(check.ignored is not None for check in report.checks)
        parts = [f"{count} {what}" for count, what in ((aside, "ignored"), (changed, "with another severity")) if count]
        remark = f" (findings: {', '.join(parts)})" if parts else ""
        above.append(pen.clip(f"Configuration: {report.configuration}{remark}", pen.width))
    if report.overlays:
        from envcheck.knowledge.load import decides

        parts = []
        for place in report.overlays:
            rules = dict.fromkeys(check.rule for check in report.checks if decides(check.sources, place))
            parts.append(f"{place} (decided: {', '.join(rules) or 'nothing'})")
        above.append(pen.clip(f"Matrix overlay: {'; '.join(parts)}", pen.width))
    return [*((StyledSpan(text),) for text in above), *counts]


def untested(report: Report) -> str:
    """What was not looked at, and which tests would confirm a verdict of static checks, or why they were not run; empty
    for none. Probes that died have their own lines.
    """
    dead = {run.name for run in dead_probes(report)}
    unseen = [each.what for each in report.grounds if each.status == "not-read" and each.source not in dead]
    ways: list[str] = []
    # About a machine that was looked at, and could be tried out; not pasted, not assumed.
    live = not report.assumed and any(run.fills and run.status != "skipped" for run in report.probes)
    if live:
        environment = judged_environment(report)
        tried = has_trial(report) or any(run.framework and is_trial(run) for run in report.probes)
        if frameworks_in(environment) and not tried:
            ways.append(_WAYS["deep"])
        if environment and environment.shipped and environment.shipped.packages and environment.verified is None:
            ways.append("file contents (--verify)")
        if report.gpus and not any(found.value for found in report.measurements):
            ways.append(_WAYS["bench"])
    else:
        # What tries the machine or environment that is here does not try what was assumed in its place.
        seen: set[str] = set()
        for kind, way in _WAYS.items():
            why_not = {
                run.detail for run in report.probes if run.name.startswith(f"{kind}.") and run.status == "skipped"
            }
            if len(why_not) == 1 and (reason := why_not.pop()).startswith(_ASSUMED_AWAY):
                why = f"not run, {reason.removeprefix(_ASSUMED_AWAY).removesuffix(')')}"
                ways.append(f"{way}: {'likewise' if why in seen else why}")
                seen.add(why)
    untried = f"Not tested: {(', ' if live else '; ').join(ways)}." if ways else ""
    unknown = [f"{check.title}." for check in report.checks if check.rule == PLAN and check.status == "skipped"]
    return " ".join(filter(None, (f"Not looked at: {', '.join(unseen)}." if unseen else "", *unknown, untried)))


def count_text(report: Report, *, skipped: bool = True) -> str:
    """``1 fail, 14 pass, 3 skipped``."""
    numbers = {**msgspec.structs.asdict(report.summary), "pass": report.summary.passed}
    shown = [status for status in STATUSES if numbers[status] and (skipped or status != "skipped")]
    return ", ".join(f"{numbers[status]} {status}" for status in shown) or "no check ran"
