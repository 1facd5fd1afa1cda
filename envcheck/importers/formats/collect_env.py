"""PyTorch's environment report, ``python -m torch.utils.collect_env``, and vLLM's, which derives from it.

One ``key: value`` a line, in an order and with keys that changed over the years; a value that the tool could not find
out reads "Could not collect", one that needs torch reads "N/A" when torch cannot be imported, and "No CUDA" stands
where nvidia-smi and nvcc both failed. None of these means that the thing is absent. Packages (``[pip3] torch==…``) and
vLLM's variables have importers of their own.
"""

from __future__ import annotations

import re

from envcheck.importers.formats.nvidia_smi.fields import label
from envcheck.importers.formats.nvidia_smi.lists import listed_gpus
from envcheck.importers.formats.operating_system import from_python_platform, from_title
from envcheck.importers.importer import Rank, environment, importer
from envcheck.importers.paste import SOURCE, Paste
from envcheck.model.merge import merge
from envcheck.model.snapshot import (
    Driver,
    Framework,
    Gpu,
    Library,
    Listing,
    Platform,
    Snapshot,
    Told,
    Toolkit,
    Trial,
    Variables,
)
from envcheck.text.lazy import lazy_pattern

_KEYS = (
    "pytorch version", "is debug build", "cuda used to build pytorch", "rocm used to build pytorch", "os",
    "gcc version", "clang version", "cmake version", "libc version", "python version", "python platform",
    "is cuda available", "cuda runtime version", "cuda_module_loading set to", "gpu models and configuration",
    "nvidia driver version", "cudnn version", "is xpu available", "intel gpu models onboard",
    "intel gpu models detected", "hip runtime version", "miopen runtime version", "is xnnpack available",
    "caching allocator config", "architecture", "cpu(s)", "model name", "numa node(s)", "hypervisor vendor",
    "versions of relevant libraries",
)  # fmt: skip
_TELLING = ("cuda used to build pytorch", "is cuda available", "gpu models and configuration", "nvidia driver version")
"""Keys that no other tool prints; the report has at least one of them."""
_NO_COLON_NEEDED = frozenset(_TELLING) | {"pytorch version", "cuda runtime version", "python platform", "cudnn version"}

_LINE = lazy_pattern(
    rf"\W{{0,4}}({'|'.join(re.escape(key) for key in _KEYS)})\?? {{0,40}}([:=]?)\s*(.*)", re.IGNORECASE
)
_UNKNOWN = frozenset({"", "n/a", "could not collect", "no cuda", "none", "unknown", "not found"})
_CUDNN_FILE = lazy_pattern(r"(\S.*?(?:lib)?cudnn[\w.-]*?\.(?:so|dll|dylib)(?:\.([0-9][0-9.]{0,20}))?)$", re.IGNORECASE)
_HYPERVISORS = {"kvm": "kvm", "vmware": "vmware", "microsoft": "hyperv", "xen": "xen"}
_MOST_LINES_OF_A_VALUE = 200
_LONGEST_PATH = 300


def recognise(paste: Paste) -> bool:
    return not _values(paste).keys().isdisjoint(_TELLING)


@importer("torch collect_env", Rank.OUTPUT, recognise=recognise)
def read(paste: Paste) -> Snapshot:
    values = _values(paste)
    of_smi = [values.get(key, ("",))[0].lower().rstrip(".") for key in _TELLING[2:]]
    silent_smi = all(value in ("could not collect", "no cuda") for value in of_smi)
    release = _version(values, "nvidia driver version")
    loading = _known(values, "cuda_module_loading set to")
    toolkit = _version(values, "cuda runtime version")  # the nvcc on PATH; torch has a runtime of its own
    toolkits = (Toolkit(source=SOURCE, path="unknown folder", version=toolkit, on_path=True),) if toolkit else ()
    torch = _torch(values)
    models = values.get("gpu models and configuration", ())
    gpus = listed_gpus(models)
    if gpus is None and models and not _hip(values):
        # Where torch answered instead of nvidia-smi, it names only the current device.
        plain = re.match(r"(?:NVIDIA |GeForce |Tesla |Quadro |TITAN )\S[^\n(]{0,80}$", models[0])
        gpus = Listing(items=(Gpu(source=SOURCE, label=label(0), name=plain[0].strip()),)) if plain else None
    # The system's copies of cuDNN; the tool never lists the framework's own.
    files: dict[str, Library] = {}
    for match in (_CUDNN_FILE.match(line) for line in values.get("cudnn version", ()) if len(line) <= _LONGEST_PATH):
        if match:
            name = re.split(r"[/\\]", match[1])[-1]
            family = re.match(r"(?:lib)?(cudnn(?:_[a-z]+)*)", name, re.IGNORECASE)  # or a sub-library: cudnn_ops
            files[match[1]] = Library(
                source=SOURCE, path=match[1], family=family[1].lower() if family else "cudnn", on_disk=match[2]
            )
    found = environment(python=_version(values, "python version"), frameworks=(torch,) if torch else ())
    return Snapshot(
        platform=_platform(values),
        driver=Driver(source=SOURCE, release=release) if release else None,
        gpus=gpus,
        toolkits=Listing(items=toolkits) if toolkits else None,
        libraries=Listing(items=tuple(files.values())) if files else None,
        variables=Variables(source=SOURCE, values={"CUDA_MODULE_LOADING": loading}) if loading else None,
        environments=Listing(items=(found,)),
        told=Told(source=SOURCE, silent_smi=True) if silent_smi else None,
    )


