"""What compiles: the compilers of Triton and XLA at run time, and the CUDA toolkit of software that is built here."""

from __future__ import annotations

from envcheck.compat.package_needs import active_requirements, normalised, package_filled_by, requirement_name
from envcheck.knowledge.error_lines import fragment_in
from envcheck.knowledge.relations.driver import driver_runs_cuda, minor_compatible
from envcheck.knowledge.relations.gpu_code import code_runs_on, cuda_targets
from envcheck.knowledge.relations.libraries import TOOLKIT
from envcheck.knowledge.relations.torch import torch_row
from envcheck.knowledge.tables import is_named
from envcheck.model.checks import Evidence, Fix
from envcheck.model.snapshot import PASTED, Environment, Framework, Snapshot, Toolkit, items_in
from envcheck.model.versions import CodeTarget, ComputeCapability, CudaVersion
from envcheck.rules.api import Facts, Outcome, evidence_of, failure, incompatible, note, passed, rule, warning
from envcheck.rules.facts.frameworks import code_targets
from envcheck.rules.fixes.driver import family, install_command, update_driver
from envcheck.rules.fixes.frameworks import install_fitting_build, install_gpu_build, torch_build
from envcheck.rules.fixes.install import How, in_steps, install

_ASSEMBLER = "ptxas"
_OF_XLA = ("with-cuda", "and-cuda")  # Extras of JAX's plug-ins and TensorFlow that install the CUDA wheels
_COMPILERS = ("nvidia-cuda-nvcc", "nvidia-nvvm")  # Beginnings of the names of wheels with ptxas, nvlink and libdevice
_NVVM = "libnvvm"
_NVRTC, _RUNTIME, _CUDA_HEADERS = "nvidia-cuda-nvrtc", "nvidia-cuda-runtime", "CUDA headers"
_DATA_DIR = "xla_gpu_cuda_data_dir"
_USUAL = "/usr/local/cuda"
_HOSTS = {
    "C compiler": "C compiler (CC, gcc or clang)",
    "CC": "compiler by the name in CC",
    "Python.h": "Python.h of its Python",
}


def _is_triton(framework: Framework) -> bool:
    return package_filled_by(framework.name) == "triton" and framework.problem is None


def _assemblers(framework: Framework) -> dict[str, CudaVersion]:
    """Triton's assemblers, with the CUDA version of each."""
    found = {name: CudaVersion.parse(version) for name, version in framework.built_for.items()}
    return {name: version for name, version in found.items() if name.startswith(_ASSEMBLER) and version}


def _path_of(assembler: str) -> str:
    """The variable that names another one: TRITON_PTXAS_PATH, and one of its own for that of the newest GPUs."""
    return f"TRITON_{assembler.upper().replace('-', '_')}_PATH"


@rule(layer="framework")
def jit_compiler_too_old(framework: Framework, facts: Facts) -> Outcome | None:
    """A run-time compiler does not support the GPU."""
    if refused := _refused_by_nvvm(framework, facts):
        return refused
    own = _assemblers(framework)
    if not _is_triton(framework) or not own:
        return None
    path = _path_of(max(own, key=lambda name: own[name]))  # Triton compiles for the newest GPUs with the newest one
    if facts.variable(path):
        return None
    capabilities = {capability: gpu for gpu, capability in facts.gpus_with_capability}
    if not capabilities:
        return None
    for capability, gpu in capabilities.items():
        fits = [cuda_targets(facts.matrix, capability, version) for version in own.values()]
        if any(fit.ok for fit in fits) or framework.ran_on_gpu:
            continue
        if not all(fit.bad for fit in fits):
            title = f"Not known whether {framework.title} can compile for {gpu.title}"
            return Outcome(status="skipped", title=title, message=next(fit.reason for fit in fits if not fit.bad))
        newer = Fix(f"Name a newer ptxas in {path}", command=("env", f"{path}=/usr/local/cuda/bin/ptxas", "python"))
        return incompatible(
            f"{framework.title} cannot compile for {gpu.title}",
            fits[0],
            evidence=(evidence_of("assemblers that it brings", framework, "built_for"),),
            fixes=(*install_fitting_build(facts), newer),
            worst="warn",
        )
    return passed(
        f"{framework.title} has a ptxas that supports the GPU", evidence_of("assemblers", framework, "built_for")
    )


