"""Packages whose files differ from what was installed: which frameworks need them, and how severe it is."""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from envcheck.compat.package_needs import NOT_TO_RUN, bounds_on, requirement_name
from envcheck.model.checks import Evidence
from envcheck.model.snapshot import DamagedFile, Distribution, Environment, Framework
from envcheck.rules.api import Facts
from envcheck.rules.facts.library_names import family_of_wheel
from envcheck.text.lazy import lazy_pattern

FOLLOWS_FROM_FILES = (
    "cpu-only-build", "cuda-library-missing", "cuda-library-too-old", "cuda-major-mismatch", "cudnn-major-mismatch",
    "cudnn-missing", "cudnn-mixed-copies", "cudnn-too-old", "extension-binary-missing",
    "extension-built-for-other-torch", "framework-cannot-use-gpu", "framework-import-fails", "gpu-code-missing",
    "jax-plugin-mismatch", "library-lacks-symbols", "library-not-found", "nccl-missing", "nccl-version-mismatch",
    "numpy-abi-mismatch", "nvjitlink-mismatch", "package-requirement-broken", "requirement-broken",
    "tensorrt-missing", "torch-family-mismatch",
)  # fmt: skip
"""Rules whose findings about a framework are consequences of damaged, overwritten or redirected files."""

_SHOWN = 3
_CODE = lazy_pattern(r"\.so(?:\.[0-9.]*)?$|\.bc$|/bin/[^/]+$")
_OF_A_SITE = lazy_pattern(
    r"(?:_?version|__version__|__config__|_config|_?build_info|git_version|sitecustomize|usercustomize)\.py$"
)
"""Modules that packagers add to images; they contain only data."""
_PACKAGES = lazy_pattern(r".*/(?:site|dist)-packages/")
_EMPTY = ("0 bytes", "sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU")  # How a list records an empty file


class DamagedPackage(msgspec.Struct, frozen=True):
    """An installed package and its differing files."""

    distribution: Distribution
    files: tuple[DamagedFile, ...]  # The worst first
    needed_by: str = ""  # A framework that is it, or that requires it, directly or through others; empty: none does
    frameworks: tuple[str, ...] = ()  # All that are it or require it
    fatal: bool = False  # Whether that framework cannot be imported so, or its machine code was overwritten
    harmless: bool = False
    """Whether all that differs are files that images are often made with: data, stripped libraries, versions."""

    @property
    def title(self) -> str:
        """``numpy 2.1 is damaged: 44 files are missing``."""
        if self.files[0].kind == "foreign" and self.files[0].problem:
            own = f"{self.distribution.name[:30]} {self.distribution.version[:20]}"
            return f"{own} {self.files[0].problem.partition(' ')[2]}"
        does = "is damaged" if self.fatal else "was changed after installation"
        if all(file.as_published for file in self.files):
            does = "differs from its own list of files"
        first = self.files[0]
        name = posixpath.basename(first.path)[:40]
        missing = sum(file.kind == "missing" for file in self.files)
        others = len(self.files) - missing
        also = f", {others} more {'differs' if others == 1 else 'differ'}" if others else ""
        if missing > 1:
            what = f"{missing} files are missing{also}"
        elif first.kind == "missing":
            what = f"{name} is missing{also}"
        elif first.found == _EMPTY[0]:
            what = f"{name} is empty"
        elif first.problem:
            is_program = posixpath.dirname(first.path).endswith("/bin")
            what = f"{name} cannot be {'loaded' if _is_code(first) else 'run' if is_program else 'imported'}"
        else:
            what = f"{name} differs" if len(self.files) == 1 else f"{len(self.files)} files differ"
        return f"{self.distribution.name[:30]} {self.distribution.version[:20]} {does}: {what}"

    @property
    def summary(self) -> str:
        """``numpy 2.1, which cupy requires: numpy/__init__.py is missing``."""
        own = self.distribution.name
        required = f", which {self.needed_by} requires" if self.needed_by not in ("", own) else ""
        shown = "; ".join(
            dict.fromkeys(f"{_PACKAGES.split(file.path)[-1]} {_state(file)}" for file in self.files[:_SHOWN])
        )
        more = f"; and {len(self.files) - _SHOWN} more files" if len(self.files) > _SHOWN else ""
        return f"{own} {self.distribution.version}{required}: {shown}{more}"

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """The files, as in their package's list and as on disk."""
        found = []
        for file in self.files[:_SHOWN]:
            recorded = f", recorded: {file.recorded}" if file.recorded else ""
            there = f", found: {file.found}" if file.found else ""
            found.append(Evidence(file.path, f"{_state(file)}{recorded}{there}"[:300], file.source))
        return tuple(found)


