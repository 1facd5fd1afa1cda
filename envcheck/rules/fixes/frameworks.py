"""Which build a fix installs, one that this driver, these GPUs and this Python run, and the commands that do it.

All fixes that name a version choose it here: among the rows of the matrix, and among what the installed metadata asks
for. Where neither says enough, the requirement has no bounds and the installer chooses.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable

import msgspec

from envcheck.compat.package_needs import admits, requirement_name
from envcheck.compat.wheels import is_published, published
from envcheck.knowledge.error_lines import matches_fragment, named_by
from envcheck.knowledge.relations.torch import builds_that_fit, tag_of
from envcheck.knowledge.specifier import numbers_in, parse_version, speaks_of
from envcheck.model.base import PASTED
from envcheck.model.checks import Fix
from envcheck.model.snapshot import Distribution, Framework
from envcheck.model.versions import CudaVersion
from envcheck.rules.api import Facts
from envcheck.rules.facts.frameworks import in_one_folder
from envcheck.rules.facts.library_names import cuda_of_wheel, install_same_files, shares_its_folder
from envcheck.rules.fixes.install import How, conda_command, install, is_conda_package
from envcheck.rules.fixes.releases import has_code, runs_here
from envcheck.text.lazy import lazy_pattern

_VERSION = lazy_pattern(r"[0-9][0-9A-Za-z.]{0,40}")


class TorchChoice(msgspec.Struct, frozen=True):
    """A build of PyTorch to install."""

    version: str
    tag: str  # Name of PyTorch's index for the build's CUDA: ``cuNNN``


def same_version(framework: Framework) -> str:
    """``==`` and the installed release, without its local tag; empty where that is not a plain version."""
    version = (framework.version or "").partition("+")[0]
    return f"=={version}" if _VERSION.fullmatch(version) else ""


def torch_build(facts: Facts, framework: Framework | None = None, major: int | None = None) -> TorchChoice | None:
    """The build of PyTorch with native code for all GPUs that the driver runs, if wanted of one CUDA major; None when
    the matrix knows none.

    The installed release is kept where it has such a build, else the newest release that has one is chosen. Of its
    builds, the newest that the driver supports without minor-version compatibility comes first.
    """
    if framework is not None and framework.name != "torch":
        return None
    gpus = list(dict.fromkeys(capability for _, capability in facts.gpus_with_capability))
    for version in dict.fromkeys((framework.version if framework else None, None)):
        # ``runs`` knows more of the driver than its release, which is why the relation is not given one.
        fitting = builds_that_fit(facts.matrix, version, gpus, None, facts.driver_os, facts.python, facts.processor)
        builds = ((row, CudaVersion.parse(build.cuda)) for row, build in fitting)
        wanted = ((row, cuda) for row, cuda in builds if cuda and major in (None, cuda.major))
        runnable = [(row, cuda) for row, cuda in wanted if facts.runs_builds_for(cuda)]
        if runnable:
            row = runnable[0][0]
            versions = [cuda for other, cuda in runnable if other is row]
            # Not one for which no torchvision is known to be built, where torchvision is installed.
            beside = [name for name in facts.matrix.names_with("cuda-of-torch") if facts.installed(name)]
            tags = {cuda: tag_of(str(cuda)) for cuda in versions}
            whole = [cuda for cuda in tags if all(_companion(each, row.version, tags[cuda], facts) for each in beside)]
            versions = whole or versions
            # Of an unknown driver the oldest CUDA that has code for the GPUs asks the least.
            other = versions[-1] if gpus and facts.supported_cuda is None else versions[0]
            best = next((cuda for cuda in versions if facts.supports_natively(cuda)), other)
            return TorchChoice(row.version, tag_of(str(best)))
    return None


def newest_extra(extra: re.Pattern[str], lines: Iterable[str], facts: Facts) -> str | None:
    """The newest CUDA major with an extra in these requirement lines that the driver runs and that serves the GPUs."""
    majors = sorted({int(match[1]) for line in lines if (match := extra.search(line))}, reverse=True)
    return next((str(each) for each in majors if suits(CudaVersion(each, 0), facts)), None)


def suits(cuda: CudaVersion, facts: Facts) -> bool:
    return facts.runs_builds_for(cuda) and not facts.unserved_gpus(cuda)


INDEX = "https://download.pytorch.org/whl/"
SELECTOR = "https://pytorch.org/get-started/locally/"
_FOR_JETSON = "https://docs.nvidia.com/deeplearning/frameworks/install-pytorch-jetson-platform/index.html"

_EXACT = lazy_pattern(r"==[0-9.]+")


def install_fitting_build(
    facts: Facts, framework: Framework | None = None, major: int | None = None
) -> tuple[Fix, ...]:
    """Commands that install a build for this driver and these GPUs; a pointer to PyTorch's page where none is known."""
    choice = torch_build(facts, framework, major)
    if facts.on_tegra and (choice is None or not facts.usable_gpus):
        return (Fix(f"Install NVIDIA's build of PyTorch for this JetPack: {_FOR_JETSON}"),)
    if choice is None:
        # Of one CUDA major no build runs here, which PyTorch's page does not change.
        return () if major else (Fix(f"Choose a CUDA build of PyTorch for this driver and GPU: {SELECTOR}"),)
    # Of an unknown machine and release both: the older CUDA for older drivers, the newer for the newest GPUs.
    known = major or facts.supported_cuda or facts.usable_gpus or (framework and framework.version)
    older = None if known else torch_build(facts, framework, int(choice.tag[2:-1]) - 1)
    return (*(_install(older, facts) if older else ()), *_install(choice, facts))


