"""Packages compiled against PyTorch: whether they match it, have their compiled parts, and see it when being built."""

from __future__ import annotations

from envcheck.checks import STATUSES, Fix
from envcheck.rules.api import Facts, FrameworkSubject, Outcome, evidence_of, never, passed, rule
from envcheck.rules.facts.frameworks import full_name
from envcheck.rules.facts.machine import may_have_gpus
from envcheck.rules.facts.trials import ran_on_gpu
from envcheck.rules.fixes.commands import pip_command
from envcheck.rules.fixes.install import How, install
from envcheck.rules.packages.beside_torch import misfit, packages_of, torch_of
from envcheck.rules.packages.torch import not_built_for
from envcheck.snapshot import Framework


def _match_or_compile(_facts: Facts) -> tuple[Fix, ...]:
    text = "Install the extension's release for the installed PyTorch, or compile it again"
    return (Fix(text=f"{text} (pip install --no-build-isolation --no-cache-dir --force-reinstall --no-deps NAME)"),)


@rule(
    layer="framework",
    per="framework",
    remedy=_match_or_compile,
    explains=("extension-binary-missing", "gpu-code-missing", "requirement-broken"),
)
def extension_built_for_other_torch(subject: FrameworkSubject, facts: Facts) -> Outcome | None:
    """An extension was compiled for another PyTorch.

    What it checks
        Checks that packages that are compiled against PyTorch (flash-attn, xformers, vLLM, DeepSpeed,
        apex, PyG …) match the installed one: by the symbols that their compiled parts need, by the
        PyTorch that their files or version labels name (`torch2.5`, `pt28`), by their metadata, or
        else by the known releases. A package with all symbols found and its version range met
        matches, whatever it was built with. A package without compiled parts (SGLang, Transformers …)
        that requires another release is a warning at most.

    Why it matters
        PyTorch's C++ interface changes with every release and with the C++ ABI of the build. An
        extension for another one fails on import ("undefined symbol: _ZN3c10…"), or programs skip it
        silently and run slower.

    How to fix
        Install the extension's release for the installed PyTorch, or compile it again (without pip's
        cache and without build isolation, so that it finds the installed PyTorch).

    Sources
        C++ extensions of PyTorch: https://docs.pytorch.org/docs/stable/cpp_extension.html
        FlashAttention, installation:
          https://github.com/Dao-AILab/flash-attention#installation-and-features
        xFormers, installation: https://github.com/facebookresearch/xformers#installing-xformers
        GCC, dual ABI: https://gcc.gnu.org/onlinedocs/libstdc++/manual/using_dual_abi.html
    """
    framework, torch = subject.framework, torch_of(subject)
    if torch is None or "torch" not in (framework.name, framework.extends):
        return None
    if torch.is_inferred("version"):
        return None  # another package pins this release: two packages' bounds prove no installation
    if facts.matrix.has_trait(framework.name, "released-with-torch"):
        return None
    packages = packages_of(subject, facts.matrix, released_with_it=False)
    wrong = [(each, found) for each in packages if (found := misfit(each, torch, facts))]
    if wrong:
        worst, _ = min(wrong, key=lambda pair: STATUSES.index(pair[1].status))
        how = "requires" if facts.matrix.has_trait(worst.name, "pure-python") else "was built for"
        return not_built_for(torch, wrong, facts, f"{how} another PyTorch")
    if framework.name == "torch" or framework.unresolved is None:
        return None
    evidence = (
        evidence_of("symbols that are missing", framework, "unresolved"),
        evidence_of("torch", torch, "version"),
    )
    return passed(f"{full_name(framework)} finds all symbols in torch {torch.version}", *evidence)


