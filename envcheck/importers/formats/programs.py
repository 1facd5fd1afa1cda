"""What programs print of CUDA and of themselves where they run or refuse to: ``cupy.show_config()``, ``numba -s``,
``deviceQuery``, Paddle, llama.cpp, Detectron2's and MMCV's reports, PyTorch's warnings and errors.

The CUDA of the driver is the newest that it supports. A line that asks for more names two values; the one that was
found stands behind a word such as "found", "got" or "detected".
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from envcheck.importers.assemble import NAMED
from envcheck.importers.importer import Rank, environment, importer, joined, stated_cudnn, with_environment
from envcheck.importers.paste import SOURCE, Paste
from envcheck.model.snapshot import Driver, Framework, Gpu, Listing, Snapshot
from envcheck.model.versions import CudaVersion

_CUDA = r"(?P<{}>[0-9]{{4,5}}|[0-9]{{1,2}}\.[0-9]{{1,2}})(?![\w.])"
_DRIVER = re.compile(rf"CUDA Driver Version(?: / Runtime Version)?\s{{0,40}}:?\s{{1,20}}{_CUDA.format('driver')}")
_BUILD = re.compile(rf"CUDA Build Version\s{{1,40}}: {_CUDA.format('build')}")
_RUNTIME = re.compile(rf"CUDA Runtime Version\s{{1,40}}: {_CUDA.format('runtime')}")
_NVRTC = re.compile(r"NVRTC Version\s{1,40}: \((?P<major>[0-9]{1,2}), (?P<minor>[0-9]{1,2})\)")
_CUPY = re.compile(r"CuPy Version\s{1,40}: (?P<version>[0-9]{1,2}\.[0-9]{1,2}[\w.]{0,20})")
_DEVICE = re.compile(r"Device [0-9]{1,3} Name\s{1,40}: (?P<name>\S.{2,60})$")
_ARCHS = re.compile(r"\bARCHS = (?P<archs>[0-9]{3,4}(?:,[0-9]{3,4}){0,40})")
_PADDLE = re.compile(
    r"device: [0-9]{1,3}, (?:GPU Compute|CUDA) Capability: [0-9]{1,2}\.?[0-9], "
    r"Driver API Version: (?P<driver>[0-9]{1,2}\.[0-9]{1,2}), Runtime API Version: (?P<runtime>[0-9]{1,2}\.[0-9]{1,2})"
)
_PADDLES_CUDNN = re.compile(r"\bdevice: [0-9]{1,3}, cuDNN Version: (?P<cudnn>[0-9]{1,2}\.[0-9]{1,2})")
_OF_NUMBA = "__CUDA Information__"
_LONGEST_LINE = 600


@importer("CUDA programs", Rank.MESSAGE)
def read_programs(paste: Paste) -> Snapshot:
    return joined(_facts(paste))


def _facts(paste: Paste) -> Iterator[Snapshot]:
    cupy = next((found["version"] for line in paste.statements if (found := _CUPY.match(line.strip()))), None)
    of_numba = _OF_NUMBA in paste.text
    for line in paste.statements:
        text = line.strip()[:_LONGEST_LINE]
        if "CUDA" in text and (found := _DRIVER.match(text)):
            yield Snapshot(driver=Driver(source=SOURCE, cuda=_version(found["driver"])))
        elif cupy and (found := _BUILD.match(text)):
            yield _framework("cupy", version=cupy, cuda=_version(found["build"]))
        elif cupy and (found := _NVRTC.match(text)):
            yield _framework("cupy", compiles_with={"nvrtc": f"{found['major']}.{found['minor']}"})
        elif of_numba and (found := _RUNTIME.match(text)):
            yield _framework("numba", cuda=_version(found["runtime"]))
        elif cupy and (found := _DEVICE.match(text)):
            gpu = Gpu(source=SOURCE, label=f"{NAMED}{found['name']}", name=found["name"])
            yield Snapshot(gpus=Listing(items=(gpu,)))
        elif "API Version" in text and (found := _PADDLE.search(text)):
            yield Snapshot(driver=Driver(source=SOURCE, cuda=found["driver"]))
            yield _framework("paddlepaddle-gpu", cuda=found["runtime"])
        elif "cuDNN Version" in text and (found := _PADDLES_CUDNN.search(text)):
            yield Snapshot(libraries=Listing(items=(stated_cudnn(found["cudnn"]),)))
        elif "ARCHS" in text and (found := _ARCHS.search(text)):
            code = tuple(f"compute_{int(arch) // 10}" for arch in found["archs"].split(","))
            yield _framework("llama.cpp", gpu_code=code)


def _framework(name: str, **facts: object) -> Snapshot:
    return with_environment(environment(frameworks=(Framework(source=SOURCE, name=name, **facts),)))  # type: ignore[arg-type]


def _version(text: str) -> str:
    """``12.2`` of ``12020``, as CUDA's functions give it, or of ``12.2``."""
    return text if "." in text else f"{int(text) // 1000}.{int(text) % 1000 // 10}"


