"""Commands and compose files that start a container and ask for no GPU, and logs that ``docker compose`` prefixed.

A text that asks for a GPU anywhere does not tell how the container was started that it is about.
"""

from __future__ import annotations

import re

from envcheck.importers.kit.paste import SOURCE, Paste
from envcheck.importers.kit.protocol import Rank
from envcheck.snapshot import Platform, Snapshot

NAME = "container command"
RANK = Rank.MESSAGE

_RUN = re.compile(
    r"(?:^|[$#>\u276f%] ?|`|\bsudo )(?:(?:docker|podman|nerdctl) (?:container )?run"
    r"|(?:apptainer|singularity) (?:exec|run|shell)) .{1,600}",
    re.MULTILINE,
)
_ASKS = re.compile(
    r"--gpus|--runtime|runtime: ?nvidia|nvidia\.com/|--device|NVIDIA_VISIBLE_DEVICES|capabilities: ?|nvidia-docker|"
    r"default-runtime|\bcdi\b|--nv(?:ccli)?\b|driver: ?nvidia",
    re.IGNORECASE,
)
"""What gives a container the GPUs; ``--privileged`` gives their device nodes, and not the driver's libraries."""
_LEFT_OUT = re.compile(
    r"\b(?:without|no|missing|forg[oe]t(?:ting|ten)?|lack(?:s|ing)?|omit(?:s|ted|ting)?|not (?:use|pass|have|add))"
    r"(?: (?:to )?(?:the|any|use|pass|add|set|specify(?:ing)?|adding|using))? ?[`'\"(]{0,2}"
    r"(?:--(?:gpus?(?:[ =]all)?|nv(?:ccli)?|runtime(?:[ =]nvidia)?)\b)",
    re.IGNORECASE,
)
"""An option that is told to be missing."""
_BUILD = re.compile(
    r"\b(?:during|in|inside|within|while|when|at|by) (?:the |a |my |running |executing )?[`'\"]{0,2}docker[ -]build\b",
    re.IGNORECASE,
)
"""A program that runs while an image is built: nothing gives it a GPU, whatever other commands of the text do."""
_COMPOSE = re.compile(
    r"^services:[ \t]{0,8}$(?:\n.{0,200}){1,12}?\n[ \t]{1,12}(?P<image>image: ?\S{1,120})", re.MULTILINE
)
_OF_COMPOSE = re.compile(
    r"runtime: ?[\"']?nvidia|driver: ?[\"']?(?:nvidia|cdi)|capabilities: ?|^[ \t]{1,12}gpus: ?|nvidia\.com/|"
    r"NVIDIA_VISIBLE_DEVICES|privileged: ?true|/dev/nvidia|default-runtime|network_mode: ?[\"']?none",
    re.IGNORECASE | re.MULTILINE,
)
"""How a service of a compose file gets a GPU."""
_WORKS = re.compile(r"(?m)^.*\b(?:nvidia-docker|--gpus|--runtime)\b.*(?:\b(?:works?|worked|succeeds?|fine)\b|正常).*$")
"""A command that is told to work: another one is what the text is about."""
_OF_APPTAINER = re.compile(r"\b(?:apptainer|singularity) |--nv")
_ENGINES = ("docker", "podman", "nerdctl", "apptainer", "singularity")
_BESIDE = "$#>` "
_LONGEST_TEXT, _SHOWN = 1 << 20, 120


def read(paste: Paste) -> Snapshot:
    command, text = _without_gpu(paste), paste.text[:_LONGEST_TEXT]
    found = _COMPOSE.search(text) if "services:" in text else None
    # A compose file that gives no service a GPU counts, whatever other commands of the text do.
    service = found["image"] if found and not _OF_COMPOSE.search(text) else None
    if command is None and service is None and not paste.of_compose:
        return Snapshot()
    asked = command[0].strip(_BESIDE) if command else service
    shown = f"started without a GPU: {asked[:_SHOWN]}" if asked else f"log of {paste.of_compose}"
    return Snapshot(
        platform=Platform(
            source=SOURCE,
            os="linux",
            container="apptainer" if command and _OF_APPTAINER.search(command[0]) else "docker",
            container_evidence=shown,
            started_without_gpu=True if asked else None,
        )
    )


def _without_gpu(paste: Paste) -> re.Match[str] | None:
    """The command, where nothing in the text asks for a GPU."""
    text = paste.text[:_LONGEST_TEXT]
    if not any(map(text.lower().__contains__, _ENGINES)):
        return None
    built = _BUILD.search(text)
    if built:
        return built
    found = _RUN.search(text) or _LEFT_OUT.search(text)
    return found if found and not _ASKS.search(_LEFT_OUT.sub("", _WORKS.sub("", text))) else None