@rule(layer="framework", per="framework", remedy=_match_or_compile)
def extension_binary_missing(subject: FrameworkSubject, facts: Facts) -> Outcome | None:
    """The compiled part of an extension is missing.

    What it checks
        Checks that flash-attn, torchvision, vLLM, xFormers, bitsandbytes and Transformer Engine have
        their compiled files, and bitsandbytes one for PyTorch's CUDA.

    Why it matters
        The Python files alone may be importable or fall back to something slower; the first call of a
        kernel then fails ("No module named 'flash_attn_2_cuda'", "operator
        torchvision::nms does not exist").

    How to fix
        Install the package again: as a wheel for this PyTorch, CUDA and Python, or compiled on a
        machine with a CUDA toolkit (nvcc).

    Sources
        FlashAttention, installation:
          https://github.com/Dao-AILab/flash-attention#installation-and-features
        bitsandbytes, installation: https://huggingface.co/docs/bitsandbytes/main/en/installation
        xFormers, installation: https://github.com/facebookresearch/xformers#installing-xformers
    """
    framework = subject.framework
    needed = facts.matrix.has_trait(framework.name, "needs-compiled-parts")
    if framework.path is None or not (needed or facts.matrix.has_trait(framework.name, "loses-compiled-parts")):
        return None
    for_cuda = framework.problem if framework.problem and "libraries for CUDA" in framework.problem else None
    if framework.binaries and not for_cuda:
        return passed(
            f"{full_name(framework)} has its compiled files",
            evidence_of("compiled parts", framework, "binaries"),
        )
    if (framework.binaries is None and not for_cuda) or ran_on_gpu(framework):
        return None
    if framework.cpu_only and framework.name == "bitsandbytes" and not may_have_gpus(facts):
        return None
    what = for_cuda or f"no compiled file in or beside {framework.path}"
    field = "problem" if for_cuda else "binaries"
    return Outcome(
        status="fail" if needed else "warn",
        title=f"{full_name(framework)} lacks its compiled files",
        message=f"{full_name(framework)}: {what}.",
        evidence=(evidence_of(f"{framework.name}: {field}", framework, field), evidence_of("path", framework, "path")),
        decided_by="declared",
        fixes=_reinstall(framework, facts),
    )


def _reinstall(framework: Framework, facts: Facts) -> tuple[Fix, ...]:
    if framework.name == "bitsandbytes":
        text = "Install the newest release, which has libraries for more CUDA versions"
        return install(facts, (framework.name,), text, How(newest=True))
    public = (framework.version or "").partition("+")[0]
    compiled = facts.matrix.has_trait(framework.name, "compiled-by-pip")
    build = ("--no-cache-dir", *(("--no-build-isolation",) if compiled else ()))
    wanted = f"{framework.name}=={public}" if public else framework.name
    return install(facts, (wanted,), f"Install {framework.name} again", How(build=build, alone=True, again=True))


def _without_isolation(facts: Facts) -> tuple[Fix, ...]:
    return (
        Fix(
            text="Install PyTorch first, then the package without build isolation",
            command=pip_command(facts.environment, "install", "--no-build-isolation", "PACKAGE"),
        ),
        Fix(text="Or install a wheel of the package that is compiled for this PyTorch, CUDA and Python"),
    )


@rule(layer="framework", arises=never, remedy=_without_isolation)
def build_does_not_see_torch() -> None:
    """A build of an extension does not see PyTorch.

    What it checks
        Reads error lines of pip and uv: "No module named 'torch'" while a package is built.

    Why it matters
        pip and uv build packages in an isolated environment, which holds only what the package
        declares for its build. Extensions such as flash-attn or torch-scatter import PyTorch there
        without declaring it, so that the build stops although PyTorch is installed.

    How to fix
        Install PyTorch first, then the package with --no-build-isolation (uv: also
        no-build-isolation-package), or install a compiled wheel.

    Sources
        pip, build isolation: https://pip.pypa.io/en/stable/reference/build-system/
        FlashAttention, installation:
          https://github.com/Dao-AILab/flash-attention#installation-and-features
    """
