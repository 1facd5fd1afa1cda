"""Facts about a Jetson: its L4T and JetPack releases, and the release that a container image was built for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from envcheck.importers.kit.paste import SOURCE, Paste
from envcheck.importers.kit.protocol import Rank, joined
from envcheck.snapshot import Platform, Snapshot

NAME = "Jetson"
RANK = Rank.MESSAGE

_NUMBER = r"([0-9]{1,2}\.[0-9]{1,2}(?:\.[0-9]{1,2})?)"

_RELEASE_FILE = re.compile(r"# R([0-9]{1,2}) \(release\), REVISION: ([0-9.]{1,8})")
_IMAGE = re.compile(
    rf"(?:l4t|jetson|dustynv)[\w./-]{{0,60}}:[\w.-]{{0,40}}?\br{_NUMBER}"
    r"|\b[\w./-]{2,60}:[\w.]{1,20}-r(3[2-9]\.[0-9]\.[0-9])\b",
    re.IGNORECASE,
)
_L4T = re.compile(rf"\bL4T(?:[ _](?:version|release))?[ :=]{{1,3}}R?{_NUMBER}", re.IGNORECASE)
_JETPACK = re.compile(
    rf"\b(?:(?:Jet ?Pack(?:[ _](?:SDK|version|release))?[ :=|]{{0,4}}|nvidia-jetpack[ :=|]{{1,40}}|JP ?)v?{_NUMBER}"
    r"|Jet ?Pack(?:[ _](?:SDK|version|release))?[ :=|]{0,4}v?([4-9])(?![\w.]))",
    re.IGNORECASE,
)
_CHIP = re.compile(
    r"\b(?:NVIDIA )?(?:Jetson[- ](?:AGX|Orin|Xavier|Nano|NX|TX[12]|Thor)|Tegra (?:X[12]|Xavier|Orin))\b"
    r"|\b(?:on|my|our|this|an?) (?:NVIDIA )?Jetson\b(?![- ](?:container|ai|zoo|image))"
    r"|\b[0-9]\.[0-9.]{1,8}-tegra\b|/usr/lib/aarch64-linux-gnu/tegra\b",
    re.IGNORECASE,
)
_ARM_PATH = re.compile(
    r"/aarch64-linux-gnu/|/linux-aarch64$|__archspec=1=(?:aarch64|arm)|_aarch64\.whl\b"
    r"|^\W{0,4}aarch64\W{0,2}$|\baarch64 GNU/Linux"
)
_ARM = re.compile(
    r"\b(?:architecture|arch|machine|platform|uname -m|cpu|os)\b[^:=|]{0,20}[:=|]{1,2} ?(?:[\w.-]{1,20} ){0,3}\(?"
    r"(?:linux[-/ _])?(?:aarch64|arm64)\b",
    re.IGNORECASE,
)
_PACKAGE = re.compile(rf"Package: nvidia-jetpack\nVersion: {_NUMBER}")
"""What ``apt show nvidia-jetpack`` begins with."""
_ANY = re.compile(r"l4t|jet|tegra|dustynv|aarch64|arm64|# R|-r3[2-9]\.", re.IGNORECASE)
"""Every line that is read here contains one of these."""
_LONGEST_LINE = 300


def read(paste: Paste) -> Snapshot:
    in_lines = (found for line in paste.statements for found in _read_line(line))
    return joined(Snapshot(platform=found) for found in (*in_lines, *_packages(paste)))


def _packages(paste: Paste) -> Iterator[Platform]:
    for first, second in pairwise(paste.lines):
        if "nvidia-jetpack" in first and (
            found := _PACKAGE.match(f"{first.strip()}\n{second.strip()}"[:_LONGEST_LINE])
        ):
            yield Platform(source=SOURCE, tegra=True, jetpack=found[1])


def _read_line(line: str) -> list[Platform]:
    text = line[:_LONGEST_LINE]
    return list(_statements(text)) if _ANY.search(text) else []


def _statements(text: str) -> Iterator[Platform]:
    """The facts in a line; the tag of an image says nothing about the system."""
    if found := _RELEASE_FILE.search(text):
        yield Platform(source=SOURCE, tegra=True, tegra_release=f"{found[1]}.{found[2].strip('.')}")
    image = _IMAGE.search(text)
    if image:
        yield Platform(source=SOURCE, tegra=True, image_tegra_release=image[1] or image[2])
    rest = text.replace(image[0], " ") if image else text
    if found := _L4T.search(rest):
        yield Platform(source=SOURCE, tegra=True, tegra_release=found[1])
    if found := _JETPACK.search(rest):
        yield Platform(source=SOURCE, tegra=True, jetpack=found[1] or found[2])
    if _CHIP.search(rest):
        yield Platform(source=SOURCE, tegra=True)
    if _ARM_PATH.search(rest) or (_ARM.search(rest) and "mac" not in rest.lower()):
        yield Platform(source=SOURCE, machine="aarch64")
