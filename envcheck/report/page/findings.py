"""The order in which a report is shown: findings, folded where they say the same, with their consequences; probes that
died.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache, cached_property

import msgspec

from envcheck.model.checks import Check, Report, Status, Subject
from envcheck.model.snapshot import ProbeRun
from envcheck.redact.walk import Rewriting, rewritten
from envcheck.report.page.subject import gpu_numbers, listed

_BAD = ("fail", "warn")
_FOLLOWS = ("fail", "warn", "unknown")
_LONGEST_CHAIN = 16


class Finding(msgspec.Struct, frozen=True):
    """What one rule found, for one subject or for several of which it says the same; the first stands for all."""

    checks: tuple[Check, ...]

    @property
    def lead(self) -> Check:
        return self.checks[0]

    @property
    def rule(self) -> str:
        return self.lead.rule

    @property
    def status(self) -> Status:
        return self.lead.status

    @property
    def title(self) -> str:
        """The title, with the GPUs that it is about unless it names them itself."""
        title = self.lead.title
        lead = gpu_numbers(self.checks[:1])
        if lead and re.search(rf"\b{re.escape(lead)}\b", title):
            others = gpu_numbers(self.checks[1:])
            return f"{title} (also {others})" if others else title
        subjects = [check.subject for check in self.checks[1:] if check.subject.kind == "framework"]
        names = list(dict.fromkeys(subject.key.rpartition(":")[2] for subject in subjects))
        about = gpu_numbers(self.checks) or (f"also {listed(names)}" if names else "")
        return f"{title} ({about})" if about else title

    @property
    def variants(self) -> tuple[tuple[Check, ...], ...]:
        """The checks, together where they are letter by letter the same."""
        groups: dict[Check, list[Check]] = {}
        for check in self.checks:
            same = msgspec.structs.replace(check, id="", subject=Subject(kind=check.subject.kind))
            groups.setdefault(same, []).append(check)
        return tuple(map(tuple, groups.values()))


class Outline:
    """The checks of a report in the order in which they are shown. What a policy ignores is not shown."""

    def __init__(self, report: Report) -> None:
        self.report = report
        self._told = [check for check in report.checks if not check.ignored]
        self._causes = {check.id: check for check in reversed(self._told) if check.status in _BAD}

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """The failures and warnings that nothing else explains: the primary one first, fails before warnings."""
        roots = [check for check in self._told if check.status in _BAD and self.root(check) is check]
        first, rule = self.report.primary_check, self.report.primary
        roots.sort(key=lambda check: (check.id != first, check.rule != rule, _BAD.index(check.status)))
        return folded(roots)

    @property
    def cause(self) -> Finding | None:
        """The finding that the verdict is about."""
        return self.findings[0] if self.findings and self.report.verdict in ("fail", "warn") else None

    @cached_property
    def named(self) -> Finding | None:
        """What an error line of a text names, where it leaves no verdict and no probe died."""
        report = self.report
        if report.verdict != "unknown" or dead_probes(report):
            return None
        shown = (*self.findings, *self.notes)
        named = (each for each in shown if any(part.what == "error line" for part in each.lead.evidence))
        return next(named, None)

    @property
    def others(self) -> tuple[Finding, ...]:
        """The other findings, what could not be judged, and the notes."""
        return (*self.findings[self.cause is not None :], *self.unknowns, *self.notes)

    @cached_property
    def notes(self) -> tuple[Finding, ...]:
        """What is true and worth saying."""
        return folded(check for check in self._told if check.status == "note")

    @cached_property
    def unknowns(self) -> tuple[Finding, ...]:
        """What could not be judged, and is not a consequence of a finding."""
        return folded(check for check in self._told if check.status == "unknown" and self.root(check) is check)

    def consequences(self, finding: Finding) -> tuple[Finding, ...]:
        """What ``finding`` explains: fails, then warnings, then what could not be judged."""
        causes = {check.id for check in finding.checks}
        following = ((check, self.root(check)) for check in self._told if check.status in _FOLLOWS)
        found = [check for check, root in following if root is not check and root.id in causes]
        found.sort(key=lambda check: _FOLLOWS.index(check.status))
        return folded(found)

    def root(self, check: Check) -> Check:
        """The finding that explains ``check``, in one step or several; ``check`` itself when none does.

        A cause that the report does not have explains nothing, and neither does an endless chain (a circle): no
        finding is lost.
        """
        cause = check
        for _ in range(_LONGEST_CHAIN):
            if (further := self._causes.get(cause.explained_by or "")) is None:
                return cause
            cause = further
        return check


def folded(found: Iterable[Check]) -> tuple[Finding, ...]:
    """The checks in their order; those that say the same of several subjects together.

    No other place joins checks: what differs in more than the names of its subject is a finding of its own.
    """
    groups: dict[Check, list[Check]] = {}
    for check in found:
        groups.setdefault(_words(check), []).append(check)
    return tuple(Finding(tuple(group)) for group in groups.values())


def _words(check: Check) -> Check:
    """What it says, whatever its subject is called and wherever it lies; what holds is said without its evidence."""
    subject, number = check.subject, str(check.subject.index)
    uuid, bus = subject.uuid or "\0", subject.pci_bus_id or "\0"
    framework = subject.key.rpartition(":")[2] if subject.kind == "framework" else ""
    others = (subject.key, framework, subject.path, "" if subject.index is None else f"GPU {number}")
    names = _names(*(name for name in others if name and name not in (uuid, bus)))
    fixes = tuple(
        msgspec.structs.replace(fix, command=tuple("#" if word == number else word for word in fix.command))
        for fix in check.fixes
    )
    anyone = Subject(kind=subject.kind)
    bare = msgspec.structs.replace(check, id="", subject=anyone, figure=None, location=None, fixes=fixes)
    if check.status in ("pass", "skipped"):
        bare = msgspec.structs.replace(bare, evidence=(), missing=(), sources=())
    how = Rewriting(lambda text: names.sub("#", text.replace(uuid, "#").replace(bus, "#")), lambda _, value: value)
    return rewritten(bare, how)


@cache
def _names(*names: str) -> re.Pattern[str]:
    """The names, as words of a text; those of one GPU alone, of which a fleet has thousands, are no part of them."""
    return re.compile(rf"(?<![\w-])(?:{'|'.join(map(re.escape, names)) or '(?!)'})(?![\w-]|\.\w)", re.IGNORECASE)


DIED = ("crashed", "timed-out", "failed")


def dead_probes(report: Report) -> list[ProbeRun]:
    """The probes that were started and did not end well."""
    return [run for run in report.probes if run.status in DIED]


def probe_end(run: ProbeRun) -> str:
    """``timed out``, ``crashed``."""
    return run.status.replace("-", " ")


def probe_sentence(run: ProbeRun) -> str:
    """``Probe nvml timed out after 10 s: no answer from nvmlInit``."""
    end = f"timed out after {run.seconds:.0f} s" if run.status == "timed-out" else run.status
    detail = run.detail.strip()
    for start in (end, run.status, probe_end(run)):
        if detail.lower().startswith(start):
            detail = detail[len(start) :].lstrip(" :;,")
    return f"Probe {probe_name(run)} {end}" + (f": {detail}" if detail else "")


def probe_name(run: ProbeRun) -> str:
    """``nvml``; ``deep.extensions (xformers)`` for one that tried a framework."""
    return f"{run.name} ({run.framework})" if run.framework else run.name


def dead_probe_for(section: str, report: Report) -> ProbeRun | None:
    """The dead probe that was to fill ``section`` of the Snapshot."""
    dead = dead_probes(report)
    return next((run for run in dead if any(f"{fill}.".startswith(f"{section}.") for fill in run.fills)), None)