def damaged_packages(facts: Facts) -> tuple[DamagedPackage, ...]:
    """Packages whose files differ in presence, size or hash, the worst first; none if they were not checked."""
    # What was compared by size first: a library of another length was made so by somebody, and its hash says less.
    listed = {(file.package, file.path): file for file in _listed(facts)}
    claimed = Counter(path for _, path in listed)
    by_package: dict[str, dict[str, DamagedFile]] = {}
    for file in listed.values():
        by_package.setdefault(file.package, {}).setdefault(file.path, file)
    if not by_package:
        return ()
    # The frameworks that need a distribution, by its name, from requirements without extras. A plug-in that provides
    # the GPU for a framework belongs to it, as do NVIDIA's wheels of an extra.
    needed: dict[str, list[Framework]] = {}
    for framework in facts.frameworks:
        base = facts.framework(framework.extends) if facts.provides_gpu_support(framework) else None
        queue = [framework.name]
        for name in queue:
            frameworks = needed.setdefault(name, [])
            frameworks += [each for each in (framework, base) if each is not None and each not in frameworks]
            lines = facts.packages[name].requires if name in facts.packages else None
            there = [each for each in map(requirement_name, lines or ()) if each in facts.packages]
            for each in there:
                if each not in queue and (
                    bounds_on(lines or (), each, facts.markers) is not None or family_of_wheel(each)
                ):
                    queue.append(each)
    found = [
        _package(owner, tuple(files.values()), needed.get(name, ()), claimed)
        for name, files in by_package.items()
        if (owner := _owner(next(iter(files.values())), facts))
    ]
    return tuple(sorted(found, key=lambda each: (not each.fatal, each.harmless, not each.needed_by)))


def _listed(facts: Facts) -> Iterator[DamagedFile]:
    """Each differing file; of two records about one file, the later one has more details."""
    for looked in (facts.environment.verified, facts.environment.shipped):
        yield from looked.damaged if looked else ()


def owner_of(path: str | None, facts: Facts) -> Distribution | None:
    """The installed package whose file this is, if it is known to differ; of one that is gone, by its name too."""
    lost = (file for file in _listed(facts) if file.kind == "missing" and posixpath.basename(file.path) == path)
    found = next((file for file in _listed(facts) if file.path == path), None) or next(lost, None)
    return _owner(found, facts) if found else None


def is_damaged(distribution: Distribution, facts: Facts) -> bool:
    """Whether files of an installed package, or its records, are known to differ."""
    files = {file.package for file in _listed(facts)}
    return distribution.name in files or distribution.path in {
        record.path for record in facts.environment.damaged or ()
    }


def _owner(file: DamagedFile, facts: Facts) -> Distribution | None:
    """The distribution that lists the file."""
    path = file.source.removeprefix("file ").removesuffix("/RECORD")
    return next((each for each in facts.distributions if each.path == path), None)


def _package(
    distribution: Distribution,
    files: Sequence[DamagedFile],
    frameworks: Sequence[Framework],
    claimed: Mapping[str, int],
) -> DamagedPackage:
    # What breaks an import comes first, and of that what is gone.
    ordered = sorted(
        files,
        key=lambda file: (
            file.kind != "foreign",
            not _is_breaking(file),
            file.kind != "missing",
            _is_harmless(file),
            file.path.count("/"),
            file.path,
        ),
    )
    stopped = next((each for each in frameworks if not each.imported), None)
    by = stopped or next(iter(frameworks), None)
    runs = distribution.name not in NOT_TO_RUN
    # Machine code with the recorded size and other contents: a trial does not run all of a library.
    broken = by is not None and any(_is_code(file) and file.kind == "hash" for file in files)
    # A trial imports a framework, and not all of its parts: a lost module stops those that import it.
    modules = (each for each in files if each.kind == "missing" and each.path.endswith(".py"))
    lost = by is not None and any(map(_is_breaking, modules))
    fatal = runs and (broken or lost or (stopped is not None and any(map(_is_breaking, files))))
    refused = any(each.imported is False for each in frameworks)
    harmless = not fatal and all(
        file.problem is None
        and (
            (_is_harmless(file) and not (file.stripped and refused))
            or (file.kind != "missing" and not _is_code(file) and (claimed[file.path] > 1 or not runs))
        )
        for file in files
    )
    names = tuple(each.name for each in frameworks)
    return DamagedPackage(distribution, tuple(ordered), by.name if by else "", names, fatal, harmless)


def _is_breaking(file: DamagedFile) -> bool:
    """Whether using the file fails: it is missing, unusable, or machine code that was overwritten."""
    if file.kind == "foreign":
        return True
    if _is_code(file):
        return file.kind in ("missing", "hash") or file.problem is not None
    used = file.path.endswith((".py", ".bc")) or (file.kind == "missing" and _CODE.search(file.path))
    return bool(used) and not file.aside and (file.kind == "missing" or file.problem is not None)


def _is_harmless(file: DamagedFile) -> bool:
    """Whether the change also occurs in working images: data, version files, stripped libraries; or was published."""
    if file.kind in ("missing", "content") or file.problem is not None:
        return False
    if file.as_published:
        return True
    if _CODE.search(file.path):
        return bool(file.stripped)
    return not file.path.endswith(".py") or file.recorded in _EMPTY or bool(_OF_A_SITE.search(file.path))


def _is_code(file: DamagedFile) -> bool:
    return ".so" in posixpath.basename(file.path)


def _state(file: DamagedFile) -> str:
    if file.kind == "missing":
        return f"is missing ({file.dead_link} is a dangling link)" if file.dead_link else "is missing"
    if file.problem and file.kind == "foreign":
        return file.problem.partition(" ")[2]
    if file.problem:
        return f"is damaged ({file.problem})"
    if file.kind == "size":
        return f"has {file.found} instead of {file.recorded}" + (" (stripped)" if file.stripped else "")
    return "differs from what was installed"


def compared(environment: Environment) -> str:
    """What was compared of the files, for the passing line; empty if nothing was."""
    looked = environment.verified or environment.shipped
    if looked is None or not looked.files:
        return ""
    rest = "" if looked.complete else ", others left out"
    return f"{looked.files:,} files checked by {'hash' if environment.verified else 'size'}{rest}"
