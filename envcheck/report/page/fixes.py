"""The lines that say how to fix a finding."""

from __future__ import annotations

from envcheck.checks import Check, Fix, ways_in_order
from envcheck.report.page.layout import LABEL, UNLIMITED, Room, command_lines, labelled
from envcheck.report.page.pen import Line, Pen
from envcheck.text.wrap import width

WHO = {"user": "", "root": "as root: ", "cluster-admin": "by the cluster's administrator: "}
"""What stands before a step that not everybody may take."""

ACTIONS = {
    "reset": "reset the GPU",
    "reboot": "reboot the machine",
    "drain": "drain the node",
    "replace": "have the GPU replaced",
}


def fix_lines(check: Check, pen: Pen, room: Room) -> list[Line]:
    """The ways to fix ``check``, what the user can do first, each with all its steps; its action where it has none."""
    ordered = in_order(check)
    if not ordered:
        action = ACTIONS.get(check.action)
        return labelled("fix", action, pen, 1) if action else []
    # Of several ways the words tell one from another; a single way of the user's own speaks by its command.
    single = [way[0].who for way in ordered].count("user") == 1
    lines: list[Line] = []
    for way in ordered[: room.fixes]:
        # In the tightest room the steps of a way are its commands alone, in their order.
        bare = (single and way[0].who == "user") or (len(way) > 1 and room.fixes == 1)
        for step, fix in steps(way):
            lines += one_fix(fix, pen, room, bare=bare, step="" if room.fixes == 1 else step)
    return [*lines, *_rest(len(ordered[room.fixes :]), pen)]


def in_order(check: Check) -> list[tuple[Fix, ...]]:
    """The ways to fix it, what the user can do alone before what needs others."""
    return ways_in_order(check.fixes)


def steps(way: tuple[Fix, ...]) -> list[tuple[str, Fix]]:
    """Each step with the words that say which one it is; no words where there is one."""
    return [(f"step {number} of {len(way)}: " if len(way) > 1 else "", fix) for number, fix in enumerate(way, start=1)]


def one_fix(fix: Fix, pen: Pen, room: Room, *, bare: bool = False, step: str = "") -> list[Line]:
    """One fix: what it does and then its command; the command alone where ``bare`` and it fits."""
    limited = room.fixes < UNLIMITED
    command = pen.command(fix.command)
    # A command that starts with sudo says by itself who runs it.
    who = "" if fix.command[:1] == ("sudo",) else WHO[fix.who]
    words = step + who + fix.text
    alone = bool(command) and (not words or (bare and not step and _fits(command, pen)))
    lines = [] if alone else labelled("fix", f"{words.rstrip(' .:')}:" if command else words, pen, room.fix)
    if command:
        lines += command_lines(command, "fix" if alone else "", pen, limited=limited)
    if fix.risk:
        lines += labelled("", f"risk: {fix.risk}", pen, room.fix)
    return lines


def _fits(command: str, pen: Pen) -> bool:
    return width(command) <= pen.width - LABEL


def _rest(left_out: int, pen: Pen) -> list[Line]:
    if not left_out:
        return []
    noun = "fix" if left_out == 1 else "fixes"
    return labelled("", f"+{left_out} more {noun} (-v)", pen, 1)