_Values = dict[str, tuple[str, ...]]  # The lines of each key's value, beginning with the key's own line


def _values(paste: Paste) -> _Values:
    values: dict[str, list[str]] = {}
    current: list[str] = []
    for line in paste.lines:
        found = _LINE.match(line)
        key = re.sub(r"\s+", " ", found[1].lower()) if found else ""
        if found and (found[2] or key in _NO_COLON_NEEDED):
            # A paste may contain two reports; the first one counts.
            current = [] if values.get(key) else values.setdefault(key, [])
            current.append(found[3].strip())
        elif line.strip() and len(current) < _MOST_LINES_OF_A_VALUE:
            current.append(line.strip())
    return {key: tuple(lines) for key, lines in values.items()}


def _known(values: _Values, key: str) -> str | None:
    """The first line of a value, or None if the tool could not determine it."""
    value = values.get(key, ("",))[0]
    return None if value.lower().rstrip(".") in _UNKNOWN else value


def _version(values: _Values, key: str) -> str | None:
    found = re.match(r"[0-9]{1,4}(?:\.[0-9]{1,6}){1,3}", _known(values, key) or "")
    return found[0] if found else None


# --- the machine --------------------------------------------------------------------------------------------------


def _platform(values: _Values) -> Platform | None:
    named = from_title(_known(values, "os") or "")
    python = from_python_platform(_known(values, "python platform") or "")
    libc = re.match(r"(glibc|musl)[- ]?([0-9.]{1,10})", _known(values, "libc version") or "")
    hypervisor = (_known(values, "hypervisor vendor") or "").lower()
    machine = _known(values, "architecture")
    own = Platform(
        source=SOURCE,
        libc=f"{libc[1]} {libc[2]}" if libc else None,
        machine=machine if machine and re.fullmatch(r"[A-Za-z0-9_]{3,12}", machine) else None,
        cpu_model=_known(values, "model name"),
        cpus=_count(_known(values, "cpu(s)")),
        numa_nodes=_count(_known(values, "numa node(s)")),
        virtualization=_HYPERVISORS.get(hypervisor, "other") if hypervisor else None,
    )
    parts = [Snapshot(platform=part) for part in (named, python, own) if part]
    platform = merge(parts).platform
    return None if platform in (None, Platform(source=SOURCE)) else platform


def _count(text: str | None) -> int | None:
    return int(text) if text and re.fullmatch(r"[0-9]{1,5}", text) else None


# --- Python and torch ---------------------------------------------------------------------------------------------


def _torch(values: _Values) -> Framework | None:
    text = _known(values, "pytorch version") or ""
    version = re.match(r"[0-9]{1,2}\.[0-9]{1,3}[0-9A-Za-z.+_-]{0,60}", text)
    cuda = _version(values, "cuda used to build pytorch")
    available = _yes_or_no(_known(values, "is cuda available"))
    answers = {values.get(key, ("n/a",))[0].lower() for key in ("pytorch version", "is cuda available")}
    if values.get("pytorch version") and answers == {"n/a"}:  # the tool could not import it
        return Framework(source=SOURCE, name="torch", cuda=cuda, trial=Trial(source=SOURCE, imported=False))
    if version is None and cuda is None and available is None:
        return None
    # The line of the build prints a constant of the imported torch, ``torch.version.cuda``: where torch was imported,
    # "None" and "Could not collect" both mean that the constant is None (it is "N/A" for a ROCm build and where torch
    # could not be imported). Builds for Intel's and Apple's GPUs have no CUDA either.
    cpu_only = None
    local = version[0].partition("+")[2] if version else ""
    built = values.get("cuda used to build pytorch", ("",))[0].lower()
    if local.startswith("cpu"):
        cpu_only = True
    elif cuda or _hip(values):
        cpu_only = False
    elif version and not local.startswith(("rocm", "xpu")) and built in ("none", "could not collect"):
        platform = _platform(values)
        other = _yes_or_no(_known(values, "is xpu available")) or (platform is not None and platform.os == "macos")
        cpu_only = None if other else True
    return Framework(
        source=SOURCE,
        name="torch",
        version=version[0] if version else None,
        cuda=cuda,
        hip=_hip(values),
        cpu_only=cpu_only,
        gpu_available=available,
    )


def _hip(values: _Values) -> str | None:
    return _version(values, "rocm used to build pytorch")


def _yes_or_no(text: str | None) -> bool | None:
    return {"yes": True, "true": True, "no": False, "false": False}.get((text or "").lower())
