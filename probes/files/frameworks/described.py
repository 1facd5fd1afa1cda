"""Reads a framework by its entry in the catalogue; a hook adds what the entry's lists cannot say.

A hook is a generator. Before its ``yield`` it adds what goes before the metadata of distributions, and after it what
goes behind all else; it yields what it found besides facts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ...common.lazy import lazy_pattern
from ...common.paths import without_prefix
from ..installations.catalog import FrameworkEntry
from ..installations.package import (
    Installation,
    assigned,
    cuda_of_number,
    cuda_version,
    digits_as_version,
    label,
    locate,
    mapping,
    version,
)
from ..installations.parts import add_parts, asked_by_name, asks_for_cuda, cuda_by_loads
from ..installations.torch_files import torch_of
from ..loader.script import OpenByName, Preload
from ..python.distributions import pinned
from ..python.site import Gathered, Site
from .tensorrt import tensorrt_preloads

if TYPE_CHECKING:
    from typing import TypeAlias


class Further(NamedTuple):
    """What a hook yields."""

    parts: Sequence[str] | None = ()  # Those that the entry cannot name; None: which are loaded is not known
    preloads: Sequence[Preload] = ()
    asks: Sequence[OpenByName] = ()
    problems: Sequence[str] = ()


Hook: TypeAlias = "Callable[[Gathered, Installation, list[str]], Iterator[Further]]"
"""Takes the facts, the installation and the parts that the entry names."""


def read(site: Site, entry: FrameworkEntry) -> list[dict[str, Any]]:
    """The framework that the entry's import would take."""
    names = entry.distributions.split()
    forks = {item["name"] for item in site.distributions if re.fullmatch(entry.forks, item["name"])}
    here = locate(site, entry.imports, [*names, *sorted(forks.difference(names))])
    if here is None or (entry.holds and here.names().isdisjoint(entry.holds.split())):
        return []
    places = [re.sub(r"^\.\.", lambda _: here.folder, part).rpartition("/") for part in entry.parts]
    parts = [path for folder, _, pattern in places for path in here.files(pattern, folder)]
    if entry.needs_parts and not (parts or here.wheels or here.conda):
        return []
    wheel = here.owner(parts[0] if parts else None) if entry.named_by == "owner" else here.wheel
    facts = here.gather(wheel["name"] if wheel and entry.named_by else min(names, key=len), entry.extends or None)
    if entry.metadata_first:
        here.add_declared(facts)
    stated = here.add_stated_version(facts, entry.version_in, entry.version_name) if entry.version_in else None
    own = HOOKS.get(entry.imports)
    hook = own(facts, here, parts) if own else iter([Further()])
    further = next(hook)
    here.add_declared(facts)
    parts += further.parts or ()
    if further.parts is not None and entry.extends is not None:
        torch = torch_of(site)  # it is loaded into a process with PyTorch
        add_parts(facts, here, parts, preloads=(*torch.preloads, *further.preloads), extends=torch.parts)
    elif further.parts is not None:
        add_parts(facts, here, parts, preloads=further.preloads, asks=further.asks)
    if entry.cuda_by_loads:
        cuda_by_loads(facts)
    if entry.on_gpu and parts:
        facts.add(f"elf {here.path}", cpu_only=False)
    next(hook, None)
    return [facts.record([*here.problems(stated, entry.version_in, entry.needs.split()), *further.problems])]


_BITSANDBYTES = lazy_pattern(r"libbitsandbytes_cuda(\d{2})(\d)\.so")


