"""What a framework would load meets the copies on disk."""

from __future__ import annotations

from typing import Any

import pytest

from envcheck.enrich.loads import join_loads, version_of
from envcheck.snapshot import Environment, Framework, Library, Listing, Load, Snapshot

VENV = "/venv"
CUDNN = "/venv/nvidia/cudnn/lib/libcudnn.so.9"


def copy(path: str = CUDNN, **fields: Any) -> Library:
    known = {"family": "cudnn", "soname": "libcudnn.so.9", "environment": VENV, "source": f"elf {path}"}
    return Library(path=path, **{**known, **fields})


def joined(load: Load, *copies: Library) -> Load:
    framework = Framework(name="torch", loads=(load,), source="test")
    environment = Environment(key=VENV, frameworks=Listing(items=(framework,), complete=True), source="test")
    snapshot = Snapshot(environments=Listing(items=(environment,)), libraries=Listing(items=copies))
    result = join_loads(snapshot)
    assert join_loads(result) == result
    assert result.environments is not None
    frameworks = result.environments.items[0].frameworks
    assert frameworks is not None
    assert frameworks.items[0].loads is not None
    return frameworks.items[0].loads[0]


def asked(path: str | None = CUDNN, **fields: Any) -> Load:
    return Load(name="libcudnn.so.9", needed_by="/venv/torch/lib/libtorch_cuda.so", path=path, source="elf x", **fields)


def test_owner_and_version_come_from_the_copy_at_that_path() -> None:
    owner, read = "nvidia-cudnn-cu12==9.1.0.70", {"owner": "wheel metadata", "declared": "wheel metadata"}
    load = joined(asked(), copy(owner=owner, declared="9.1.0.70", on_disk="9.1.0", read=read))
    assert (load.owner, load.version) == (owner, "9.1.0.70")
    assert load.source_of("owner") == "wheel metadata"


def test_the_longer_form_of_the_version_in_the_file_s_name() -> None:
    load = joined(asked(version="9.1.0"), copy(owner="libcudnn9 9.1.0.70-1", declared="9.1.0.70", on_disk="9.1.0"))
    assert load.version == "9.1.0.70"


def test_what_is_known_stays() -> None:
    load = asked(owner="somebody", version="8.9.2")
    assert joined(load, copy(owner="other", on_disk="9.1.0")) == load


def test_a_path_that_is_not_in_the_inventory_stays_without_owner() -> None:
    load = asked("/elsewhere/libcudnn.so.9")
    assert joined(load, copy(owner="other", on_disk="9.1.0")) == load


def test_copies_of_a_library_that_is_not_found_are_named_nearest_first() -> None:
    system = copy("/a/libcudnn.so.9.5.1", names=("/a/libcudnn.so.9",), soname=None, environment=None)
    stub = copy("/a/stubs/libcudnn.so.9", stub=True)
    other = copy("/a/libcudnn.so.8", soname="libcudnn.so.8")
    assert joined(asked(None), system, stub, other, copy()).unfound == (CUDNN, "/a/libcudnn.so.9.5.1")
    assert joined(asked(None, unfound=("/known",)), copy()).unfound == ("/known",)


def test_without_an_inventory_nothing_changes() -> None:
    snapshot = Snapshot(environments=Listing(items=(Environment(key=VENV, source="test"),)))
    assert join_loads(snapshot) is snapshot


@pytest.mark.parametrize(
    ("fields", "version"),
    [
        ({"declared": "9.1.0.70", "on_disk": "9.1.0"}, "9.1.0.70"),
        ({"declared": "9.1.0.70", "on_disk": "9.10.2"}, "9.10.2"),
        ({"declared": "9.1.0.70", "on_disk": "9.1.0", "loaded": "9.10.2"}, "9.10.2"),
        ({"declared": "9.1.0.70"}, "9.1.0.70"),
        ({"declared": "9.1.0.70", "altered": True}, None),
        ({"on_disk": "9.1.0"}, "9.1.0"),
        ({}, None),
    ],
)
def test_the_file_outranks_what_its_package_says(fields: dict[str, Any], version: str | None) -> None:
    assert version_of(copy(**fields)) == version