_SIGN = r"[\"'*`]{0,3}\s{0,40}[:=|]?\s{0,40}[\"'`]{0,2}"
_OF_DETECTRON2 = re.compile(
    rf"(?P<own>Detectron2 )?CUDA Compiler{_SIGN}(?:CUDA )?(?P<cuda>[0-9]{{1,2}}\.[0-9]{{1,2}})\b", re.IGNORECASE
)
_OF_MMCV = re.compile(rf"MMCV CUDA Compiler{_SIGN}(?P<cuda>[0-9]{{1,2}}\.[0-9]{{1,2}})\b", re.IGNORECASE)
_ARCH = r"(?:sm_)?[0-9]{1,2}\.?[0-9]"
_ARCHS_OF_EXTENSION = re.compile(
    rf"(?:detectron2 )?arch flags?{_SIGN}(?P<archs>{_ARCH}(?:, ?{_ARCH}){{0,20}})",
    re.IGNORECASE,
)
_VERSION_OF_EXTENSION = r"[0-9]{1,2}\.[0-9]{1,3}[0-9A-Za-z.+]{0,30}"
_DETECTRON2 = re.compile(rf"detectron2{_SIGN}(?P<version>{_VERSION_OF_EXTENSION})(?: @|$)", re.IGNORECASE)
_TORCH_OF_REPORT = re.compile(rf"PyTorch{_SIGN}(?P<version>{_VERSION_OF_EXTENSION}) @ ?(?P<path>/\S{{1,300}})$")
_LONGEST_TEXT = 1 << 20


@importer("compiled extension", Rank.MESSAGE)
def read_extensions(paste: Paste) -> Snapshot:
    """What Detectron2's and MMCV's reports tell of the extension: the CUDA it was compiled with, and the GPU code in
    it.
    """
    return joined(_of_extensions(paste))


def _of_extensions(paste: Paste) -> Iterator[Snapshot]:
    of_detectron2 = "detectron2" in paste.text[:_LONGEST_TEXT].lower()
    for line in paste.statements:
        text = line.strip(" \t-*•#>`|'\",")[:_LONGEST_LINE]
        if found := _OF_MMCV.match(text):
            yield _extension("mmcv", cuda=found["cuda"])
        elif not of_detectron2:
            continue
        elif found := _OF_DETECTRON2.match(text):
            yield _extension("detectron2", cuda=found["cuda"])
        elif found := _DETECTRON2.match(text):
            yield _extension("detectron2", version=found["version"])
        elif found := _TORCH_OF_REPORT.match(text):
            torch = Framework(source=SOURCE, name="torch", version=found["version"], path=found["path"])
            yield with_environment(environment(frameworks=(torch,)))
        elif found := _ARCHS_OF_EXTENSION.match(text):
            numbers = found["archs"].replace("sm_", "").replace(".", "").split(",")
            yield _extension("detectron2", gpu_code=tuple(f"sm_{number.strip()}" for number in numbers))


def _extension(name: str, **facts: object) -> Snapshot:
    made = Framework(source=SOURCE, name=name, extends="torch", **facts)  # type: ignore[arg-type]
    return with_environment(environment(frameworks=(made,)))


_TARGET = r"(?:sm|compute)_[0-9]{2,3}[af]?"
_VERSION = r"[0-9]{1,2}\.[0-9]{1,3}[0-9A-Za-z.+_-]{0,60}"

