"""Follow the fixes of the root cause to the letter, as somebody does who trusts them."""

import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.lab.laboratory.place import Place
from tests.lab.laboratory.store import SECONDS

ROUNDS = 4
_INSTALLS = re.compile(r"\b(pip|uv|conda|mamba)\b")
PATHS = ("LD_LIBRARY_PATH", "PYTHONPATH", "PATH")


@dataclass
class Journey:
    """Where the fixes led."""

    end: str = ""  # ``green``, ``circle``, ``no fix``, ``words``, ``elsewhere``, ``failed`` or ``too long``
    steps: list[str] = field(default_factory=list)
    detail: str = ""


def primary_of(report: dict[str, Any]) -> dict[str, Any] | None:
    return next((check for check in report["checks"] if check["id"] == report["primary_check"]), None)


def follow(place: Place, report: dict[str, Any], assumed: str, options: tuple[str, ...] = ()) -> Journey:
    """Fix the root cause, check again, and so on until nothing is wrong or nothing changes."""
    journey = Journey()
    seen: set[str] = set()
    for _ in range(ROUNDS):
        check = primary_of(report)
        if check is None:
            journey.end = "green" if report["verdict"] == "pass" else f"verdict {report['verdict']}"
            return journey
        said = f"{check['id']} {check['title']}"
        if said in seen:
            journey.end, journey.detail = "circle", check["title"]
            return journey
        seen.add(said)
        fixes = [fix for fix in check["fixes"] if fix["who"] == "user"]
        if not fixes:
            journey.end = "elsewhere" if check["fixes"] else "no fix"
            journey.detail = check["title"]
            return journey
        if not _done(place, list(_together(fixes)), journey):
            return journey
        report = place.judge(assumed, *options)
    journey.end, journey.detail = "too long", report["headline"]
    return journey


def _together(fixes: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The first fix, with the steps before or after it that belong to it."""
    for fix, following in zip(fixes, [*fixes[1:], {}], strict=True):
        yield fix
        if not following.get("continues"):
            return


def _done(place: Place, fixes: list[dict[str, Any]], journey: Journey) -> bool:
    for fix in fixes:
        command: list[str] = fix["command"]
        journey.steps.append(" ".join(command) or f"({fix['text']})")
        problem = _run(place, command) if command else _by_hand(place, fix["text"])
        if problem:
            journey.end, journey.detail = ("failed" if command else "words"), problem
            return False
    return True


def _run(place: Place, command: list[str]) -> str:
    """Why a command failed; empty where it did not. What a shell itself does is done to the variables."""
    if command[0] in ("unset", "export") or (command[0] == "env" and not _INSTALLS.search(" ".join(command))):
        _set(place, command)
        return ""
    command = _with_what_is_reachable(command)
    try:
        done = subprocess.run(
            command, cwd=place.folder, env=place.shell(), capture_output=True, text=True, check=False, timeout=SECONDS
        )
    except OSError as error:
        return str(error)
    said = (done.stderr.strip() or done.stdout.strip() or "nothing said").splitlines()
    return f"status {done.returncode}: {said[-1]}" if done.returncode else ""


def _set(place: Place, command: list[str]) -> None:
    """What ``unset A``, ``export A=B`` and ``env -u A B=C PROGRAM`` change."""
    unset = command[0] == "unset"
    for word in command[1:]:
        name, setting, value = word.partition("=")
        if setting:
            place.variables[name] = value
        elif unset:
            place.variables.pop(name, None)
        unset = word == "-u" or command[0] == "unset"


def _with_what_is_reachable(command: list[str]) -> list[str]:
    """PyTorch's own index is not asked: the builds that a laboratory needs of it are on PyPI, without a label."""
    if "--index-url" not in command:
        return command
    at = command.index("--index-url")
    if "pytorch.org" not in command[at + 1]:
        return command
    return [re.sub(r"(==[^+]+)\+\w+$", r"\1", word) for word in command[:at] + command[at + 2 :]]


def _by_hand(place: Place, text: str) -> str:
    """Do what words say of a variable: take a folder off it, or the variable away."""
    for name, value in list(place.variables.items()):
        if not re.search(rf"\b{name}\b", text) or not re.search(
            r"(?i)\b(off|unset|remove|take|without|correct)\b", text
        ):
            continue
        left = [part for part in value.split(os.pathsep) if part not in text] if name in PATHS else []
        if len(left) == len(value.split(os.pathsep)):
            left = []
        if left:
            place.variables[name] = os.pathsep.join(left)
        else:
            del place.variables[name]
        return ""
    return text