def _install(choice: TorchChoice, facts: Facts) -> tuple[Fix, ...]:
    environment, cuda = facts.environment, CudaVersion.from_tag(choice.tag)
    driver = facts.supported_cuda is not None
    known = [name for name, there in (("driver", driver), ("GPU", bool(facts.usable_gpus))) if there]
    fits = f", which fits this {' and '.join(known)}" if known else ""
    fits += "" if driver else f"; the driver must run CUDA {cuda}"
    task = f"Install torch {choice.version} built for {choice.tag}{fits}"
    # conda replaces what it installed, and in its own environment installs what is not there yet.
    torches = [each for each in facts.distributions if facts.matrix.has_trait(each.name, "distributes-torch")]
    if all(map(is_conda_package, torches)) if torches else environment.manager == "conda":
        command = conda_command(facts, ("pytorch-gpu", f"cuda-version={cuda}"))
        return (Fix(f"{task} (newest on conda-forge)", command=command),)
    managed = environment.externally_managed
    beside = [name for name in facts.matrix.names_with("on-torch-index") if facts.installed(name) and not managed]
    wanted, how = family_of_build(choice, beside, facts)
    cut = environment.source == PASTED and not environment.distributions_complete
    if cut and not ("torchvision" in beside or managed):
        wanted.append("torchvision")  # a pasted list is seldom complete, and a new PyTorch breaks an old torchvision
    clashing = conflicting_wheels(facts, str(cuda).partition(".")[0], ("torch",))
    # What is installed again comes without what it requires, which the removal takes files from.
    wanted += [f"{each.name}=={each.version}" for each in clashing[1] if how.again and not managed]
    removed = () if managed else [each.name for both in clashing for each in both]
    how = msgspec.structs.replace(how, risk="replaces the installed torch and what it pins")
    return install(facts, wanted, task, how, remove=removed)


def family_of_build(choice: TorchChoice, names: Iterable[str], facts: Facts) -> tuple[list[str], How]:
    """The requirements of a build of PyTorch and of the packages that are released with it, and how to install them."""
    labelled = facts.processor == "x86_64"
    # The label selects the exact build: without it, an installer accepts any installed build of that version.
    label = f"+{choice.tag}" if labelled else ""
    wanted = [f"torch=={choice.version}{label}"]
    for name in names:
        bounds = _companion(name, choice.version, choice.tag, facts) or facts.bounds_for(name, "torch", choice.version)
        has_label = _EXACT.fullmatch(bounds) and facts.matrix.has_trait(name, "cuda-of-torch")
        wanted.append(f"{name}{bounds}{label if has_label else ''}")
    return wanted, How(index=f"{INDEX}{choice.tag}", torch_backend=choice.tag, again=not labelled)


def _companion(name: str, torch: str, tag: str, facts: Facts) -> str | None:
    """The newest release of a package that goes with this PyTorch and that is known to be built for the same CUDA, as
    bounds; where builds of none are known, the newest that goes with it.
    """
    rows = [row for row in facts.matrix.rows_of(name) if row.name == name and row.build]
    built = [row for row in rows if admits(row.needs.get("torch", ""), torch) is True]
    of_tag = [row.versions for row in built if row.build == tag]
    return of_tag[-1] if of_tag else None if built else facts.bounds_for(name, "torch", torch)


