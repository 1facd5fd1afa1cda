"""Releases and platforms by file names, as real projects name their files."""

from __future__ import annotations

import pytest

from envcheck.refresh.index import IndexFile
from envcheck.refresh.wheel_files import newest_wheel, pythons_of, releases


def files(*names: str) -> list[IndexFile]:
    return [IndexFile(name, f"https://index.example/{name}") for name in names]


def test_only_final_releases_with_wheels_that_stand() -> None:
    listed = [
        *files(
            "vllm-0.2.0-cp311-cp311-manylinux1_x86_64.whl", "vllm-0.3.0.tar.gz", "vllm-0.9.0rc1-cp38-abi3-win_amd64.whl"
        ),
        *files("vllm-0.6.1+cu118-cp38-abi3-manylinux1_x86_64.whl", "other-1.0-py3-none-any.whl", "nonsense.whl"),
        *files("vllm-0.10.2-cp38-abi3-manylinux1_x86_64.whl", "vllm-0.4.0.post1-cp311-cp311-manylinux1_x86_64.whl"),
        IndexFile("vllm-0.2.1-cp311-cp311-manylinux1_x86_64.whl", "https://index.example/", yanked=True),
    ]
    assert [str(release.version) for release in releases(listed, "vLLM")] == ["0.2.0", "0.4.0.post1", "0.10.2"]


def test_pythons_and_platforms() -> None:
    (release,) = releases(
        files(
            "torch-1.4.0-cp27-cp27mu-manylinux1_x86_64.whl",
            "torch-1.4.0-cp36-cp36m-manylinux1_x86_64.whl",
            "torch-1.4.0-cp38-cp38-manylinux1_x86_64.whl",
            "torch-1.4.0-cp37-none-macosx_10_9_x86_64.whl",
            "torch-1.4.0-cp39-cp39-win_amd64.whl",
            "torch-1.4.0-cp310-cp310-manylinux_2_28_aarch64.whl",
        ),
        "torch",
    )
    assert pythons_of(release) == [(2, 7), (3, 6), (3, 8)]
    assert pythons_of(release, "windows") == [(3, 9)]
    assert pythons_of(release, machine="aarch64") == [(3, 10)]
    assert release.machines == ("x86_64", "aarch64")
    newest = newest_wheel(release)
    assert newest is not None
    assert newest.file.name == "torch-1.4.0-cp38-cp38-manylinux1_x86_64.whl"


def test_the_last_build_of_a_wheel_counts() -> None:
    (release,) = releases(
        files(
            "torch-2.10.0-1-cp310-cp310-manylinux_2_28_x86_64.whl",
            "torch-2.10.0-3-cp310-cp310-manylinux_2_28_x86_64.whl",
        ),
        "torch",
    )
    newest = newest_wheel(release)
    assert newest is not None
    assert newest.build == (3, "")


@pytest.mark.parametrize(
    ("name", "later", "platforms"),
    [
        ("x-1-py3-none-any.whl", True, set()),
        ("x-1-cp39-abi3-manylinux_2_28_x86_64.whl", True, {("linux", "x86_64")}),
        ("x-1-py39-none-win_amd64.whl", True, {("windows", "x86_64")}),
        ("x-1-cp311-cp311-manylinux_2_17_aarch64.manylinux2014_aarch64.whl", False, {("linux", "aarch64")}),
        ("x-1-cp312-cp312-macosx_11_0_arm64.whl", False, {("macos", "aarch64")}),
        ("x-1-cp312-cp312-musllinux_1_2_ppc64le.whl", False, {("linux", "other")}),
    ],
)
def test_what_a_wheel_is_for(name: str, later: bool, platforms: set[tuple[str, str]]) -> None:  # noqa: FBT001
    ((wheel,),) = (release.wheels for release in releases(files(name), "x"))
    assert (wheel.any_later, set(wheel.platforms)) == (later, platforms)
    assert newest_wheel(releases(files(name), "x")[0], *next(iter(platforms or {("linux", "x86_64")}))) == wheel