def _bitsandbytes(facts: Gathered, here: Installation, _parts: list[str]) -> Iterator[Further]:
    """The library for the CUDA that PyTorch was built with is loaded; later releases take the nearest of the same
    major where that is missing (``cextension.py`` then speaks of ``available`` libraries). ``BNB_CUDA_VERSION`` names
    another; then no release takes the nearest.
    """
    found = ((_BITSANDBYTES.fullmatch(path.rpartition("/")[2]), path) for path in here.files(_BITSANDBYTES.pattern))
    libraries = dict(sorted(((int(match[1]), int(match[2])), path) for match, path in found if match))
    if not libraries:
        yield Further(here.files(r"libbitsandbytes_cpu\.so") if here.names() else None)
        others = any(name.startswith(("libbitsandbytes_rocm", "libbitsandbytes_xpu")) for name in here.names())
        facts.add(f"file {here.path}", cpu_only=not others if here.names() else None)
        return
    named = re.fullmatch(r"(\d\d)(\d)", str(here.site.tree.variables.get("BNB_CUDA_VERSION", "")))
    match = named or re.fullmatch(r"(\d{1,2})\.(\d)", torch_of(here.site).cuda or "")
    wanted = (int(match[1]), int(match[2])) if match else None
    chosen = wanted if wanted in libraries else None
    if wanted and not chosen and not named and "def _find_cuda_libs" in (here.text("cextension.py") or ""):
        same = [number for number in libraries if number[0] == wanted[0]]
        chosen = max((number for number in same if number < wanted), default=min(same, default=None))
    versions = ", ".join(f"{major}.{minor}" for major, minor in libraries)
    lacking = f"{wanted[0]}.{wanted[1]}" if wanted and not chosen else ""
    lack = f"it has libraries for CUDA {versions}, and none for {lacking}, which it would load"
    yield Further([libraries[chosen]] if chosen else None, problems=[lack] if lacking else [])
    if chosen:
        facts.add(f"file {libraries[chosen]}", cuda=f"{chosen[0]}.{chosen[1]}", cpu_only=False)
    facts.add(f"file {here.path}", cpu_only=False)


def _caffe2(facts: Gathered, here: Installation, parts: list[str]) -> Iterator[Further]:
    """The build for CUDA has its name; within PyTorch it has no version of its own: PyTorch's counts."""
    here.add_declared(facts)
    within = [wheel for wheel in here.site.installed("torch", "pip") if wheel["path"].startswith(f"{here.folder}/")]
    if parts and within:
        facts.add(within[0]["source"], version=within[0]["version"])
    if parts:
        facts.add(f"file {here.path}/python", cpu_only=not any("_gpu" in part or "_hip" in part for part in parts))
    parts[:] = [part for part in parts if "_gpu" in part] or parts
    yield Further()


_BUNDLED = {
    "cuda": lazy_pattern(r"libcudart\.so\.(\d{1,2}\.\d{1,2})"),
    "cudnn": lazy_pattern(r"libcudnn\.so\.(\d{1,2}(?:\.\d{1,2}){0,2})"),
    "nccl": lazy_pattern(r"libnccl\.so\.(\d{1,2}(?:\.\d{1,2}){0,2})"),
}


def _cntk(facts: Gathered, here: Installation, _parts: list[str]) -> Iterator[Further]:
    """CUDA's libraries lie beside its own; their names, ``libcudart.so.10.0``, tell the versions."""
    libraries = sorted(here.names("libs"), reverse=True)
    found = {
        field: next((match[1] for name in libraries if (match := pattern.fullmatch(name))), None)
        for field, pattern in _BUNDLED.items()
    }
    yield Further()
    facts.add(f"file {here.path}/libs", **found, cpu_only=not any(found.values()) if libraries else None)


_CTRANSLATE2_CUDNN = lazy_pattern(r"libcudnn-\w+\.so\.(\d{1,2}(?:\.\d{1,2}){1,2})")


def _ctranslate2(facts: Gathered, here: Installation, parts: list[str]) -> Iterator[Further]:
    """It opens ``libcublas.so.12`` (and ``libcudnn.so.8`` up to 3.24) by those names when it is first used, and without
    one of these raises ("is not found or cannot be loaded"). NCCL is opened for several GPUs alone.
    """
    libraries = [path for path in parts if path.rpartition("/")[2].startswith("lib")]
    asks = [ask for path in libraries for ask in asked_by_name(here, path)]
    needed = ("libcublas", "libcudnn")
    yield Further(asks=[ask._replace(optional=not ask.names[0].startswith(needed)) for ask in asks])
    bundled = (_CTRANSLATE2_CUDNN.fullmatch(name) for name in sorted(here.names(f"{here.folder}/ctranslate2.libs")))
    facts.add(f"file {here.folder}/ctranslate2.libs", cudnn=next((match[1] for match in bundled if match), None))
    linked = asks_for_cuda(facts) if libraries else None
    facts.add(f"elf {here.path}", cpu_only=None if linked is None else not linked)


