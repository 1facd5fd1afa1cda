"""The lines that say how to mend a finding."""

from __future__ import annotations

from collections.abc import Sequence

from envcheck.checks import Check, Fix
from envcheck.report.lines import LABEL, command_lines, labelled
from envcheck.report.pen import Line, Pen
from envcheck.report.room import UNLIMITED, Room
from envcheck.report.wrap import width

_WHO = {"user": "", "root": "as root: ", "cluster-admin": "by the cluster's administrator: "}

ACTIONS = {
    "reset": "reset the GPU",
    "reboot": "reboot the machine",
    "drain": "drain the node",
    "replace": "have the GPU replaced",
}


def fix_lines(check: Check, pen: Pen, room: Room) -> list[Line]:
    """The fixes of ``check``, what the user can do first; its action where it has no fix."""
    ordered = sorted(check.fixes, key=lambda fix: list(_WHO).index(fix.who))
    if not ordered:
        action = ACTIONS.get(check.action)
        return labelled("fix", action, pen, 1) if action else []
    # Of several ways the words tell one from another; a single way of the user's own speaks by its command.
    single = [fix.who for fix in ordered].count("user") == 1
    shown = ordered[: room.fixes]
    lines = [line for fix in shown for line in one_fix(fix, pen, room, bare=single and fix.who == "user")]
    return [*lines, *_rest(ordered[room.fixes :], pen)]


def one_fix(fix: Fix, pen: Pen, room: Room, *, bare: bool = False) -> list[Line]:
    """One fix: what it does and then its command; the command alone where ``bare`` and it fits."""
    limited = room.fixes < UNLIMITED
    command = pen.command(fix.command)
    # A command that starts with sudo says by itself who runs it.
    who = "" if fix.command[:1] == ("sudo",) else _WHO[fix.who]
    words = who + fix.text
    alone = bool(command) and (not words or (bare and _fits(command, pen)))
    lines = [] if alone else labelled("fix", f"{words.rstrip(' .:')}:" if command else words, pen, room.fix)
    if command:
        lines += command_lines(command, "fix" if alone else "", pen, limited=limited)
    if fix.risk:
        lines += labelled("", f"risk: {fix.risk}", pen, room.fix)
    return lines


def _fits(command: str, pen: Pen) -> bool:
    return width(command) <= pen.width - LABEL


def _rest(left_out: Sequence[Fix], pen: Pen) -> list[Line]:
    if not left_out:
        return []
    noun = "fix" if len(left_out) == 1 else "fixes"
    return labelled("", f"+{len(left_out)} more {noun} (-v)", pen, 1)
