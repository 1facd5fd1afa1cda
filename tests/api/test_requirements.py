"""``envcheck.require``: what it finds in files, and what it says of what it does not find."""

import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import pytest

import envcheck
from envcheck.model.components import parse_components
from envcheck.requirements import Program, unmet_by
from tests.every import cases, tabled

_H100, _T4 = "NVIDIA H100 80GB HBM3", "Tesla T4"


def machine(root: Path, *models: str, driver: str = "550.54.14", nodes: tuple[int, ...] = ()) -> None:
    """Write the files of a machine with these GPUs."""
    for number, model in enumerate(models):
        place = root / f"proc/driver/nvidia/gpus/0000:{number + 1:02x}:00.0"
        place.mkdir(parents=True)
        (place / "information").write_text(
            f"Model: \t\t {model}\nIRQ:   \t\t 1\nGPU UUID: \t GPU-{number}abc\nDevice Minor: \t {number}\n"
        )
    (root / "proc/driver/nvidia").mkdir(parents=True, exist_ok=True)
    said = f"NVRM version: NVIDIA UNIX x86_64 Kernel Module  {driver}  Thu Feb 22 01:44:30 UTC 2024\n"
    (root / "proc/driver/nvidia/version").write_text(said)
    (root / "dev").mkdir(exist_ok=True)
    for number in nodes:
        (root / f"dev/nvidia{number}").touch()


def installed(root: Path, folder: str, name: str, version: str) -> None:
    place = root / folder / f"{name}-{version}.dist-info"
    place.mkdir(parents=True)
    (place / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n\nVersion: 9\n")


def unmet(
    root: Path, text: str, path: tuple[str, ...] = ("/site",), variables: Mapping[str, str] = MappingProxyType({})
) -> list[str]:
    return list(unmet_by(Program(str(root), path, variables, "3.11.7"), parse_components(text)))


@tabled
def test_what_is_there_is_compared(tmp_path: Path, text: str, sentences: list[str]) -> None:
    machine(tmp_path, _H100, _H100)
    installed(tmp_path, "site", "torch", "2.5.1+cu124")
    installed(tmp_path, "site", "nvidia_cudnn_cu12", "9.1.0.70")
    assert unmet(tmp_path, text) == sentences


@tabled
def test_a_release_is_compared_as_pep_440_does(tmp_path: Path, version: str, text: str, *, met: bool) -> None:
    installed(tmp_path, "site", "torch", version)
    assert (unmet(tmp_path, text) == []) is met


def test_the_first_on_the_search_path_counts(tmp_path: Path) -> None:
    installed(tmp_path, "first", "torch", "2.1.0")
    installed(tmp_path, "site", "torch", "2.5.1")
    assert unmet(tmp_path, "torch>=2.4", ("/gone", "/first", "/site")) == ["torch>=2.4 is required; found 2.1.0"]


@cases("spoil", "two", "no-version", "archive", "fifo")
def test_what_files_do_not_tell_is_not_met(tmp_path: Path, spoil: str) -> None:
    site = tmp_path / "site"
    site.mkdir()
    if spoil == "two":
        installed(tmp_path, "site", "torch", "2.5.1")
        installed(tmp_path, "site", "torch", "2.4.0")
    elif spoil == "no-version":
        (site / "torch-2.5.1.dist-info").mkdir()
    elif spoil == "fifo":
        (site / "torch-2.5.1.dist-info").mkdir()
        os.mkfifo(site / "torch-2.5.1.dist-info/METADATA")
    else:
        (tmp_path / "packages.zip").touch()
    found = unmet(tmp_path, "torch>=2.4", ("/packages.zip", "/site"))
    assert found == ["torch>=2.4 is required, but the installed version is not known"]


@tabled
def test_the_visible_gpus_count(tmp_path: Path, variables: dict[str, str], text: str, *, met: bool) -> None:
    machine(tmp_path, _H100, _T4)
    assert (unmet(tmp_path, text, variables=variables) == []) is met


def test_a_container_has_the_gpus_whose_nodes_it_has(tmp_path: Path) -> None:
    machine(tmp_path, _T4, _H100, nodes=(1,))
    assert unmet(tmp_path, "gpus==1,gpu==H100") == []


def test_a_model_of_which_nobody_knows_is_not_met(tmp_path: Path) -> None:
    machine(tmp_path, "NVIDIA Z9")
    assert unmet(tmp_path, "gpu!=sm_90") == ["gpu!=sm_90 is required, but what this machine has is not known"]


def test_no_gpu_is_told_from_one_that_shows_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    unknown = ["gpus<1 is required, but what this machine has is not known"]
    assert unmet(tmp_path, "gpus<1") == unknown  # nobody knows the kernel's modules
    (tmp_path / "proc/modules").write_text("ext4 737280 1 - Live 0x0\n")
    assert unmet(tmp_path, "gpus<1") == []
    (tmp_path / "proc/modules").write_text("nvidia 737280 1 - Live 0x0\n")
    assert unmet(tmp_path, "gpus<1") == unknown
    (tmp_path / "proc/modules").write_text("ext4 737280 1 - Live 0x0\n")
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev/dxg").touch()
    assert unmet(tmp_path, "gpus<1") == unknown


def test_this_program() -> None:
    envcheck.require("python>=3.10", "msgspec>=0.18")
    with pytest.raises(envcheck.RequirementNotMet) as raised:
        envcheck.require("msgspec>=900", "no-such-distribution>=1", "python>=3.10")
    assert str(raised.value).startswith("msgspec>=900 is required; found 0.")
    assert str(raised.value).endswith("; no-such-distribution>=1 is required; found none")


@tabled
def test_what_cannot_be_asked_is_one_sentence(texts: tuple[str, ...], words: str) -> None:
    with pytest.raises(envcheck.UsageError, match=words):
        envcheck.require(*texts)


@cases("wrong", 3, None, ["torch>=2.4"])
def test_a_requirement_is_a_text(wrong: object) -> None:
    with pytest.raises(envcheck.UsageError, match="write a requirement as a text"):
        envcheck.require(wrong)  # type: ignore[arg-type]