def _deepspeed(facts: Gathered, here: Installation, _parts: list[str]) -> Iterator[Further]:
    """Its installation writes ``torch_info={'version': '2.5', 'cuda_version': '12.4', 'nccl_version': '2.21',
    'hip_version': '0.0', ...}``. Where no PyTorch was there to be asked (pip builds apart from the environment), all
    are ``0.0``, which means nothing.
    """
    info = "git_version_info_installed.py"
    torch, source = mapping(here.text(info) or "", "torch_info"), f"file {here.path}/{info}"
    facts.add(source, **{field: cuda_version(torch.get(f"{field}_version")) for field in ("cuda", "hip", "nccl")})
    folders = [name for name in sorted(here.names("ops")) if re.fullmatch(r"[a-z][a-z0-9_]{1,40}", name)]
    parts = [path for name in folders[:60] for path in here.files(r"\w+_op\b.*\.so", f"ops/{name}")]
    release = cuda_version(torch.get("version"))
    if parts and release:
        facts.add(source, built_for={"torch": release})
    yield Further(parts)


def _flash_attn(facts: Gathered, here: Installation, _parts: list[str]) -> Iterator[Further]:
    built = label(here.wheel["version"]) if here.wheel else {}
    if here.wheel:
        torch = {"torch": built["torch"]} if "torch" in built else None
        facts.add(here.wheel["source"], cuda=built.get("cuda"), built_for=torch)
    yield Further()


_OTHER_DEVICES = lazy_pattern(r"libggml-(?:hip|vulkan|sycl|musa|cann|opencl|kompute|metal)\.so")


def _llama_cpp(facts: Gathered, here: Installation, parts: list[str]) -> Iterator[Further]:
    yield Further()
    if not parts:
        return
    with_cuda = any(path.endswith("libggml-cuda.so") for path in parts) or asks_for_cuda(facts)
    folder = "lib" if "lib" in here.names() else ""
    others = any(_OTHER_DEVICES.fullmatch(name) for name in here.names(folder))
    cpu_only = False if with_cuda or others else None if with_cuda is None else True
    facts.add(f"file {here.path}/{folder}".rstrip("/"), cpu_only=cpu_only)


def _mxnet(facts: Gathered, here: Installation, parts: list[str]) -> Iterator[Further]:
    wheel = here.owner(parts[0] if parts else None)
    digits = re.match(r"mxnet-cu(\d{2,3})", wheel["name"]) if wheel else None
    if wheel and digits:
        facts.add(wheel["source"], cuda=digits_as_version(digits[1]), cpu_only=False)
    yield Further()
    linked = asks_for_cuda(facts) if parts else None
    facts.add(f"elf {here.path}/libmxnet.so", cpu_only=None if linked is None else not linked)


def _torch_family(
    facts: Gathered, here: Installation, _parts: list[str], version_in: str = "version.py"
) -> Iterator[Further]:
    """The local tag of the version says the build (``+cpu`` is one without CUDA, ``+rocm6.2`` one for ROCm), and the
    only PyTorch that the metadata allows is the one it was built for.
    """
    source, stated = f"file {here.path}/{version_in}", facts.known("version") or ""
    local = stated.partition("+")[2]
    if local.startswith("rocm"):
        facts.add(source, hip=version(without_prefix(local, "rocm")), cpu_only=False)
    cuda = label(stated).get("cuda")
    facts.add(source, cuda=cuda, cpu_only=True if local == "cpu" else False if cuda else None)
    torch = pinned((here.wheel or {}).get("requires") or (), "torch")
    if here.wheel and torch:
        facts.add(here.wheel["source"], built_for={"torch": torch})
    yield Further()


