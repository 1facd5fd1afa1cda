"""The rules about the copy of a driver library that the loader takes."""

from typing import Any

import pytest

from envcheck.errors import UsageError
from envcheck.knowledge.load import load_matrix
from envcheck.model.checks import Scope
from envcheck.model.components import parse_components
from envcheck.model.snapshot import DriverLibrary, Framework, Listing, Snapshot
from envcheck.pipeline.assume import assume
from envcheck.pipeline.judging import check_request
from envcheck.pipeline.request import Request
from envcheck.rules.api import Facts
from envcheck.rules.fixes.libraries import show_loader_search
from tests.every import cases
from tests.rules.machines import (
    DOCKER,
    RELEASE,
    answered,
    but,
    cause,
    check_of,
    container_without_gpu,
    driver,
    judge,
    library,
    machine,
    said,
    statuses,
    variables,
    venv,
    with_venv,
    without_gpu,
)

CUDA, NVML, JIT = "libcuda.so.1", "libnvidia-ml.so.1", "libnvidia-ptxjitcompiler.so.1"
FOLDER = "/opt/old"
GOOD = tuple(library(name, RELEASE, found_as=(f"/lib/{name}",), found_by="default") for name in (CUDA, NVML, JIT))


def first(name: str = CUDA, **more: Any) -> DriverLibrary:
    """A file that LD_LIBRARY_PATH leads the loader to."""
    path = f"{FOLDER}/{name}"
    found = {"found_as": (path,), "found_by": "LD_LIBRARY_PATH", **more}
    return DriverLibrary(source=f"file {path}", path=path, soname=name, **found)


def with_first(found: DriverLibrary, *, path: str = FOLDER, **answers: Any) -> Snapshot:
    listing = Listing(items=(found, *GOOD), complete=True)
    return machine(driver=driver(libraries=listing, **answers), variables=variables(LD_LIBRARY_PATH=path))


def not_loaded(call: str, name: str, why: str) -> Any:
    return answered(call, -1, "LIBRARY_NOT_FOUND", text=f"{FOLDER}/{name}: {why}")


@cases(
    "why, words",
    ("it is empty", "file too short"),
    ("it is not an ELF file", "invalid ELF header"),
    ("it is a folder", "cannot read file data: Is a directory"),
)
@cases("seen", "by the file", "by the loader")
def test_a_libcuda_that_is_none_is_named_before_the_machine(why: str, words: str, seen: str) -> None:
    found = first(refused=why if seen == "by the file" else None)
    snapshot = with_first(found, cuda_init=not_loaded("cuInit", CUDA, words), cuda_devices=None, cuda_device_count=None)
    assert cause(snapshot) == "driver-library-unusable"
    check = check_of("driver-library-unusable", snapshot)
    assert f"{FOLDER}/{CUDA}" in check.message
    assert (why if seen == "by the file" else words) in check.message
    assert check.fixes[0].command == ("env", "-u", "LD_LIBRARY_PATH", "python")
    assert check_of("gpu-init-failed", snapshot).explained_by == check.id


@cases("name", CUDA, NVML)
@cases("wrong", {"refused": "it is empty"}, {"kind": "stub"})
def test_an_assumed_machine_keeps_what_a_variable_leads_to(name: str, wrong: dict[str, Any]) -> None:
    asked = parse_components("gpu==H100,driver==550.54.15")
    check = check_of("driver-library-unusable", assume(with_first(first(name, **wrong), path=f"/a:{FOLDER}"), asked))
    assert (check.status, check.fixes[0].command) == ("fail", ("env", "LD_LIBRARY_PATH=/a", "python"))
    assert statuses("driver-library-unusable", assume(machine(), asked)) == ()


