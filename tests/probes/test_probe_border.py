"""What every probe rests on: the checks of its tests, modules imported by name, and numbers in other people's files."""

import ast
import importlib.util
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from msgspec import inspect as shape

from envcheck.model.snapshot import Snapshot, frameworks_in, items_in
from probes.machine.kernel import parse_record
from tests.every import cases, tabled
from tests.probes.conftest import RunProbe
from tests.probes.environment_trees import Tree


@pytest.fixture(scope="module")
def border() -> ModuleType:
    spec = importlib.util.spec_from_file_location("probe_border", Path(__file__).with_name("conftest.py"))
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_unknown_keys_are_named_at_every_depth(border: ModuleType) -> None:
    fact = {
        "kernel": {"nvidia": {"laoded": True}, "device_nodes": [{"path": "/dev/nvidia0", "major": 195}]},
        "gpus": {"items": [{"pcie": {"gen": 5}}], "compelte": True},
        "plattform": {},
    }
    assert border.unknown_keys(fact, shape.type_info(Snapshot)) == [
        ".plattform", ".kernel.nvidia.laoded", ".kernel.device_nodes[0].major", ".gpus.compelte",
        ".gpus.items[0].pcie.gen",
    ]  # fmt: skip


def test_known_keys_and_free_dictionaries_are_left_alone(border: ModuleType) -> None:
    fact = {"variables": {"values": {"ANY_NAME": "1"}, "complete": True, "read": {"values": "process"}}}
    assert border.unknown_keys(fact, shape.type_info(Snapshot)) == []


def test_records_without_source_are_named(border: ModuleType) -> None:
    fact = {
        "kernel": {"source": "file", "nvidia": {"loaded": True}},
        "gpus": {"items": [{"source": "sysfs", "pcie": {"generation": 5}}], "complete": True},
    }
    assert border.unsourced(fact, shape.type_info(Snapshot)) == [".kernel.nvidia", ".gpus.items[0].pcie"]


# --- Numbers in other people's files --------------------------------------------------------------------------------
LONG = "9" * 5000
NO_NUMBER = "²"  # str.isdigit() says yes, int() refuses


@cases("number", LONG, NO_NUMBER, ids=["too long", "no number"])
def test_no_probe_fails_over_a_number_of_the_machine(number: str, tmp_path: Path, run_probe: RunProbe) -> None:
    tree = Tree(tmp_path)
    gpu = "/proc/driver/nvidia/gpus/0000:01:00.0/information"
    tree.file(gpu, f"Model: \t\t NVIDIA H100\nDevice Minor: \t {number}\n")
    tree.file("/proc/meminfo", f"MemTotal:       {number} kB\n")
    tree.file("/proc/mounts", f"shm /dev/shm tmpfs rw,size={number}k 0 0\n")
    tree.file("/proc/devices", f"Character devices:\n{number} nvidia-uvm\n195 nvidia\n\nBlock devices:\n")
    tree.file("/etc/passwd", f"someone:x:{number}:0::/:/bin/sh\nroot:x:0:0::/root:/bin/sh\n")
    tree.file("/etc/group", f"some:x:{number}:\n")
    tree.file(f"/dev/nvidia{number[:200]}")
    tree.file("/var/log/kern.log", f"[{number}.5] NVRM: Xid (PCI:0000:01:00): {number}, pid=1\n")
    for probe in ("platform", "kernel", "pci"):
        _, done = run_probe(probe, {"root": str(tmp_path)})
        assert done["status"] in ("ok", "absent"), (probe, done)


def test_no_probe_fails_over_a_number_of_an_environment(tmp_path: Path, run_probe: RunProbe) -> None:
    for version in (f"3.{LONG}", f"{LONG}.1", f"3.11.{LONG}", f"3.{NO_NUMBER}.1"):
        tree = Tree(tmp_path / str(len(list(tmp_path.iterdir()))))
        site = tree.venv("/a", tree.base("/usr"))
        tree.file("/a/pyvenv.cfg", f"home = /usr/bin\nversion = {version}\n")
        tree.torch(site)
        tree.file(f"{site}/torch-2.5.1.dist-info/RECORD", f"torch/__init__.py,,{NO_NUMBER}\ntorch/x.py,,{LONG}\n")
        snapshot, done = run_probe("environments", tree.view(python=["/a"]))
        assert done["status"] == "ok", done
        assert [each.name for each in frameworks_in(items_in(snapshot.environments)[0])] == ["torch"]


@cases("number", LONG, NO_NUMBER)
def test_a_kernel_message_at_no_time_is_read_without_one(number: str) -> None:
    assert parse_record(f"6,1,{number},-;a message\n") == (None, "a message")


# --- Modules that probes import by name, which no type checker follows: the name must lead to a file ----------------
ROOT = Path(__file__).resolve().parents[2]
FILES = sorted((ROOT / "probes").rglob("*.py"))


def by_name(source: str) -> Iterator[ast.Call]:
    """The calls of ``import_module`` with a relative name."""
    for node in ast.walk(ast.parse(source)) if "import_module" in source else ():
        called = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
        if isinstance(node, ast.Call) and called.endswith("import_module") and relative(node):
            yield node


def relative(node: ast.Call) -> str:
    """The relative name as far as it is written out; empty where it is none, or known only at run time."""
    first = node.args[0]
    formatted = isinstance(first, ast.JoinedStr)
    if isinstance(first, ast.JoinedStr):
        first = first.values[0]
    name = first.value if isinstance(first, ast.Constant) and isinstance(first.value, str) else ""
    if not name.startswith("."):
        return ""
    return name.rpartition(".")[0] if formatted else name  # f"..files.frameworks.{name}": the folder at least


def wrong(file: Path, source: str) -> list[str]:
    """Relative names that lead nowhere from ``file``, or that lack the package to start from."""
    found = []
    for node in by_name(source):
        name = relative(node)
        levels = len(name) - len(name.lstrip("."))
        place = file.parents[levels - 1].joinpath(*name[levels:].split("."))
        package = [ast.unparse(given) for given in (*node.args[1:], *(word.value for word in node.keywords))]
        if not (place.with_suffix(".py").is_file() or place.is_dir()) or package != ["__package__"]:
            found.append(ast.unparse(node))
    return found


def test_every_module_imported_by_name_is_there() -> None:
    sources = {file: file.read_text(encoding="utf-8") for file in FILES}
    assert {file.name for file, source in sources.items() if any(by_name(source))} >= {"numba.py", "triton.py"}
    assert {str(file.relative_to(ROOT)): bad for file, text in sources.items() if (bad := wrong(file, text))} == {}


@tabled
def test_a_wrong_name_is_found(call: str, right: bool) -> None:  # noqa: FBT001
    assert (wrong(ROOT / "probes" / "deep" / "triton.py", call) == []) is right