def conflicting_wheels(
    facts: Facts, major: str, owners: Collection[str], brought: Collection[str] = ()
) -> tuple[tuple[Distribution, ...], tuple[Distribution, ...]]:
    """NVIDIA's wheels for other CUDA majors that only ``owners`` require and that share a folder, or that are of
    ``brought``; and those for ``major`` in the same folder, which lose their files when the others are removed.
    """
    frameworks = (each for each in facts.frameworks if each.name not in owners)
    needed = {requirement_name(line) for each in frameworks for line in each.requires}
    there = [each for each in facts.distributions if not is_conda_package(each)]
    foreign = [each for each in there if shares_its_folder(each) and cuda_of_wheel(each) not in (None, major)]
    others = [each for each in there if each.name not in needed and (each.name in brought or each in foreign)]
    covered = [each for each in there if each not in others and any(install_same_files(each, _) for _ in others)]
    return tuple(others), tuple(covered)


_ORT_GPU = "onnxruntime-gpu"
_EXTRA_OF_JAX = lazy_pattern(r"jax-cuda(\d{2})-plugin\b.*\bextra\s*==\s*.cuda\1.")
HALF_OF_PLUGIN = lazy_pattern(r"jax-cuda(\d{2})-(plugin|pjrt)")
"""One of the two packages of a CUDA plug-in of JAX: its CUDA major, and which half it is."""
_EXTRA_OF_CUDA = lazy_pattern(r"\bextra\s*==\s*.cu(\d{2})\b")


def install_gpu_build(facts: Facts, framework: Framework | None = None) -> tuple[Fix, ...]:
    """Replace a build without CUDA by one for CUDA."""
    framework = framework or _named_program(("cpu-only-build",), facts)
    if framework is None:
        return (Fix(f"Install a build of the program for CUDA, as its own page says; for PyTorch: {SELECTOR}"),)
    if framework.name == "torch":
        return install_fitting_build(facts, framework)
    role = facts.matrix.role_of(framework.name)
    maker = _MAKERS.get(role.name) if role else None
    if any(facts.matrix.has_trait(framework.name, trait) for trait in ("cuda-of-torch", "on-torch-index")):
        maker = _torch_family
    task = f"Install a build of {facts.matrix.title_of(framework.name)} for CUDA"
    return (maker(facts, framework) if maker else ()) or (_documented(framework, task, facts),)


def install_other_release(facts: Facts, framework: Framework | None = None) -> tuple[Fix, ...]:
    """Replace a build that does not match the driver's or the GPU's generation."""
    framework = framework or _named_program(("gpu-code-missing", "driver-too-old"), facts)
    gpus = " and ".join(dict.fromkeys(gpu.compute_capability for gpu in facts.usable_gpus if gpu.compute_capability))
    driver = facts.supported_cuda
    if framework is not None and framework.name == "torch" and (gpus or driver):
        return install_fitting_build(facts, framework)
    whose = f"a release of {facts.matrix.title_of(framework.name)}" if framework else "a build of the program"
    cuda = f"CUDA {driver} or older, which the driver runs" if driver else "a CUDA that the driver runs"
    task = f"Install {whose} for {f'compute capability {gpus}' if gpus else 'this GPU'} and for {cuda}"
    if not (gpus and driver):
        task += "; nvidia-smi tells which"
    if framework is None or framework.name == "torch":
        return (Fix(f"{task}{'' if framework else '; for PyTorch'}: {SELECTOR}"),)
    own, role = CudaVersion.parse(framework.cuda), facts.matrix.role_of(framework.name)
    chooses = role is not None and role.name in _CHOOSE_CUDA
    if role and own and chooses and not suits(own, facts) and (made := _MAKERS[role.name](facts, framework)):
        return made
    listing = published(facts.matrix, framework.name) if (gpus or driver) and not chooses else ()
    least = numbers_in(framework.version or "")[:1]  # programs are written for one major version
    later = (each for each in reversed(listing) if each.numbers[:1] >= least)
    fits = next((each for each in later if runs_here(framework.name, each, facts)), None)
    refused = own is not None and driver is not None and not facts.runs_builds_for(own)
    bounds = f"=={fits}" if fits else facts.bounds_for(framework.name, "cuda", str(driver)) if refused else ""
    if bounds and admits(bounds, framework.version or "") is not True:
        if fits and role and role.name in _MAKERS:
            return _MAKERS[role.name](facts, msgspec.structs.replace(framework, version=str(fits)))
        return install(facts, (f"{framework.name}{bounds}",), f"{task.partition(';')[0]}: the newest is {bounds}")
    if gpus and {has_code(framework.name, each, facts) for each in listing} in ({False}, {False, None}):
        text = f"No release of {facts.matrix.title_of(framework.name)} has code for compute capability {gpus}"
        return (Fix(f"{text}: use a newer GPU, or another program"),)
    return (_documented(framework, task, facts),)