_CUDA_CAPABILITY = " with CUDA capability sm_"
_INCOMPATIBLE = re.compile(r"([0-9]{1,2})([0-9]) is not compatible")
_LONGEST_NAME, _MOST_CODE = 80, 40
_SUPPORTS = re.compile(rf"install supports CUDA capabilities ({_TARGET}(?: {_TARGET}){{0,40}})")
_FOUND_GPU = re.compile(
    r"Found GPU[0-9]{1,3} (\S.{1,80}?) which is of (?:cuda|compute) capability (?:\(CC\) )?([0-9]{1,2}\.[0-9])"
)
_BUILT_FOR_CODE = re.compile(r"- ([0-9]{1,2})\.([0-9]) which supports hardware CC\b")
"""A line of the list in which PyTorch 2.10 and newer tell the code of the build."""
_OLD_DRIVER = re.compile(r"driver on your system is too old \(found version ([0-9]{4,5})\)")
_BUILT_FOR = re.compile(rf"PyTorch {_VERSION}(?: with CUDA [0-9]{{2,5}})? \(you have ({_VERSION})\)")
_RUNS_ON = re.compile(r"Python\s{1,4}[0-9.]{3,10} \(you have ([0-9.]{3,10})\)")
_TOOLKIT_MISMATCH = re.compile(r"mismatches the version that was used to compile PyTorch \(([0-9]{1,2}\.[0-9]{1,2})\)")
_CONFIG = "PyTorch built with:"
_OF_CONFIG = re.compile(
    r"\s{0,8}- (?:CUDA Runtime (?P<cuda>[0-9]{1,2}\.[0-9]{1,2})$|NVCC architecture flags: (?P<flags>\S.{1,4000}))"
)
_FLAG = re.compile(r"\bcode=(sm_[0-9]{2,3}[af]?|compute_[0-9]{2,3})")


@importer("PyTorch's messages", Rank.MESSAGE)
def read_torch_messages(paste: Paste) -> Snapshot:
    """Facts in warnings and errors of PyTorch and of libraries that are built on it."""
    parts = [part for line in paste.statements for part in _of_torch(line)]
    listed = (_BUILT_FOR_CODE.search(line) for line in paste.statements if "supports hardware CC" in line)
    if code := tuple(f"sm_{match[1]}{match[2]}" for match in listed if match)[:_MOST_CODE]:
        parts.append(_torch(gpu_code=code))
    # What ``torch.__config__.show()`` tells of the build; reports of OpenMMLab and Detectron2 end with it.
    for found in filter(None, map(_OF_CONFIG.match, paste.lines)) if _CONFIG in paste.text else ():
        flags = tuple(dict.fromkeys(_FLAG.findall(found["flags"] or "")))[:_MOST_CODE]
        parts.append(_torch(cuda=found["cuda"]) if found["cuda"] else _torch(gpu_code=flags or None))
    return joined(parts)


def _torch(*, version: str | None = None, cuda: str | None = None, gpu_code: tuple[str, ...] | None = None) -> Snapshot:
    torch = Framework(source=SOURCE, name="torch", version=version, cuda=cuda, gpu_code=gpu_code)
    return with_environment(environment(frameworks=(torch,)))


def _named_gpu(name: str, capability: str) -> Snapshot:
    gpu = Gpu(source=SOURCE, label=f"{NAMED}{name}", name=name, compute_capability=capability)
    return Snapshot(gpus=Listing(items=(gpu,)))


def _of_torch(line: str) -> Iterator[Snapshot]:
    """The facts in a line of PyTorch's, or of a library that is built on it."""
    before, _, after = line.partition(_CUDA_CAPABILITY)
    name = before.rpartition(": ")[2].strip()
    if (found := _INCOMPATIBLE.match(after)) and 0 < len(name) <= _LONGEST_NAME:
        yield _named_gpu(name, f"{found[1]}.{found[2]}")
    if "which is of c" in line and (found := _FOUND_GPU.search(line)):
        yield _named_gpu(found[1], found[2])
    if found := _SUPPORTS.search(line):
        yield _torch(gpu_code=tuple(found[1].split()))
    if found := _OLD_DRIVER.search(line):  # as cuDriverGetVersion returned it
        yield Snapshot(driver=Driver(source=SOURCE, cuda=str(CudaVersion.decode(int(found[1])))))
    # xFormers names the installed PyTorch or Python after the one that it was built for.
    if "(you have" in line and (found := _RUNS_ON.search(line)):
        yield with_environment(environment(python=found[1]))
    elif "(you have" in line and (found := _BUILT_FOR.search(line)):
        yield _torch(version=found[1])
    if found := _TOOLKIT_MISMATCH.search(line):
        yield _torch(cuda=found[1])
    # Printed where ``torch.cuda.is_available()`` is False, as it builds or loads something.
    if "No CUDA runtime is found, using CUDA_HOME=" in line or "on a CUDA device but torch.cuda" in line:
        torch = Framework(source=SOURCE, name="torch", gpu_available=False)
        yield with_environment(environment(frameworks=(torch,)))