def _refused_by_nvvm(framework: Framework, facts: Facts) -> Outcome | None:
    """Numba compiles all kernels with NVVM: for a GPU that it does not know yet as for an older one, but for none that
    it has dropped, nor for a driver of an older CUDA major.
    """
    load = next((each for each in framework.loads or () if each.name.startswith(_NVVM) and each.version), None)
    cuda, number = CudaVersion.parse(load.version if load else None), facts.driver_release
    if load is None or cuda is None or framework.ran_on_gpu:
        return None
    fits = ((gpu, cuda_targets(facts.matrix, capability, cuda)) for gpu, capability in facts.gpus_with_capability)
    gpu, fit = next(((gpu, fit) for gpu, fit in fits if fit.bad and "<" in fit.nearest_change), (None, None))
    title = f"{framework.title} cannot compile for {gpu.title if gpu else ''}"
    newer: tuple[Fix, ...] = ()
    if fit is None and number is not None:
        fit = driver_runs_cuda(facts.matrix, number, cuda, facts.driver_os)
        title = f"Driver {number} is too old for what {framework.title} compiles"
        newer = update_driver(facts, fit.nearest_change)
    if fit is None or not fit.bad:
        return None
    found = Evidence(load.name, load.owner or load.path or load.name, load.source)
    return incompatible(title, fit, evidence=(found,), fixes=(*install_gpu_build(facts, framework), *newer))


@rule(layer="framework")
def jit_compiler_missing(framework: Framework, facts: Facts) -> Outcome | None:
    """A run-time compiler is missing."""
    if framework.name == "torch":
        return _without_ninja(facts)
    if facts.matrix.has_trait(framework.name, "compiles-with-xla"):
        return _without_xlas_compilers(framework, facts)
    if framework.compiles_with.get(_CUDA_HEADERS) == "" and not framework.ran_on_gpu:
        brought = any(each.name.startswith(_RUNTIME) for each in facts.distributions)
        return None if brought else _without_headers(framework, facts)
    if not _is_triton(framework) or framework.binaries is None:
        return None
    lacking = [name for name, place in framework.compiles_with.items() if not place]
    if lacking and not framework.ran_on_gpu:
        return _cannot_compile_in_c(framework, lacking, facts)
    if _assemblers(framework):
        return passed(f"{framework.title} has its own ptxas")
    toolkits = facts.snapshot.toolkits
    elsewhere = facts.variable(_path_of(_ASSEMBLER)) or (toolkits and any(each.nvcc for each in toolkits.items))
    if elsewhere or framework.ran_on_gpu or toolkits is None or not toolkits.complete:
        return None
    return warning(
        title=f"{framework.title} has no ptxas",
        message="The package contains none, TRITON_PTXAS_PATH names none, and there is no CUDA toolkit.",
        evidence=(Evidence("package", framework.path or framework.name, framework.source),),
        fixes=install(facts, (framework.name,), f"Install {framework.name} from its own wheel", How(again=True)),
    )


def _without_ninja(facts: Facts) -> Outcome | None:
    """What compiles CUDA code for PyTorch starts ninja by its name; another shell may activate one that is here."""
    compiling, programs = _compiling(facts), facts.platform.programs
    here = facts.environment.why != "envcheck" and any(each.name == "ninja" for each in facts.distributions)
    if not compiling or here or programs is None or any(path.endswith("/ninja") for path in programs):
        return None
    text = "Install ninja, and start programs where PATH names its folder (in the activated environment)"
    return note(
        title=f"{compiling[0]} finds no ninja on PATH",
        message="Ninja runs the compilers when an operation is first used. What is built already works.",
        evidence=(_compiling_packages(facts),),
        fixes=install(facts, ("ninja",), text),
    )


def _without_headers(framework: Framework, facts: Facts) -> Outcome:
    """The headers come with a wheel beside that of NVRTC, of the same CUDA."""
    wanted = f"{framework.name}[ctk]=={framework.version}"
    for each in facts.distributions:
        if each.name.startswith(_NVRTC) and each.version:
            wanted = f"{each.name.replace(_NVRTC, _RUNTIME)}=={'.'.join(each.version.split('.')[:2])}.*"
    return failure(
        title=f"{framework.title} finds no CUDA headers",
        message="Its kernels are compiled when they are first called, and include them (vector_types.h).",
        evidence=(evidence_of("what it compiles with", framework, "compiles_with"),),
        fixes=install(facts, (wanted,), "Install the headers of the CUDA that compiles", How(owner=framework.name)),
    )


