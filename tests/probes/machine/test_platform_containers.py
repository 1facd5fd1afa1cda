"""What a host gives its containers, what an image was made for, and whose the driver's libraries are: made-up trees."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from envcheck.snapshot import ContainerHost, Driver, Platform, Snapshot

RunProbe = Callable[..., tuple[Snapshot, dict[str, str]]]
BuildRoot = Callable[..., str]

HOST = "ubuntu-580-open"
LISTS = "/etc/nvidia-container-runtime/host-files-for-container.d"
APT = "/etc/apt/sources.list.d/nvidia-l4t-apt-source.list"
L4T_35 = "# R35 (release), REVISION: 4.1, GCID: 33958178, BOARD: t186ref, EABI: aarch64\n"


def look(run_probe: RunProbe, root: str) -> Platform:
    snapshot, _ = run_probe("platform", {"root": root})
    assert snapshot.platform
    return snapshot.platform


def host(run_probe: RunProbe, build_root: BuildRoot, tree: Mapping[str, str | None], name: str = HOST) -> ContainerHost:
    found = look(run_probe, build_root(name, tree)).container_host
    assert found
    return found


def test_a_host_without_engine_and_toolkit(run_probe: RunProbe, build_root: BuildRoot) -> None:
    found = host(run_probe, build_root, {})
    assert (found.engines, found.toolkit, found.runtimes, found.cdi) == ((), (), (), ())
    assert (found.mount_lists, found.mounts_missing) == (None, None)


def test_docker_with_the_toolkit(run_probe: RunProbe, build_root: BuildRoot) -> None:
    tree = {
        "/usr/bin/docker": "",
        "/usr/bin/nvidia-ctk": "",
        "/usr/bin/nvidia-container-runtime-hook": "",
        "/etc/docker/daemon.json": '{"runtimes": {"nvidia": {"path": "nvidia-container-runtime"}}}',
        "/etc/cdi/nvidia.yaml": 'cdiVersion: "0.5.0"\nkind: nvidia.com/gpu\ndevices: []\n',
        "/etc/cdi/other.yaml": "kind: vendor.com/device\n",
        "/var/run/cdi/management.json": '{"cdiVersion": "0.5.0", "kind": "nvidia.com/gpu"}',
    }
    found = host(run_probe, build_root, tree)
    assert found.engines == ("/usr/bin/docker",)
    assert found.toolkit == ("/usr/bin/nvidia-ctk", "/usr/bin/nvidia-container-runtime-hook")
    assert found.runtimes == ("nvidia",)
    assert found.source_of("runtimes") == "file /etc/docker/daemon.json"
    assert found.cdi == ("/etc/cdi/nvidia.yaml",)


def test_docker_from_a_snap(run_probe: RunProbe, build_root: BuildRoot) -> None:
    assert host(run_probe, build_root, {"/snap/bin/docker": "-> /usr/bin/snap"}).engines == ("/snap/bin/docker",)


@pytest.mark.parametrize("text", ["{", "[]", '{"runtimes": []}', '{"runtimes": {}}', "\udcff" * 3])
def test_a_configuration_that_adds_nothing(run_probe: RunProbe, build_root: BuildRoot, text: str) -> None:
    content = text.encode("utf-8", "surrogateescape").decode("latin-1")
    assert host(run_probe, build_root, {"/etc/docker/daemon.json": content}).runtimes in ((), None)


def test_a_container_is_no_host(run_probe: RunProbe, build_root: BuildRoot) -> None:
    assert look(run_probe, build_root("debian-container", {"/usr/bin/docker": ""})).container_host is None


def test_mount_lists_of_a_jetson(run_probe: RunProbe, build_root: BuildRoot) -> None:
    entries = "lib, /usr/lib/gone.so.1\nsym, /usr/lib/aarch64-linux-gnu/libcuda.so.1\ndev, /dev/nvhost*\n#lib, /x\n"
    found = host(run_probe, build_root, {f"{LISTS}/l4t.csv": entries, f"{LISTS}/note.txt": "lib, /y\n"}, "jetson-orin")
    assert (found.mount_lists, found.mounts_missing) == ((f"{LISTS}/l4t.csv",), ("/usr/lib/gone.so.1",))


def test_a_jetson_without_mount_lists(run_probe: RunProbe, build_root: BuildRoot) -> None:
    found = host(run_probe, build_root, {}, "jetson-orin")
    assert (found.mount_lists, found.mounts_missing) == ((), None)


def boxed(build_root: BuildRoot, mounts: str = "", **tree: str) -> str:
    """A container of Docker on a Jetson, with further mounts."""
    lines = f"600 500 0:60 / / rw - overlay overlay rw\n{mounts}"
    paths = {"release": "/etc/nv_tegra_release", "apt": APT}
    return build_root(
        "jetson-orin",
        {
            "/.dockerenv": "",
            "/proc/self/mountinfo": lines,
            "/etc/nv_tegra_release": None,
            **{paths[name]: content for name, content in tree.items()},
        },
    )


def mount(path: str) -> str:
    return f"610 600 259:1 {path} {path} ro,relatime - ext4 /dev/nvme0n1p1 rw\n"


def test_the_release_file_of_an_image_is_not_the_hosts(run_probe: RunProbe, build_root: BuildRoot) -> None:
    platform = look(run_probe, boxed(build_root, release=L4T_35))
    assert (platform.container, platform.tegra) == ("docker", True)
    assert (platform.tegra_release, platform.image_tegra_release) == (None, "35.4.1")


def test_the_release_file_that_was_mounted_is_the_hosts(run_probe: RunProbe, build_root: BuildRoot) -> None:
    source = "deb https://repo.download.nvidia.com/jetson/common r36.4 main\n"
    platform = look(run_probe, boxed(build_root, mount("/etc/nv_tegra_release"), release=L4T_35, apt=source))
    assert (platform.tegra_release, platform.image_tegra_release) == ("35.4.1", "36.4")
    assert platform.source_of("image_tegra_release") == f"file {APT}"


def test_an_image_that_does_not_tell(run_probe: RunProbe, build_root: BuildRoot) -> None:
    platform = look(
        run_probe, boxed(build_root, apt="# deb https://repo.download.nvidia.com/jetson/common r36.4 main\n")
    )
    assert (platform.tegra_release, platform.image_tegra_release) == (None, None)


def test_an_image_for_jetson_on_another_machine(run_probe: RunProbe, build_root: BuildRoot) -> None:
    platform = look(run_probe, build_root("debian-container", {"/etc/nv_tegra_release": L4T_35}))
    assert (platform.tegra, platform.tegra_release, platform.image_tegra_release) == (False, "", "35.4.1")


def driver(run_probe: RunProbe, root: str) -> Driver:
    snapshot, _ = run_probe("driver_files", {"root": root})
    assert snapshot.driver
    return snapshot.driver


def test_whose_the_drivers_libraries_are(run_probe: RunProbe, build_root: BuildRoot) -> None:
    folder, own = "/usr/lib/x86_64-linux-gnu", "\x7fELF\x02"
    tree = {
        "/proc/self/mountinfo": "600 500 0:60 / / rw - overlay overlay rw\n"
        + mount(f"{folder}/libcuda.so.580.65.06")
        + mount("/usr/local/nvidia")
        + mount("/usr/lib/with\\040blank"),
        f"{folder}/libcuda.so.580.65.06": own,
        f"{folder}/libcuda.so.570.86.15": own,
        "/usr/local/nvidia/lib64/libnvidia-ml.so.1": own,
    }
    found = driver(run_probe, build_root(None, tree)).libraries
    assert found
    assert {library.path: library.mounted for library in found.items} == {
        f"{folder}/libcuda.so.580.65.06": True,
        f"{folder}/libcuda.so.570.86.15": False,
        "/usr/local/nvidia/lib64/libnvidia-ml.so.1": True,
    }


def test_whose_they_are_is_open_without_proc(run_probe: RunProbe, build_root: BuildRoot) -> None:
    found = driver(run_probe, build_root(HOST, {"/proc/self/mountinfo": None})).libraries
    assert found
    assert {library.mounted for library in found.items} == {None}
