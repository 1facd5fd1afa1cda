"""Facts in prose: "NVIDIA driver 465.19.01", "GPU: RTX 3090", "Ubuntu 20.04, Python 3.8".

A line counts only if it names the thing before its value. CUDA versions are not read, since they may be the toolkit's,
the driver's or the framework's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from envcheck.importers.kit.assemble import STATED
from envcheck.importers.kit.operating_system import from_title
from envcheck.importers.kit.paste import SOURCE, Paste
from envcheck.importers.kit.protocol import Rank, environment, joined, with_environment
from envcheck.snapshot import Driver, Framework, Gpu, Listing, Platform, Snapshot

NAME = "facts in prose"
RANK = Rank.PROSE

_BULLET = " \t-*•#>`|"
_LONGEST_LINE = 300

_DRIVER = re.compile(
    r"(?:.{0,40}\b)?(?:nvidia|cuda|gpu|graphics|host)[ -](?:win(?:dows)? ?[0-9]{0,2} )?drivers?(?: version)? ?[:=]? ?v?"
    r"([0-9]{3}\.[0-9]{2,3}(?:\.[0-9]{2,3})?)\b"
    r"|driver version ?[:=] ?([0-9]{3}\.[0-9]{2,3}(?:\.[0-9]{2,3})?)\b"
    r"|nvidia-drivers?-([0-9]{3}\.[0-9]{2,3}(?:\.[0-9]{2,3})?)\b",
    re.IGNORECASE,
)
_PYTHON = re.compile(
    r"(?:.{0,60}[,;] ?)?python(?: version)?\s{0,30}[:=]?\s{0,30}([23]\.[0-9]{1,2}(?:\.[0-9]{1,2})?)\b", re.IGNORECASE
)
_TORCH = re.compile(
    r"(?:py)?torch(?: version)?(?P<asked> \(GPU\?\))?\s?[:=]?\s?(?:torch)?v?"
    r"(?P<version>[0-9]{1,2}\.[0-9]{1,3}(?:\.[0-9]{1,3})?[0-9A-Za-z.+]{0,40})\b"
    r"(?(asked)(?: \((?P<answer>True|False)\))?)",
    re.IGNORECASE,
)
_TORCH_TAG = re.compile(r"(?:py)?torch \(cu([0-9]{2})([0-9])\)", re.IGNORECASE)
_TENSORFLOW = re.compile(
    r"(?:tensorflow|tf)(?:[-_ ]?(?:gpu|cpu|intel))?(?: version)?\s?[:=]{0,2}\s?v?"
    r"([12]\.[0-9]{1,2}(?:\.[0-9]{1,2})?(?:[-.]?(?:rc|dev)[0-9]{1,8})?)(?![.\w])",
    re.IGNORECASE,
)
_OS = re.compile(r"(?:(?:OS|operating system|platform|system) ?[:=] ?)?([A-Za-z].{2,100})", re.IGNORECASE)
_KERNEL = re.compile(r"Linux version ([0-9][\w.+-]{2,60})")
_WSL = re.compile(r"\bWSL ?2?\b")
_IN_WSL = re.compile(
    r"(?:(?:running |using )?(?:in|inside|under|on) )?WSL ?2?(?:$|[ ,(:/-]+(?:\(?(?:Ubuntu|Debian|2)\b|$))"
    r"|(?:ubuntu|debian|fedora|opensuse|kali|arch)\b[\w .-]{0,30}\b(?:in|on|under|inside|using|with|via) WSL ?2?\b",
    re.IGNORECASE,
)
_WINDOWS = re.compile(
    r"(?:(?:OS|operating system|platform|system)\b[^:=]{0,60}[:=] ?)?(?:Microsoft )?Windows (?:7|8|8\.1|1[01]|Server)\b"
    r"(?: (?:x64|x86_64|64[- ]?bit|pro|home|enterprise|education|[0-9]{2}H[12]|[0-9]{4})\b){0,4}(?:[ ,;(/|]|$)"
    r"|(?:tensorflow|tf|pytorch|torch|jax|python)\b.{0,40} on (?:native )?Windows(?: (?:7|8|1[01]))?\b",
    re.IGNORECASE,
)
_GPU = re.compile(
    r"(?:(?:nvidia|machine|the) )?GPUs?(?: type| model| name| [0-9]{1,2})?\s{0,30}[:=] ?(\S.{1,150})", re.IGNORECASE
)
_MODEL = re.compile(
    r"(?:(?:NVIDIA|GeForce|Tesla|Quadro|TITAN) ){0,3}"
    r"(?:RTX(?: PRO)? ?[0-9]{3,4}[A-Z]?|GTX ?[0-9]{3,4}[A-Z]?|GT ?[0-9]{3,4}[A-Z]?|TITAN \w{1,4}|"
    r"[AHBLKMPTV][0-9]{1,4}[A-Z]{0,2}|"
    r"GB[0-9]{2,3}|GH[0-9]{3}|MX[0-9]{3})\b"
    r"(?:[ -](?:Ti|SUPER|PCIe|PCIE|SXM[0-9]?|NVL|Laptop|GPU|Ada|Generation|D|XP|[0-9]{1,3} ?GB|Max-Q)){0,5}",
)


def recognise(paste: Paste) -> bool:
    return any(_read_line(line) for line in paste.statements)


def read(paste: Paste) -> Snapshot:
    return joined(part for line in paste.statements for part in _read_line(line))


def _read_line(line: str) -> list[Snapshot]:
    text = line[:_LONGEST_LINE].strip(_BULLET)
    if not text or "(you have" in text:
        return []
    return [part for reader in _READERS if (part := reader(text))]


def _driver(text: str) -> Snapshot | None:
    found = _DRIVER.match(text)
    if found is None:
        return None
    return Snapshot(driver=Driver(source=SOURCE, release=found[1] or found[2] or found[3]))


def _platform(text: str) -> Snapshot | None:
    """The system, from a line that begins with its name or labels it; "Windows 11 WSL2" is Linux under Windows."""
    if kernel := _KERNEL.match(text):
        wsl = True if "microsoft" in kernel[1].lower() else None
        return Snapshot(platform=Platform(source=SOURCE, os="linux", kernel_release=kernel[1], wsl=wsl))
    if _IN_WSL.match(text):
        return Snapshot(platform=Platform(source=SOURCE, os="linux", wsl=True))
    found = _OS.match(text)
    platform = from_title(found[1]) if found and _names_system(found[1]) else None
    if platform is None and _WINDOWS.match(text):
        platform = Platform(source=SOURCE, os="windows")
    if platform is None:
        return None
    if _WSL.search(text):
        platform = Platform(source=SOURCE, os="linux", wsl=True)
    return Snapshot(platform=platform)


def _names_system(text: str) -> bool:
    """Whether the text is a name with at most a version, not a sentence."""
    return bool(re.match(r"(?:[A-Z][\w!./-]*|linux|ubuntu|windows)(?: [A-Z0-9(][\w.()-]*){0,6}(?:[,;]|\s*$)", text))


def _python(text: str) -> Snapshot | None:
    found = _PYTHON.match(text)
    return with_environment(environment(python=found[1])) if found else None


def _torch(text: str) -> Snapshot | None:
    found, tagged = _TORCH.match(text), _TORCH_TAG.match(text)
    if found:
        # transformers prints "PyTorch version (GPU?): 2.4.1 (True)" after asking torch.
        available = {"True": True, "False": False}.get(found["answer"] or "")
        torch = Framework(source=SOURCE, name="torch", version=found["version"].rstrip("."), gpu_available=available)
    elif tagged:
        torch = Framework(source=SOURCE, name="torch", cuda=f"{tagged[1]}.{tagged[2]}")
    else:
        return None
    return with_environment(environment(frameworks=(torch,)))


def _tensorflow(text: str) -> Snapshot | None:
    found = _TENSORFLOW.match(text)
    framework = Framework(source=SOURCE, name="tensorflow", version=found[1]) if found else None
    return with_environment(environment(frameworks=(framework,))) if framework else None


def _gpus(text: str) -> Snapshot | None:
    found = _GPU.match(text)
    names = _models(found[1]) if found else ()
    items = tuple(Gpu(source=SOURCE, label=f"{STATED}{name}", name=name) for name in dict.fromkeys(names))
    return Snapshot(gpus=Listing(items=items)) if items else None


def _models(text: str) -> Iterable[str]:
    return [found[0].strip() for found in _MODEL.finditer(text)][:16]


_READERS: tuple[Callable[[str], Snapshot | None], ...] = (
    _driver,
    _platform,
    _python,
    _torch,
    _tensorflow,
    _gpus,
)