def _named_program(problems: Collection[str], facts: Facts) -> Framework | None:
    """The program whose line names one of the problems, else PyTorch or the only framework that is spoken of."""
    there = [each for each in facts.frameworks if facts.is_main_framework(each)]
    torch = facts.framework("torch") or (there[0] if len(there) == 1 else None)
    for error in facts.snapshot.observed_errors:
        line = named_by(error.text)
        if line is not None and line.problem in problems:
            if name := line.program_of(error.text):
                return Framework(source=error.source, name=name)
            torch = torch or (Framework(name="torch") if matches_fragment("pytorch-speaks", error.text) else None)
    return torch


def _documented(framework: Framework, task: str, facts: Facts) -> Fix:
    """The task, with the framework's page on installing it."""
    rows = (row for row in facts.matrix.products if framework.name.startswith(row.frameworks))
    page = next(iter(facts.matrix.cite(*rows)), None)
    return Fix(f"{task}: {page.address}" if page else task)


def _torch_family(facts: Facts, framework: Framework) -> tuple[Fix, ...]:
    """From the index for the CUDA version of the installed PyTorch."""
    torch = facts.framework("torch")
    cuda = CudaVersion.parse(torch.cuda) if torch else None
    if cuda is None:
        return install_fitting_build(facts, torch)
    # Of the builds for its CUDA major the newest is taken, where rows name builds, and PyTorch's own is not among them.
    rows, version = facts.matrix.rows_of(framework.name), parse_version(framework.version or "")
    own_rows = [row for row in rows if row.name == framework.name and row.build]
    builds = [row for row in own_rows if version is not None and speaks_of(row.versions, version) == "all"]
    known = sorted(own for row in builds if (own := CudaVersion.parse(row.cuda)) and own.major == cuda.major)
    best = cuda if cuda in known or not known else known[-1]
    tag, like = f"cu{best.major}{best.minor}", "like torch" if best == cuda else f"for torch of {cuda}"
    text = f"Install {framework.title.partition('+')[0]} built for {tag}, {like}"
    wanted = f"{framework.name}{same_version(framework)}"
    return install(facts, (wanted,), text, How(index=f"{INDEX}{tag}", alone=True, again=True))


def _onnxruntime(facts: Facts, framework: Framework) -> tuple[Fix, ...]:
    """The GPU package instead of all others: they share one folder, and the one installed last overwrites the rest."""
    there = tuple(dist.name for dist in in_one_folder("onnxruntime", facts))
    if facts.snapshot.judged_environment and not facts.environment.distributions_complete:
        there = tuple(dict.fromkeys((*there, framework.name)))  # the text may leave it out
    # The installed GPU package where it runs here, else the newest release that does; without a pin where that is the
    # newest of all.
    own, listing = facts.installed(_ORT_GPU), published(facts.matrix, _ORT_GPU)
    version = parse_version(own.version) if own else None
    wanted = f"{_ORT_GPU}=={version}"
    if version is None or not runs_here(_ORT_GPU, version, facts):
        fits = next((each for each in reversed(listing) if runs_here(_ORT_GPU, each, facts)), None)
        wanted = f"{_ORT_GPU}[cuda,cudnn]{f'=={fits}' if fits and fits != listing[-1] else ''}"
    text = f"Install {wanted} in place of {framework.name}"
    if wanted.endswith("]"):  # the newest release; older ones may lack the call
        text += "; where CUDA's libraries come from wheels, call onnxruntime.preload_dlls() before the first session"
    return install(facts, (wanted,), text, How(again=True), remove=there)


class PluginChoice(msgspec.Struct, frozen=True):
    """How one of JAX's CUDA plug-ins stays, or comes, alone."""

    major: str
    removed: tuple[str, ...]
    again: tuple[str, ...]  # Pins of NVIDIA's wheels for its CUDA that the removal takes files from, or all of them
    needed: bool  # Whether another framework needs something of what should be removed


