"""Names of wheels: whether a machine can install one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from packaging.tags import Tag
from packaging.utils import InvalidWheelFilename, parse_wheel_filename

from envcheck.plans.kit.sheet import Sheet

_SYSTEMS = {"linux": ("manylinux", "linux", "musllinux"), "win32": ("win",), "darwin": ("macosx",)}
_MACHINES = {"x86_64": ("x86_64", "amd64"), "aarch64": ("aarch64", "arm64")}


def refusal(sheet: Sheet, files: Iterable[str]) -> str | None:
    """Why none of these files can be installed; None where one can, or where that is not known.

    ``files`` are names or addresses. A source archive can be built anywhere.
    """
    found: list[frozenset[Tag]] = []
    for file in files:
        name = file.partition("?")[0].partition("#")[0].rpartition("/")[2].replace("%2B", "+").replace("%2b", "+")
        if not name.endswith(".whl"):
            return None
        try:
            found.append(parse_wheel_filename(name)[3])
        except InvalidWheelFilename:
            return None
    if not found or any(_serves(tag, sheet.markers) for tags in found for tag in tags):
        return None
    known = (sheet.markers.get(key, "") for key in ("sys_platform", "platform_machine"))
    python = f", Python {sheet.markers['python_version']}" if "python_version" in sheet.markers else ""
    what = "the wheel that it names is" if len(found) == 1 else f"its {len(found)} wheels are"
    return f"{what} for another system or Python than {' '.join(filter(None, known))}{python}"


def _serves(tag: Tag, markers: Mapping[str, str]) -> bool:
    """Whether a wheel of this tag can be installed, as far as the machine is known."""
    system, machine = markers.get("sys_platform"), markers.get("platform_machine")
    if tag.platform != "any":
        if system in _SYSTEMS and not tag.platform.startswith(_SYSTEMS[system]):
            return False
        universal = tag.platform.endswith("universal2")
        if machine in _MACHINES and not universal and not tag.platform.endswith(_MACHINES[machine]):
            return False
    python = markers.get("python_version", "").replace(".", "")
    if not python or not tag.interpreter.startswith("cp"):
        return True
    own = tag.interpreter.removeprefix("cp")
    if tag.abi == "abi3" and re.fullmatch("[0-9]{1,9}", own):
        return int(own[1:] or 0) <= int(python[1:])
    return own == python