OTHER = "535.54.03"
EMPTY = not_loaded("cuInit", CUDA, "file too short")
MISMATCH = answered("cuInit", 803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH")
NO_COMPAT = answered("cuInit", 804, "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE")
IN_ENV: dict[str, tuple[DriverLibrary, dict[str, Any]]] = {
    "driver-library-unusable": (first(refused="it is empty"), {"cuda_init": EMPTY}),
    "driver-library-mismatch": (first(version=OTHER, kind="driver"), {"cuda_init": MISMATCH}),
    "driver-compiler-mismatch": (first(JIT, version=OTHER, kind="driver"), {}),
    "forward-compat-unsupported": (first(version=OTHER, kind="driver"), {"cuda_init": NO_COMPAT}),
}
"""What LD_LIBRARY_PATH leads the loader to, and what CUDA then answers, by the rule that tells of it."""


@cases("by", "LD_LIBRARY_PATH", "LD_PRELOAD", "cache")
@pytest.mark.parametrize("rule", IN_ENV)
def test_what_a_variable_leads_to_is_in_the_scope_of_the_environment(rule: str, by: str) -> None:
    library, answers = IN_ENV[rule]
    snapshot = with_first(but(library, found_by=by), **answers)

    def told(*scopes: Scope) -> bool:
        found = [check for check in judge(snapshot, frozenset(scopes)) if check.rule == rule]
        return any(check.status in ("fail", "warn") for check in found)

    assert told("node", "container")
    assert told("env") == (by != "cache")


def test_a_usable_library_raises_no_question_about_the_machine_in_that_scope() -> None:
    found = judge(with_first(first(version=RELEASE, kind="driver")), frozenset({"env"}))
    assert not {check.rule for check in found} & IN_ENV.keys()


@pytest.mark.parametrize("rule", IN_ENV)
def test_such_a_rule_alone_can_be_asked_for(rule: str) -> None:
    check_request(Request(scopes=frozenset({"env"}), only=(rule,)))
    with pytest.raises(UsageError):
        check_request(Request(scopes=frozenset({"env"}), only=("driver-not-loaded",)))


@cases("about, module", (("jax",), "jax"), (("cupy-cuda12x",), "cupy"), ((), "torch"))
def test_the_loader_is_watched_with_the_framework_in_question(about: tuple[str, ...], module: str) -> None:
    names = ("cupy-cuda12x", "torch", "jax")
    snapshot = with_venv(machine(), venv(*(Framework(source="file", name=name, version="1.0") for name in names)))
    facts = Facts(snapshot=snapshot, matrix=load_matrix(), about=about)
    assert show_loader_search(facts)[0].command[-1] == f"import {module}"


UNUSABLE, COMPILER = "driver-library-unusable", "driver-compiler-mismatch"
STARTS_NOT: dict[str, Any] = {"cuda_init": None, "cuda_devices": None, "cuda_device_count": None}
CUT_OFF = "it is cut off: 40 of at least 90 bytes are there"
EMPTY_CUDA, STUB = (
    first(refused="it is empty"),
    answered("cuInit", 34, "CUDA_ERROR_STUB_LIBRARY", library=f"{FOLDER}/{CUDA}"),
)
NVML_STUB = answered("nvmlInit", 12, "LIBRARY_NOT_FOUND", library=f"{FOLDER}/{NVML}")
UNSET = ("env -u LD_LIBRARY_PATH python",)


def without_gpus(found: DriverLibrary) -> Snapshot:
    listing = Listing(items=(found,), complete=True)
    return but(without_gpu(), driver=driver(libraries=listing, cuda_init=None), variables=variables())


@cases("rule, about, there, expected",
    (UNUSABLE, "an empty NVML", with_first(first(NVML, refused="it is empty"), nvml=None), ("fail",)),
    (UNUSABLE, "an empty compiler", with_first(first(JIT, refused="it is empty")), ("warn",)),
    (COMPILER, "an older one", with_first(first(JIT, version=OTHER, kind="driver")),
     {"status": "warn", "fix": "env -u LD_LIBRARY_PATH python"}),
    (COMPILER, "the driver's", machine(), ()),
    (UNUSABLE, "a stub is named before the machine",
     with_first(first(kind="driver"), **{**STARTS_NOT, "cuda_init": STUB}),
     {"cause": UNUSABLE, "title": "…link-time stub…", "message": "…LD_LIBRARY_PATH selects…", "fixes": UNSET}),
    (UNUSABLE, "where the probe died of it, nothing was answered", with_first(first(refused=CUT_OFF), **STARTS_NOT),
     {"status": "fail"}),
    *((UNUSABLE, f"an NVML of which is said: {why}",
       with_first(first(NVML, refused=why), nvml=not_loaded("nvmlInit", NVML, "file too short")),
       {"status": "fail", "cause": UNUSABLE})
      for why in ("it is empty", "it is cut off: 1 of at least 2 bytes are there")),
    (UNUSABLE, "a stub of NVML", with_first(first(NVML), nvml=NVML_STUB), {"cause": UNUSABLE}),
    (UNUSABLE, "its folder alone is taken off the path, which has blanks",
     with_first(EMPTY_CUDA, path=f"/a:{FOLDER}/:/b c", cuda_init=None), {"fix": "env LD_LIBRARY_PATH=/a:/b c python"}),
    (UNUSABLE, "its folder alone is taken off the path",
     with_first(EMPTY_CUDA, path=f"/a:{FOLDER}/:/b", cuda_init=None), {"fix": "env LD_LIBRARY_PATH=/a:/b python"}),
    (UNUSABLE, "without a GPU a damaged file is told mildly", without_gpus(EMPTY_CUDA), ("warn",)),
    (UNUSABLE, "without a GPU a stub is not told", without_gpus(first(kind="stub")), ()),
    (UNUSABLE, "the list of the loader's cache",
     with_first(but(EMPTY_CUDA, found_by="cache", listed_in="/etc/ld.so.conf.d/old.conf"), cuda_init=None),
     {"text": f"Remove the line {FOLDER} from /etc/ld.so.conf.d/old.conf…", "fix": "sudo ldconfig"}),
    (UNUSABLE, "nothing comes first", machine(), ()),
    (UNUSABLE, "a stub to link with",
     with_first(first(kind="stub", found_as=(f"{FOLDER}/libcuda.so",)), nvml=answered("nvmlInit")), ()),
    (UNUSABLE, "the driver answers all the same", with_first(EMPTY_CUDA), ()),
    (UNUSABLE, "for another processor", with_first(first(machine="aarch64", found_as=())), ()),
    (UNUSABLE, "no GPU", without_gpu(), ()),
    (UNUSABLE, "a container without GPU", container_without_gpu(), ()),
    (UNUSABLE, "the place holder of an image is not blamed",
     but(with_first(first(found_by="default", refused="it is empty"), cuda_devices=None,
                    cuda_init=not_loaded("cuInit", CUDA, "No such file or directory")), platform=DOCKER), ()),
    ("driver-library-mismatch", "another release on the path",
     with_first(first(version=OTHER, kind="driver"), **{**STARTS_NOT, "cuda_init": MISMATCH}),
     {"cause": "driver-library-mismatch", "message": f"…{FOLDER}/{CUDA} by LD_LIBRARY_PATH…", "fixes": UNSET,
      "action": "none"}),
)  # fmt: skip
def test_what_rules_say(rule: str, about: str, there: Snapshot, expected: Any) -> None:
    assert said(rule, there, expected) == expected