def keep_plugin(major: str, facts: Facts) -> PluginChoice:
    """What goes with the plug-ins for other CUDA majors: the libraries that they brought and nothing else needs."""
    lines: dict[bool, set[str]] = {True: set(), False: set()}
    plugins: dict[str, None] = {}
    for each in facts.distributions:
        if match := HALF_OF_PLUGIN.fullmatch(each.name):
            lines[match[1] == major] |= {requirement_name(line) for line in each.requires or ()}
            plugins |= {} if match[1] == major else {each.name: None}
    brought = {name for name in lines[False] - lines[True] if name.startswith("nvidia-")}
    owners = [each.name for each in facts.frameworks if each.name in plugins or each.name == "jax"]
    others, covered = conflicting_wheels(facts, major, owners, brought) if plugins else ((), ())
    left = brought - {each.name for each in others}
    removed = (*plugins, *(each.name for each in (*others, *covered)))
    again = tuple(f"{each.name}=={each.version}" for each in covered)
    return PluginChoice(major, removed, again, any(each.name in left for each in facts.distributions))


def install_jax_for(major: str, facts: Facts) -> tuple[Fix, ...]:
    """The CUDA plug-in of the installed JAX for this CUDA major, in place of any other; nothing where it has none."""
    jax = facts.framework("jax")
    if jax is None or f"jax-cuda{major}-plugin" not in map(requirement_name, jax.requires):
        return ()
    way = keep_plugin(major, facts)
    wanted = (f"jax[cuda{major}]{same_version(jax)}", *way.again)
    return install(facts, wanted, f"Install JAX's plug-in for CUDA {major}", remove=way.removed)


def _jax(facts: Facts, framework: Framework) -> tuple[Fix, ...]:
    """The newest CUDA plug-in that this release supports and the driver runs."""
    fitting = newest_extra(_EXTRA_OF_JAX, (facts.framework("jax") or framework).requires, facts)
    return install_jax_for(fitting, facts) if fitting else ()


def _tensorflow(facts: Facts, framework: Framework) -> tuple[Fix, ...]:
    """TensorFlow's own package with the extra that installs the CUDA libraries."""
    there = tuple(dist.name for dist in in_one_folder("tensorflow", facts))
    wanted = f"tensorflow[and-cuda]{same_version(framework)}"
    return install(facts, (wanted,), f"Install {wanted} in place of {framework.name}", How(again=True), remove=there)


def _cupy(facts: Facts, framework: Framework) -> tuple[Fix, ...]:
    """The package for the newest CUDA that suits, in the installed release where it has that."""
    version = parse_version(framework.version or "")
    majors = sorted({each.major for each in facts.matrix.cuda_rows if suits(CudaVersion(each.major, 0), facts)})
    for name in (f"cupy-cuda{major}x" for major in reversed(majors)):
        if published(facts.matrix, name):
            same = same_version(framework) if version and is_published(facts.matrix, name, version) else ""
            there = tuple(dist.name for dist in in_one_folder("cupy", facts))
            return install(facts, (f"{name}{same}",), f"Install {name} in place of {framework.name}", remove=there)
    return ()


def _numba_cuda(facts: Facts, framework: Framework) -> tuple[Fix, ...]:
    """The newest extra that the driver runs: it brings the compilers, beside which newer ones would be found first."""
    own = (each for each in facts.distributions if each.name == framework.name)
    fitting = newest_extra(_EXTRA_OF_CUDA, (line for each in own for line in each.requires or ()), facts)
    if not fitting:
        return ()
    owners = (each.owner.partition("==") for each in framework.loads or () if each.owner)
    newer = {name for name, _, version in owners if numbers_in(version)[:1] > (int(fitting),)}
    others, _ = conflicting_wheels(facts, fitting, (framework.name, framework.extends or ""), newer)
    text = f"Install the compilers of CUDA {fitting} that {framework.title} needs"
    wanted = f"{framework.name}[cu{fitting}]{same_version(framework)}"
    return install(facts, (wanted,), text, remove=[each.name for each in others])


Maker = Callable[[Facts, Framework], tuple[Fix, ...]]
_MAKERS: dict[str, Maker] = {
    "onnxruntime": _onnxruntime,
    "cupy": _cupy,
    "jax": _jax,
    "tensorflow": _tensorflow,
    "numba-cuda": _numba_cuda,
}
"""By the name of the framework's role."""
_CHOOSE_CUDA = ("onnxruntime", "jax", "cupy", "numba-cuda")
"""The roles whose packages are there for several CUDA majors, of which one is chosen that the driver runs."""