def _without_xlas_compilers(framework: Framework, facts: Facts) -> Outcome | None:
    """A warning where all programs are compiled (JAX); a note where only some are (TensorFlow)."""
    there = facts.packages.keys()
    by_conda = any(each.channel == "conda" for each in facts.distributions)
    toolkits = facts.snapshot.toolkits
    if not facts.environment.distributions_complete or by_conda or toolkits is None or not toolkits.complete:
        return None
    parts = [each for each in facts.frameworks if framework.name in (each.name, each.extends)]
    required = (each for part in parts for each in active_requirements(part.requires, facts.markers, _OF_XLA))
    asked = {normalised(each.name): each for each in required}
    lacking = {name: each for name, each in asked.items() if name.startswith(_COMPILERS) and name not in there}
    elsewhere = any(each.nvcc for each in toolkits.items) or _DATA_DIR in (facts.variable("XLA_FLAGS") or "")
    if not lacking or elsewhere or there.isdisjoint(asked) or any(each.ran_on_gpu for each in parts):
        return None
    names = " and ".join(lacking)
    asking = ((part, line) for part in parts for line in part.requires if requirement_name(line) in lacking)
    lines = tuple(Evidence(f"{part.name} requires", line, part.source_of("requires")) for part, line in asking)
    wanted = [f"{name}{each.specifier}" for name, each in lacking.items()]
    return Outcome(
        status="warn" if facts.matrix.has_trait(framework.name, "compiles-at-run-time") else "note",
        title=f"{framework.title} lacks {names}",
        message="XLA compiles for the GPU with the ptxas and libdevice of these wheels. The other CUDA wheels of the "
        "same extra are installed, and there is no CUDA toolkit in their place.",
        evidence=lines,
        decided_by="declared",
        fixes=install(facts, wanted, f"Install what {framework.title} compiles with", How(owner=framework.name)),
    )


def _cannot_compile_in_c(framework: Framework, lacking: list[str], facts: Facts) -> Outcome:
    """A note beside PyTorch, which works without compiling; a warning beside vLLM, which does not."""
    what = " and ".join(_HOSTS.get(name, name) for name in lacking)
    headers = "python3-devel" if family(facts) in ("fedora", "suse") else "python3-dev"
    packages = [headers if name == "Python.h" else "gcc" for name in lacking if name in _HOSTS and name != "CC"]
    command = install_command(facts, *packages)
    unset = (Fix("Unset CC", command=("env", "-u", "CC", "python")),) if "CC" in lacking else ()
    brings = (Fix(f"Install {' and '.join(packages)}", command=command, who="root"),) if packages else ()
    return Outcome(
        status="note" if facts.only_compiles_for_torch else "warn",
        title=f"{framework.title} finds no {what}",
        message=f"Triton compiles C code when the first kernel is called, but there is no {what}.",
        evidence=(evidence_of("what it compiles with", framework, "compiles_with"),),
        fixes=in_steps((*unset, *brings)),
    )


_DOWNLOADS = "https://developer.nvidia.com/cuda-toolkit-archive"


def _compiling(facts: Facts) -> tuple[str, ...]:
    """The installed packages that compile CUDA code on this machine."""
    names = [each.name for each in facts.distributions]
    found = [name for name in names if facts.matrix.has_trait(name, "compiles-where-it-runs")]
    rows = [row for row in facts.matrix.traits if found and row.unless and not set(names).isdisjoint(row.unless)]
    return tuple(name for name in found if not any(is_named(name, row.names) for row in rows))


def _build_fails(facts: Facts) -> bool:
    """Whether a text tells of a build that fails."""
    return any(error.source == PASTED for error in facts.lines_with("build-fails"))


def _chosen(facts: Facts) -> Toolkit | None:
    """The toolkit that builds use: in CUDA_HOME, else on PATH, else the only one."""
    toolkits = facts.snapshot.toolkits
    if toolkits is None and _build_fails(facts):  # the text may state the version alone
        stated = [each for each in facts.libraries if each.stated and each.family == TOOLKIT]
        return Toolkit(source=PASTED, path=stated[0].path, version=stated[0].declared) if len(stated) == 1 else None
    items = [each for each in items_in(toolkits) if each.nvcc or each.path == "unknown folder"]
    home = [each for each in items if each.cuda_home] or [each for each in items if each.on_path]
    return next(iter(home), items[0] if len(items) == 1 else None)


