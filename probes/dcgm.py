"""What NVIDIA's DCGM found: its health watches since its host engine started, Xids among it, which ``dcgmi`` asks of
that engine and changes nothing; and its diagnostic, where somebody kept what it printed. None is started here.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Iterator
from typing import Any

from .common.lazy import lazy_pattern
from .common.out import Out, clean
from .common.record import canonical_bus_id
from .common.tree import Tree

PROBE = {"title": "What DCGM found", "seconds": 10.0, "uses": "driver", "scopes": ["node"], "fills": ["dcgm"]}

_KEPT = "/run/envcheck/dcgm-diag.json"  # What ``dcgmi diag -j`` printed
_STATUSES = {"warning": "warn", "warn": "warn", "failure": "fail", "fail": "fail"}
_UNNAMED = "Internal error"  # What dcgmi calls all watches together, of which a grave Xid is an incident
_GPU = lazy_pattern(r"^\| (\d{1,4}) +\|(?:.*\n\| +\|){0,3} PCI Bus ID: (\S{1,24})", re.MULTILINE)
_BYTES, _MOST, _TEXT = 1 << 20, 200, 400  # Bytes that are read, incidents, and characters of one
_MALFORMED = (ValueError, LookupError, TypeError, AttributeError, RecursionError)


def collect(tree: Tree, out: Out) -> None:
    folders = tree.variables.get("PATH", "").split(":") if tree.at_real_root else []
    places = (f"{folder}/dcgmi" for folder in folders if folder.startswith("/"))
    program = next((place for place in places if tree.is_program(place)), None)
    kept = tree.read_text(_KEPT, _BYTES)
    if program is None and kept is None:
        out.absent("dcgmi is not on PATH")
        return
    found: dict[str, Any] = {"source": "dcgmi"}
    incidents, reasons = list[Any](), list[str]()
    if program is not None and not _is_safe(program):
        reasons.append(f"another user can write {program}")
    elif program is not None:
        printed = _answer(program, "health", "-c", "-j")
        try:
            incidents += _watched(json.loads(printed[printed.index("{") :])["body"])
        except _MALFORMED:
            reasons.append(printed.strip().partition("\n")[0] or f"{program} health printed nothing")
        if any(each["subject"].startswith("GPU ") for each in incidents):
            buses = dict(_GPU.findall(_answer(program, "discovery", "-l")))
            for each in incidents:
                each["pci_bus_id"] = canonical_bus_id(buses.get(each["subject"].partition("GPU ")[2], ""))
    if kept is not None:
        try:
            if not _is_safe(tree.place(_KEPT)):
                raise ValueError("another user can write it")
            (diagnostic, *_) = json.loads(kept[kept.index("{") :]).values()  # "DCGM GPU Diagnostic" up to release 3
            tests = [test for each in diagnostic["test_categories"] for test in each["tests"]]
            incidents += _diagnosed(tests)
            found["tests"] = [clean(str(test["name"])[:_TEXT]) for test in tests][:_MOST]
        except _MALFORMED as error:
            reasons.append(f"{_KEPT} is not what dcgmi diag -j prints: {error!r}")
    if reasons:
        found["why_not"] = clean("; ".join(reasons)[:_TEXT])
    out.fact({"dcgm": {**found, "incidents": incidents[:_MOST] if incidents or not reasons else None}})


def _is_safe(place: str) -> bool:
    about = os.stat(place)
    return about.st_uid in (0, os.geteuid()) and not about.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _answer(*words: str) -> str:
    """What dcgmi prints; how long it may take is the probe's own time."""
    ours, theirs = os.pipe()
    variables = {name: value for name, value in os.environ.items() if name != "CUDA_VISIBLE_DEVICES"}
    process = os.posix_spawn(words[0], words, variables, file_actions=[(os.POSIX_SPAWN_DUP2, theirs, 1)])
    os.close(theirs)
    with os.fdopen(ours, "rb") as pipe:
        printed = pipe.read(_BYTES)
    os.waitpid(process, 0)
    return printed.decode("utf-8", "replace")


def _watched(body: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for kind, listed in body.items():
        for number, entity in listed.get("children", {}).items():
            for watch, errors in entity["children"]["Errors"]["children"].items():
                about = "this machine" if kind == "None" else f"{kind} {number}", "" if watch == _UNNAMED else watch
                yield _incident("dcgmi health", *about, errors["value"], " ".join(errors["overflow"]))


def _diagnosed(tests: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for test in tests:
        for result in test["results"]:
            if str(result["status"]).lower() in _STATUSES:
                # Release 3 has the number of the GPU, and 2 those of all, and the text itself.
                number = result.get("entity_id", result.get("gpu_id", result.get("gpu_ids", "of any number")))
                device = f"{result.get('entity_group', 'GPU')} {number}"
                given = result.get("warnings") or []
                texts = [each.get("warning") or each.get("warnings") for each in given if isinstance(each, dict)]
                text = "; ".join(map(str, texts)) or str(given or f"the test {test['name']} did not pass")
                yield _incident(f"file {_KEPT}", device, test["name"], result["status"], text)


def _incident(source: str, subject: str, watch: str, status: str, text: str) -> dict[str, Any]:
    xid = re.search(r"\bXID (\d{1,4})\b", text)
    fields = {"source": source, "subject": subject, "watch": watch, "text": text}
    about = {name: clean(str(value)[:_TEXT]) for name, value in fields.items()}
    return {**about, "status": _STATUSES.get(status.lower(), "warn"), "xid": int(xid[1]) if xid else None}