_LONGEST_REFUSAL = 1_000
_ASKED = re.compile(
    r"requir|\bneeds?\b|\bonly\b|minimum|min\.|at least|support(?:s|ed)\b|is older than|too old|>=", re.IGNORECASE
)
_FOUND = (
    r"\b(?:found|got|detected|current(?: device| GPU)?(?: is)?|attempting to run on|tensor is on|device reports"
    r"|(?:your|this) (?:GPU|device) has|device cuda:[0-9]{1,2} has)\b[ :=`]{1,3}"
)
_CAPABILITY = re.compile(
    _FOUND + r"(?:(?:an?|cuda|gpu|device|compute|capability|of|sm|has|is)(?: ?[:=] ?| )){0,6}[(`]?(?:sm_?)?"
    r"(?:(?P<major>[1-9][0-9]?)(?:\.|, ?)(?P<minor>[0-9])|(?P<both>[5-9][0-9]|1[0-2][0-9]))(?![\w.]*[0-9])",
    re.IGNORECASE | re.ASCII,
)
_OF_CAPABILITY = re.compile(r"capabilit|\bsm ?_?[0-9]|\bsm\b", re.IGNORECASE)
_GPU_WITH_CAPABILITY = re.compile(
    r"\b[Yy]our (?P<name>[A-Z][\w .-]{2,50}?) GPU has compute capability (?P<capability>[0-9]{1,2}\.[0-9])\b"
)
_REFUSED_DRIVER = re.compile(
    r"driver version (?:>=? ?)?[0-9.]{3,12},? but found (?P<release>[3-6][0-9]{2}\.[0-9.]{2,9})"
    r"|(?:installed CUDA driver version is|driver only supports CUDA) (?P<cuda>[0-9]{1,2}\.[0-9])(?![.\w]*[0-9])",
    re.IGNORECASE | re.ASCII,
)
_REFUSED_TORCH = re.compile(
    r"\b(?:py)?torch\b.{0,90}?\b(?:found|detected|current version(?: is)?)[ :=]{1,3}(?:torch[ =]{1,3})?"
    r"(?P<version>[12]\.[0-9]{1,2}(?:\.[0-9]{1,2})?(?:\+[a-z0-9]{2,12})?)(?![\w.]*[0-9])",
    re.IGNORECASE | re.ASCII,
)


@importer("refusals", Rank.MESSAGE)
def read_refusals(paste: Paste) -> Snapshot:
    """What a program found, in the line in which it says that it asks for more: a GPU's capability, the driver,
    PyTorch.
    """
    lines = (line[:_LONGEST_REFUSAL] for line in paste.statements)
    return joined(part for text in lines if _ASKED.search(text) for part in _refused(text))


def _refused(text: str) -> Iterator[Snapshot]:
    capability = _OF_CAPABILITY.search(text)
    if found := _GPU_WITH_CAPABILITY.search(text):
        yield _named_gpu(found["name"], found["capability"])
    elif capability and (found := _CAPABILITY.search(text, capability.start())):
        number = f"{found['major'] or found['both'][:-1]}.{found['minor'] or found['both'][-1]}"
        gpu = Gpu(source=SOURCE, label=f"{NAMED}{number}", compute_capability=number)
        yield Snapshot(gpus=Listing(items=(gpu,)))
    if found := _REFUSED_DRIVER.search(text):
        yield Snapshot(driver=Driver(source=SOURCE, release=found["release"], cuda=found["cuda"]))
    if found := _REFUSED_TORCH.search(text):
        yield _torch(version=found["version"])