def _other_toolkit(facts: Facts) -> tuple[Fix, ...]:
    torch, toolkits = facts.framework("torch"), facts.matrix.toolkits
    cuda, other = CudaVersion.parse(torch.cuda if torch else None), ""
    named = f"the CUDA toolkit{f' {cuda}' if cuda else ''}"
    wanted = [capability for _, capability in facts.gpus_with_capability]
    lines = (fragment_in("target-refused", error.text) for error in facts.snapshot.observed_errors)
    target = next((CodeTarget.parse(match[1]) for match in lines if match), None)
    if target and (refused := target.capability):  # what a line names that nvcc does not compile for
        serving = [each for each in toolkits if cuda_targets(facts.matrix, refused, each).ok]
        if serving and max(serving) < max(toolkits):
            return _older_target(refused, max(serving), facts)
        if serving and cuda is None:
            named = f"a CUDA toolkit of {min(serving)} or newer, of the CUDA major of what is built,"
        wanted.append(refused)

    def serves(toolkit: CudaVersion) -> bool:
        return not any(cuda_targets(facts.matrix, capability, toolkit).bad for capability in wanted)

    if cuda is not None and not serves(cuda):
        choice = torch_build(facts)
        cuda = CudaVersion.from_tag(choice.tag if choice else None) or max(filter(serves, toolkits), default=None)
        named = f"the CUDA toolkit{f' {cuda}' if cuda else ''}"
        other = ", and PyTorch built for that CUDA: its present CUDA has no code for the GPU" if cuda else ""
    install = Fix(f"Install {named} beside any other{other}: {_DOWNLOADS}", who="root")
    if facts.driver_os == "windows":
        return (install, Fix("Then let CUDA_HOME and PATH name its folder", continues=True))
    home = f"{_USUAL}{f'-{cuda}' if cuda else ''}"
    return (install, Fix(f"Then let the build find it: export CUDA_HOME={home}", continues=True))


def _older_target(refused: ComputeCapability, last: CudaVersion, facts: Facts) -> tuple[Fix, ...]:
    """What ends it that the build is for GPUs, too, that the toolkit has dropped."""
    has = sorted({capability for _, capability in facts.gpus_with_capability})
    older = Fix(f"To compile for it: install CUDA toolkit {last}, the last that does: {_DOWNLOADS}", who="root")
    if has and has[0] <= refused:
        return (older,)
    places = "TORCH_CUDA_ARCH_LIST, CMAKE_CUDA_ARCHITECTURES, -gencode"
    text = f"Take {refused} out of the list that the build compiles for ({places}), or let it have the GPU here alone"
    if has:
        return (Fix(f"{text}: {', '.join(map(str, has))}"), older)
    ask = ("nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader")
    return (Fix(f"{text}, whose compute capability this prints", command=ask), older)


@rule(layer="framework", remedy=_other_toolkit)
def toolkit_lacks_gpu(_snapshot: Snapshot, facts: Facts) -> Outcome | None:
    """The CUDA toolkit cannot compile for the GPU."""
    toolkit = _chosen(facts)
    who = (_compiling_packages(facts),) if _compiling(facts) else ()
    if toolkit is None or not (who or _build_fails(facts) or toolkit.targets is not None):
        return None
    version = CudaVersion.parse(toolkit.version)
    targets = [target.capability for text in toolkit.targets or () if (target := CodeTarget.parse(text))]
    for gpu, capability in facts.gpus_with_capability:
        fit = cuda_targets(facts.matrix, capability, version) if version else None
        if fit is not None and fit.bad:
            return incompatible(
                f"nvcc of CUDA {version} cannot compile for {gpu.title}",
                fit,
                evidence=(evidence_of(f"toolkit in {toolkit.path}", toolkit, "version"), *who),
                fixes=_other_toolkit(facts),
                worst="warn",
            )
        # A target serves the GPUs of its major version with no older minor one.
        served = any(each.major == capability.major and each.minor <= capability.minor for each in targets)
        if toolkit.targets and targets and not served:
            return warning(
                title=f"nvcc does not compile for {gpu.title} ({capability.sm})",
                message=f"Its list of targets ends at {toolkit.targets[-1]} and begins at {toolkit.targets[0]}.",
                evidence=(
                    evidence_of("targets of nvcc", toolkit, "targets"),
                    evidence_of(gpu.title, gpu, "compute_capability"),
                    *who,
                ),
                fixes=_other_toolkit(facts),
            )
    return None


