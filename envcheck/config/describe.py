"""Write a configuration that asks for what a report found (``envcheck init``), as TOML."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, metadata
from typing import Any

from envcheck.config.find import find
from envcheck.config.read import ADDRESS
from envcheck.errors import UsageError
from envcheck.model.checks import Report
from envcheck.model.snapshot import Snapshot, frameworks_in

VARIABLE = "ENVCHECK_DOCS_URL"
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_SERIES = re.compile(r"\d+\.\d+")
_HEAD = "# What this project needs of a machine; envcheck check reads it, envcheck config shows what applies."


def configuration_for(report: Report) -> str:
    snapshot = report.snapshot or Snapshot()
    gpus = tuple(snapshot.gpus.items) if snapshot.gpus else ()
    judged = snapshot.judged_environment
    asked: list[str] = []
    if judged and judged.python and (series := _SERIES.match(judged.python)):
        asked.append(f"python=={series[0]}")
    names = {found.name for found in frameworks_in(judged)}
    asked += [
        f"{found.name}~={series[0]}.0"
        for found in (judged.distributions if judged else None) or ()
        if found.name in names and found.version and (series := _SERIES.match(found.version))
    ]
    release = snapshot.driver.release if snapshot.driver else None
    if release and (series := _SERIES.match(release)):
        asked.append(f"driver>={series[0].partition('.')[0]}")
    usable = [gpu for gpu in gpus if gpu.index is not None or gpu.cuda_ordinal is not None] or list(gpus)
    sizes = [gpu.memory.total for gpu in usable if gpu.memory and gpu.memory.total]
    wanted: dict[str, object] = {"count": f">={len(usable)}"}
    if models := list(dict.fromkeys(gpu.name for gpu in usable if gpu.name)):
        wanted["models"] = models
    if gpus and len(sizes) == len(usable):
        wanted["memory"] = f"{min(sizes) // (1 << 20)}MiB"
    target = ["# [target.production]", "# gpu = 'H100'", "# driver = '550.54.14'", "# os = 'linux'"]
    if release and (counts := Counter(gpu.name for gpu in gpus if gpu.name)):
        (model, count) = counts.most_common(1)[0]
        words: dict[str, object] = {"gpu": model, "gpus": count, "driver": release}
        if snapshot.platform and snapshot.platform.os:
            words["os"] = snapshot.platform.os
        target = entries({"target": {"this-machine": words}})
    lines = [
        _HEAD,
        *(entries({"require": asked}) if asked else ["# require = ['torch>=2.4']"]),
        "# fail-on = 'warn'  # default: fail",
        "",
        *(entries({"gpus": wanted}) if gpus else ["# No GPU was found here.", "# [gpus]", "# count = 1"]),
        "",
        "# Findings to set aside, each until a day:",
        "# [[ignore]]",
        "# problem = 'persistence-mode-off'",
        "# reason = 'the image is started for each job'",
        "# until = 2027-01-31",
        "",
        "# Machines to judge for where they are not at hand: envcheck check --target NAME",
        *target,
    ]
    return "\n".join(lines) + "\n"


def documentation_address(variables: Mapping[str, str], folder: str) -> str | None:
    """The address of the documentation's index, with a slash at its end; None where nobody says.

    The variable ``ENVCHECK_DOCS_URL`` outranks ``documentation`` of the configuration that is found from ``folder`` up,
    and that the address that this release names (``Documentation`` among the project's URLs). Raises UsageError for a
    variable that holds no address; a wrong configuration is for the verbs that judge by it.
    """
    given = variables.get(VARIABLE, "")
    if given and not re.fullmatch(ADDRESS, given):
        raise UsageError(f"{VARIABLE}: write an address, as in https://docs.example.org/envcheck/")
    found = given
    with suppress(UsageError):
        configuration = None if given else find(folder)
        found = found or (configuration.config.documentation if configuration else "") or ""
    if not found:
        with suppress(PackageNotFoundError):
            stated = (entry.partition(",") for entry in metadata("gpu-envcheck").get_all("Project-URL") or ())
            urls = {label.strip().lower(): url.strip() for label, _, url in stated}
            found = urls.get("documentation", "")
            found = found if re.fullmatch(ADDRESS, found) else ""
    return f"{found.rstrip('/')}/" if found else None


def entries(table: dict[str, Any], above: tuple[str, ...] = (), heading: str = "[{}]") -> list[str]:
    """The lines of ``table``: plain values first, then the tables in it under their headings."""
    plain = [f"{_key(key)} = {_value(value)}" for key, value in table.items() if not _is_table(value)]
    lines = [heading.format(".".join(map(_key, above))), *plain] if above and plain else plain
    for key, value in table.items():
        if isinstance(value, dict):
            lines += entries(value, (*above, key))
        elif _is_table(value):
            for each in value:
                lines += entries(each, (*above, key), "[[{}]]")
    return lines


def _is_table(value: Any) -> bool:
    return isinstance(value, dict) or (isinstance(value, list | tuple) and bool(value) and isinstance(value[0], dict))


def _key(text: str) -> str:
    return text if _BARE.fullmatch(text) else _value(text)


def _value(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, str):
        return json.dumps(value).replace("\x7f", "\\u007f")
    return json.dumps(value)
