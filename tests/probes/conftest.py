"""Run a probe in this process and check that everything it sends fits the Snapshot.

``run_probe`` and ``build_root`` are for every probe's tests: the one calls ``collect`` as the child program would, the
other makes a small file system tree that stands for a machine. ``probed`` does both.
"""

import importlib
import json
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import inspect as shape

from envcheck.model.merge import merge
from envcheck.model.snapshot import Snapshot
from envcheck.text.toml import loads
from probes.common import tasks
from probes.common.out import Out
from probes.common.tree import Tree
from tests.probes.frameworks.framework_trees import Frameworks

ROOTS = Path(__file__).parent / "roots"


def unknown_keys(value: Any, kind: shape.Type, path: str = "") -> list[str]:
    """Paths of the keys in decoded JSON that the type does not have; msgspec passes over them in silence."""
    if isinstance(kind, shape.Metadata):
        kind = kind.type
    if isinstance(kind, shape.UnionType):
        members = [unknown_keys(value, member, path) for member in kind.types if _takes(member, value)]
        return min(members, key=len, default=[])
    if isinstance(kind, shape.StructType):
        fields = {field.encode_name: field.type for field in kind.fields}
        strange = [f"{path}.{key}" for key in value if key not in fields]
        known = [(key, item) for key, item in value.items() if key in fields]
        return strange + [bad for key, item in known for bad in unknown_keys(item, fields[key], f"{path}.{key}")]
    if isinstance(kind, shape.ListType | shape.VarTupleType):
        return [bad for i, item in enumerate(value) for bad in unknown_keys(item, kind.item_type, f"{path}[{i}]")]
    return []


def _takes(kind: shape.Type, value: Any) -> bool:
    if isinstance(kind, shape.StructType | shape.DictType):
        return isinstance(value, dict)
    if isinstance(kind, shape.ListType | shape.VarTupleType):
        return isinstance(value, list)
    return not isinstance(value, dict | list)


def unsourced(value: Any, kind: shape.Type, path: str = "") -> list[str]:
    """Paths of the records that do not say where they were read."""
    if isinstance(kind, shape.UnionType):
        kind = next((member for member in kind.types if _takes(member, value)), kind)
    if isinstance(kind, shape.StructType) and isinstance(value, dict):
        fields = {field.encode_name: field.type for field in kind.fields}
        bare = [path] if "source" in fields and not value.get("source") else []
        return bare + [bad for key, item in value.items() for bad in unsourced(item, fields[key], f"{path}.{key}")]
    if isinstance(kind, shape.ListType | shape.VarTupleType):
        return [bad for i, item in enumerate(value) for bad in unsourced(item, kind.item_type, f"{path}[{i}]")]
    return []


_SNAPSHOT = shape.type_info(Snapshot)  # it takes thirty times as long as most facts


def _accept(fact: Any, *, sourced: bool) -> Snapshot:
    assert unknown_keys(fact, _SNAPSHOT) == []
    if sourced:
        assert unsourced(fact, _SNAPSHOT) == []
    return msgspec.json.decode(json.dumps(fact), type=Snapshot)


RunProbe = Callable[..., tuple[Snapshot, dict[str, str]]]


@pytest.fixture
def run_probe(monkeypatch: pytest.MonkeyPatch) -> RunProbe:
    """``run_probe(name, request, sourced=True) -> (Snapshot, done)``, in this process alone: to fork one as large as
    that of the tests takes longer than what a probe shares out (tests/probes/common/test_tasks.py has it do that).

    ``request`` may leave out any key, or be a ``Tree``. The Snapshot is the merge of all facts sent, each of which must
    decode, hold no unknown key and, unless ``sourced`` is false, name a source in every record. ``done`` is
    ``{"status", "detail"}``.
    """

    monkeypatch.setattr(tasks, "_other_cores", lambda: 0)

    def run(
        name: str, request: Mapping[str, Any] | Tree | None = None, *, sourced: bool = True
    ) -> tuple[Snapshot, dict[str, str]]:
        lines: list[bytes] = []
        out = Out(name, lines.append)
        whole = {"root": "/", "cwd": "/", "python": [], "own_prefix": sys.prefix, "variables": {}}
        tree = request if isinstance(request, Tree) else Tree({**whole, **(request or {})})
        importlib.import_module(f"probes.{name}").collect(tree, out)
        out.done()
        messages = [json.loads(line) for line in lines]
        assert {message["probe"] for message in messages} == {name}
        parts = [_accept(message["fact"], sourced=sourced) for message in messages if "fact" in message]
        return merge(parts), messages[-1]["done"]

    return run


BuildRoot = Callable[..., str]
Changes = Mapping[str, str | bytes | None]


@pytest.fixture
def build_root(tmp_path: Path) -> BuildRoot:
    """``build_root("jetson-orin", {"/etc/x": "text", …}) -> path``: a tree for ``request["root"]``.

    The first argument names a file of ``roots/`` or is None; the second adds or replaces files. A text that starts
    with ``-> `` is a symbolic link (an absolute target counts from the tree's root), a path that ends with ``/`` an
    empty folder, and None takes a file away.
    """

    def build(name: str | None = None, changes: Changes | None = None) -> str:
        described = loads((ROOTS / f"{name}.toml").read_text(encoding="utf-8")) if name else {"files": {}}
        root = tmp_path / (name or "root")
        root.mkdir()
        for path, content in {**described["files"], **(changes or {})}.items():
            if content is not None:
                _place(root / path.lstrip("/"), content, folder=path.endswith("/"))
        return os.fspath(root)

    return build


Probed = Callable[..., Snapshot]


@pytest.fixture
def probed(run_probe: RunProbe, build_root: BuildRoot) -> Probed:
    """``probed("kernel", "jetson-orin", {"/etc/x": "text", …}, variables={…}) -> Snapshot`` of such a tree.

    Further arguments are keys of the request. A probe that does not end well fails the test.
    """

    def probe(name: str, tree: str | None = None, changes: Changes | None = None, **request: Any) -> Snapshot:
        snapshot, done = run_probe(name, {"root": build_root(tree, changes), **request})
        assert done["status"] in ("ok", "absent")
        return snapshot

    return probe


@pytest.fixture
def tree(tmp_path: Path) -> Frameworks:
    """A root folder to be filled."""
    return Frameworks(tmp_path)


def _place(place: Path, content: str | bytes, *, folder: bool) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    if folder:
        place.mkdir(exist_ok=True)
    elif isinstance(content, bytes):
        place.write_bytes(content)
    elif content.startswith("-> "):
        place.symlink_to(content[3:])
    else:
        place.write_text(content, encoding="utf-8")
        place.chmod(0o755)