@rule(layer="framework", remedy=_other_toolkit)
def toolkit_missing(_environment: Environment, facts: Facts) -> Outcome | None:
    """An installed package compiles CUDA code, but there is no CUDA toolkit."""
    toolkits, compiling = facts.snapshot.toolkits, _compiling(facts)
    if not compiling or toolkits is None or not toolkits.complete:
        return None
    compilers = [each for each in toolkits.items if each.nvcc]
    # A build looks where CUDA_HOME and PATH lead, else in the usual place.
    off = [each for each in compilers if each.on_path is False and each.cuda_home is False]
    if len(off) < len(compilers) or any(_USUAL in (each.path, *each.aliases) for each in off):
        return None
    title, fixes = f"No CUDA toolkit to compile operations of {compiling[0]}", _other_toolkit(facts)
    if off:
        title = f"No variable leads {compiling[0]} to the CUDA toolkit in {off[0].path}"
        fixes = (Fix(f"Let builds find it: export CUDA_HOME={off[0].path}"),)
    text = "It works as long as nothing has to be compiled."
    return note(title=title, message=text, evidence=(_compiling_packages(facts),), fixes=fixes)


@rule(layer="framework", remedy=_other_toolkit)
def toolkit_differs_from_build(_environment: Environment, facts: Facts) -> Outcome | None:
    """The CUDA toolkit and PyTorch have different CUDA major versions."""
    toolkit = _chosen(facts)
    torch = facts.framework("torch")
    if torch and (found := _compiled_with_another(torch, facts)):
        return found
    version = CudaVersion.parse(toolkit.version if toolkit else None)
    built = CudaVersion.parse(torch.cuda if torch else None)
    if toolkit is None or torch is None or version is None or built is None or version.major == built.major:
        return None
    compiling = _compiling(facts)
    if not compiling and not _build_fails(facts):
        return None
    who = compiling[0] if compiling else "the build"
    strict = _build_fails(facts) or any(facts.matrix.has_trait(name, "toolkit-of-torch") for name in compiling)
    return Outcome(
        status="warn" if strict else "note",
        title=f"CUDA toolkit {version} does not match PyTorch, built for CUDA {built}",
        message=f"{who} compiles on this machine, with {toolkit.nvcc or toolkit.path}.",
        evidence=(
            evidence_of(f"toolkit in {toolkit.path}", toolkit, "version"),
            evidence_of(f"{torch.title} was built with", torch, "cuda"),
            *((_compiling_packages(facts),) if compiling else ()),
        ),
        fixes=_other_toolkit(facts),
    )


def _compiled_with_another(torch: Framework, facts: Facts) -> Outcome | None:
    """The finding that an extension was compiled with a CUDA for which this PyTorch is not built."""
    # The CUDAs that a wheel of this version may be for; conda's channels have builds of their own.
    row, possible = torch_row(facts.matrix, torch.version or ""), []
    if torch.cuda:
        possible = [torch.cuda]
    elif row and row.all_builds and "conda" not in (torch.path or ""):
        possible = [build.cuda for build in row.builds]
        if row.tagged and row.default_cuda and "+" not in (torch.version or ""):
            possible = [row.default_cuda]
    known = [cuda for text in possible if (cuda := CudaVersion.parse(text))]
    for extension in facts.frameworks:
        pasted = extension.extends == "torch" and extension.source_of("cuda") == PASTED
        cuda = CudaVersion.parse(extension.cuda if pasted else None)
        if cuda is None or not known:
            continue
        # Code of both runs in one process: one runtime serves a major version, of old ones a minor one.
        if any(cuda == built or (cuda.major == built.major and minor_compatible(cuda)) for built in known):
            continue
        # An extension without code for a GPU is at fault whatever compiled it.
        code, gpus = code_targets(extension), facts.gpus_with_capability
        if code and any(code_runs_on(facts.matrix, code, each, driver_cuda=None).bad for _, each in gpus):
            continue
        return Outcome(
            status="fail" if facts.snapshot.observed_errors else "warn",
            title=f"{extension.name} was compiled with CUDA {cuda}, PyTorch was not",
            message=f"{torch.title} is built for CUDA {' or '.join(dict.fromkeys(map(str, known)))}.",
            evidence=(
                evidence_of(f"compiler of {extension.name}", extension, "cuda"),
                evidence_of("torch", torch, "version") if torch.version else evidence_of("torch: CUDA", torch, "cuda"),
            ),
            fixes=_other_toolkit(facts),
        )
    return None


def _compiling_packages(facts: Facts) -> Evidence:
    return Evidence("compiles on this machine", ", ".join(_compiling(facts)), "wheel metadata")