def _vllm(facts: Gathered, here: Installation, parts: list[str]) -> Iterator[Further]:
    yield from _torch_family(facts, here, parts, "_version.py")
    if parts and asks_for_cuda(facts):
        facts.add(f"elf {here.path}", cpu_only=False)


def _torch_tensorrt(facts: Gathered, here: Installation, _parts: list[str]) -> Iterator[Further]:
    """``_version.py`` also assigns ``__cuda_version__`` and ``__tensorrt_version__``."""
    text, source = here.text("_version.py") or "", f"file {here.path}/_version.py"
    tensorrt = version(assigned(text, "__tensorrt_version__"))
    facts.add(source, cuda=cuda_version(assigned(text, "__cuda_version__")), tensorrt=tensorrt)
    torch = pinned((here.wheel or {}).get("requires") or (), "torch")
    built_for = {name: value for name, value in (("torch", torch), ("tensorrt", tensorrt)) if value}
    facts.add(here.wheel["source"] if here.wheel else source, built_for=built_for or None)
    yield Further(preloads=tensorrt_preloads(here.site))


def _transformer_engine(facts: Gathered, here: Installation, _parts: list[str]) -> Iterator[Further]:
    for wheel in sorted(here.wheels, key=lambda item: item["name"] != "transformer-engine"):
        facts.add(wheel["source"], version=wheel["version"])
    cores = {match[1]: wheel for wheel in here.wheels if (match := re.fullmatch(r".*-cu(\d{2})", wheel["name"]))}
    if len(cores) == 1:
        major, core = cores.popitem()
        facts.add(core["source"], cuda=major)
    named = ", ".join(f"{item['name']} {item['version']}" for item in here.wheels)
    differ = len({wheel["version"].partition("+")[0] for wheel in here.wheels}) > 1
    yield Further(problems=[f"its parts are of different versions: {named}"] if differ else [])


_ARCH = lazy_pattern(r"(\d{1,2})\.(\d)([af]?)(\+PTX)?")


def _xformers(facts: Gathered, here: Installation, _parts: list[str]) -> Iterator[Further]:
    """``cpp_lib.json`` (in builds on site too) says what ``_C.so`` was built with, ``{"version": {"cuda": 1208, "hip":
    null, "torch": "2.10.0+cu128"}, "env": {"TORCH_CUDA_ARCH_LIST": "7.5 8.0+PTX 8.0 9.0a"}}``.
    """
    source = f"file {here.path}/cpp_lib.json"
    stated = here.json("cpp_lib.json")
    build, variables = (part if isinstance(part := stated.get(key), dict) else {} for key in ("version", "env"))
    cuda, hip, torch = cuda_of_number(build.get("cuda")), version(build.get("hip")), version(build.get("torch"))
    cpu_only = not cuda and not hip if "cuda" in build else None
    facts.add(source, cuda=cuda, hip=hip, cpu_only=cpu_only, built_for={"torch": torch} if torch else None)
    yield Further()
    listed = variables.get("TORCH_CUDA_ARCH_LIST")
    targets: dict[str, None] = {}
    for match in _ARCH.finditer(listed[:500] if isinstance(listed, str) else ""):
        number = f"{match[1]}{match[2]}{match[3]}"
        targets.update(dict.fromkeys([f"sm_{number}", *([f"compute_{number}"] if match[4] else [])]))
    facts.add(source, gpu_code=list(targets) or None)


HOOKS: dict[str, Hook] = {
    "bitsandbytes": _bitsandbytes, "caffe2": _caffe2, "cntk": _cntk, "ctranslate2": _ctranslate2,
    "deepspeed": _deepspeed, "flash_attn": _flash_attn, "flash_attn_3": _flash_attn, "llama_cpp": _llama_cpp,
    "mxnet": _mxnet, "torch_tensorrt": _torch_tensorrt, "torchaudio": _torch_family, "torchvision": _torch_family,
    "transformer_engine": _transformer_engine, "vllm": _vllm, "xformers": _xformers,
}  # fmt: skip
"""By the import."""
