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
    r"(?:^|[$#>\u276f%] ?|`|\bsudo )(?:(?P<engine>docker|podman|nerdctl) (?:container )?run"
    r"|(?P<hpc>apptainer|singularity) (?:exec|run|shell)) .{1,600}",
    re.MULTILINE,
)
_ASKS = re.compile(
    r"--gpus|--runtime|runtime: ?nvidia|nvidia\.com/|--device|NVIDIA_VISIBLE_DEVICES|capabilities: ?|nvidia-docker|"
    r"default-runtime|\bcdi\b|(?<!without )(?<!no )--nv(?:ccli)?\b|--privileged|driver: ?nvidia",
    re.IGNORECASE,
)
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
_ENGINES = ("docker ", "podman ", "nerdctl ", "apptainer ", "singularity ")
_BESIDE = "$#>` "
_LONGEST_TEXT, _SHOWN = 1 << 20, 120


def read(paste: Paste) -> Snapshot:
    command, service = _without_gpu(paste), _service_without_gpu(paste)
    if command is None and service is None and not paste.of_compose:
        return Snapshot()
    asked = command[0].strip(_BESIDE) if command else service
    shown = f"started without a GPU: {asked[:_SHOWN]}" if asked else f"log of {paste.of_compose}"
    return Snapshot(
        platform=Platform(
            source=SOURCE,
            os="linux",
            container="apptainer" if command and command["hpc"] else "docker",
            container_evidence=shown,
            started_without_gpu=True if asked else None,
        )
    )


def _without_gpu(paste: Paste) -> re.Match[str] | None:
    """The command, where nothing in the text asks for a GPU."""
    text = paste.text[:_LONGEST_TEXT]
    if not any(engine in text for engine in _ENGINES):
        return None
    found = _RUN.search(text)
    return found if found and not _ASKS.search(_WORKS.sub("", text)) else None


def _service_without_gpu(paste: Paste) -> str | None:
    """The image of a compose file that gives no service a GPU, whatever other commands of the text do."""
    text = paste.text[:_LONGEST_TEXT]
    found = _COMPOSE.search(text) if "services:" in text else None
    return found["image"] if found and not _OF_COMPOSE.search(text) else None
