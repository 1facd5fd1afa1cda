"""The platform probe, on made-up trees and on this machine; what a host gives its containers."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from envcheck.model.snapshot import ContainerHost, Driver, Platform, Snapshot
from tests.every import cases

RunProbe = Callable[..., tuple[Snapshot, dict[str, str]]]
BuildRoot = Callable[..., str]

ID = "3f" * 32
HOST = "ubuntu-580-open"


def look(run_probe: RunProbe, root: str, **request: Any) -> Platform:
    snapshot, done = run_probe("platform", {"root": root, **request})
    assert done["status"] == "ok"
    assert snapshot.platform
    return snapshot.platform


def test_debian_container(run_probe: RunProbe, build_root: BuildRoot) -> None:
    platform = look(run_probe, build_root("debian-container"))
    assert (platform.os, platform.distribution, platform.distribution_version) == ("linux", "debian", "12")
    assert platform.distribution_title == "Debian GNU/Linux 12 (bookworm)"
    assert (platform.kernel_release, platform.machine) == ("6.1.0-28-amd64", "x86_64")
    assert (platform.libc, platform.cpu_model) == ("glibc 2.36", "AMD EPYC 7763 64-Core Processor")
    assert (platform.cpus, platform.memory) == (2, 32867936 * 1024)
    assert (platform.shared_memory, platform.numa_nodes, platform.container) == (64 * 1024**2, 1, "docker")
    assert platform.wsl is False
    assert (platform.virtualization, platform.tegra_release, platform.host) == ("none", "", "3f2a9c1d7e55")
    assert platform.uid is None
    assert platform.source_of("memory") == "file /proc/meminfo"


def test_host_that_runs_docker_is_no_container(run_probe: RunProbe, build_root: BuildRoot) -> None:
    platform = look(run_probe, build_root(HOST, {"/run/docker.sock": "", "/var/lib/docker/overlay2/ab12/": ""}))
    assert (platform.container, platform.distribution_like) == ("none", ("debian",))
    assert (platform.numa_nodes, platform.host) == (2, "node7")


NAMESPACES = {"cgroup": 4026531835, "pid": 4026531836, "uts": 4026531838, "ipc": 4026531839}


def test_image_booted_as_a_machine_is_no_container(run_probe: RunProbe, build_root: BuildRoot) -> None:
    links = {f"/proc/self/ns/{name}": f"-> {name}:[{number}]" for name, number in NAMESPACES.items()}
    platform = look(run_probe, build_root(HOST, {"/.dockerenv": "", **links}))
    assert platform.container == "none"
    assert platform.container_evidence
    assert "/.dockerenv" in platform.container_evidence


@pytest.mark.parametrize("left", sorted(NAMESPACES))
def test_dockerenv_counts_where_any_namespace_is_its_own(run_probe: RunProbe, build_root: BuildRoot, left: str) -> None:
    numbers = {**NAMESPACES, left: 4026532400}
    links = {f"/proc/self/ns/{name}": f"-> {name}:[{number}]" for name, number in numbers.items()}
    assert look(run_probe, build_root(HOST, {"/.dockerenv": "", **links})).container == "docker"


@cases(
    "changes, variables, name",
    ({"/run/.containerenv": 'engine="podman-5.2.2"\n'}, {}, "podman"),
    ({"/proc/self/cgroup": f"4:memory:/docker/{ID}\n"}, {}, "docker"),
    ({"/proc/self/cgroup": f"0::/machine.slice/libpod-{ID}.scope/container\n"}, {}, "podman"),
    ({"/proc/self/cgroup": f"0::/kubepods.slice/kubepods-pod1.slice/cri-containerd-{ID}.scope\n"}, {}, "kubernetes"),
    ({"/.dockerenv": "", "/run/secrets/kubernetes.io/serviceaccount/token": "x"}, {}, "kubernetes"),
    ({"/.dockerenv": ""}, {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, "kubernetes"),
    ({"/run/systemd/container": "systemd-nspawn\n"}, {}, "systemd-nspawn"),
    ({"/proc/1/environ": "PATH=/bin\0container=lxc\0"}, {}, "lxc"),
    ({"/dev/lxd/sock": ""}, {}, "lxc"),
    ({"/.singularity.d/": ""}, {}, "apptainer"),
    ({"/.dockerenv": ""}, {"APPTAINER_CONTAINER": "/x.sif"}, "apptainer"),
    ({}, {"container": "oci"}, "other"),
    ({"/run/.containerenv": ""}, {"container": "oci"}, "podman"),
    ({"/.flatpak-info": ""}, {}, "other"),
)
def test_containers(
    run_probe: RunProbe, build_root: BuildRoot, changes: dict[str, str], variables: dict[str, str], name: str
) -> None:
    assert look(run_probe, build_root(HOST, changes), variables=variables).container == name


def test_process_of_the_docker_service_is_no_container(run_probe: RunProbe, build_root: BuildRoot) -> None:
    root = build_root(HOST, {"/proc/self/cgroup": "0::/system.slice/docker.service\n"})
    assert look(run_probe, root).container == "none"


def test_container_is_unknown_without_proc(run_probe: RunProbe, build_root: BuildRoot) -> None:
    platform = look(run_probe, build_root(None, {"/etc/os-release": "ID=alpine\nVERSION_ID=3.20.3\n"}))
    assert platform.container is None
    assert platform.wsl is None
    assert platform.tegra_release is None
    assert platform.virtualization is None
    assert platform.distribution == "alpine"


def test_wsl2(run_probe: RunProbe, build_root: BuildRoot) -> None:
    platform = look(run_probe, build_root("wsl2"))
    assert platform.wsl is True
    assert (platform.container, platform.virtualization) == ("none", "hyperv")


def test_wsl2_with_a_kernel_of_ones_own(run_probe: RunProbe, build_root: BuildRoot) -> None:
    assert look(run_probe, build_root("wsl2", {"/proc/sys/kernel/osrelease": "6.6.1-mine\n"})).wsl is True


def test_jetson_orin(run_probe: RunProbe, build_root: BuildRoot) -> None:
    platform = look(run_probe, build_root("jetson-orin"))
    assert (platform.tegra_release, platform.machine) == ("36.4.0", "aarch64")
    assert (platform.cpu_model, platform.cpus, platform.virtualization) == ("Cortex-A78AE", 2, "none")


def test_tegra_without_a_release_file_is_not_called_none(run_probe: RunProbe, build_root: BuildRoot) -> None:
    assert look(run_probe, build_root("jetson-orin", {"/etc/nv_tegra_release": None})).tegra_release is None


def test_rhel_reads_os_release_through_its_link(run_probe: RunProbe, build_root: BuildRoot) -> None:
    platform = look(run_probe, build_root("rhel"))
    assert (platform.distribution, platform.distribution_version, platform.libc) == ("rhel", "9.4", "glibc 2.34")


def test_os_release_from_usr_lib_alone(run_probe: RunProbe, build_root: BuildRoot) -> None:
    platform = look(run_probe, build_root("rhel", {"/etc/os-release": None}))
    assert platform.distribution == "rhel"
    assert platform.source_of("distribution") == "file /usr/lib/os-release"


def test_musl(run_probe: RunProbe, build_root: BuildRoot) -> None:
    platform = look(run_probe, build_root(None, {"/lib/ld-musl-x86_64.so.1": "\x7fELF\x02"}))
    assert (platform.libc, platform.machine) == ("musl", "x86_64")


GUEST = {"/proc/cpuinfo": "processor\t: 0\nmodel name\t: Xeon\nflags\t\t: fpu hypervisor\n"}
CLOCK = "/sys/devices/system/clocksource/clocksource0/available_clocksource"
DMI = "/sys/class/dmi/id"


@cases(
    "changes, name",
    ({f"{DMI}/sys_vendor": "QEMU\n", CLOCK: "kvm-clock tsc \n"}, "kvm"),
    ({f"{DMI}/sys_vendor": "QEMU\n", CLOCK: "tsc hpet \n"}, "qemu"),
    ({f"{DMI}/product_name": "VMware Virtual Platform\n"}, "vmware"),
    ({f"{DMI}/sys_vendor": "Microsoft Corporation\n", f"{DMI}/product_name": "Virtual Machine\n"}, "hyperv"),
    ({f"{DMI}/product_name": "Google Compute Engine\n"}, "kvm"),
    ({f"{DMI}/sys_vendor": "Amazon EC2\n", f"{DMI}/product_name": "p5.48xlarge\n"}, "kvm"),
    ({"/sys/hypervisor/type": "xen\n"}, "xen"),
    ({"/sys/firmware/acpi/tables/DSDT": "DSDT\x53\x0f\x00\x00\x02\x77FIRECKFCVMDSDT"}, "firecracker"),
    ({"/proc/cmdline": "console=ttyS0 reboot=k panic=1 pci=off root=/dev/vda\n"}, "firecracker"),
    ({"/proc/cmdline": "console=ttyS0 reboot=k panic=1 root=/dev/vda\n"}, "other"),
    ({CLOCK: "kvm-clock tsc \n"}, "kvm"),
    ({}, "other"),
    ({"/proc/version": "Linux version 4.4.0 #1 SMP Sun Jan 10 15:06:54 PST 2016\n"}, "gvisor"),
    ({"/proc/version": "Linux version 4.4.0-210-generic (buildd@lgw01) #242-Ubuntu SMP\n"}, "other"),
    ({"/proc/xen/capabilities": "control_d\n", "/sys/hypervisor/type": "xen\n"}, "none"),
)
def test_virtualization(run_probe: RunProbe, build_root: BuildRoot, changes: dict[str, str], name: str) -> None:
    assert look(run_probe, build_root(HOST, {**GUEST, **changes})).virtualization == name


def test_bare_metal_of_a_virtual_machine_vendor(run_probe: RunProbe, build_root: BuildRoot) -> None:
    surface = {f"{DMI}/sys_vendor": "Microsoft Corporation\n", f"{DMI}/product_name": "Surface Laptop\n"}
    assert look(run_probe, build_root(HOST, surface)).virtualization == "none"


def test_grace_is_named_and_an_unknown_part_is_numbered(run_probe: RunProbe, build_root: BuildRoot) -> None:
    text = "processor\t: {0}\nCPU implementer\t: 0x41\nCPU architecture: 8\nCPU part\t: {1}\n\n"
    root = build_root(None, {"/proc/cpuinfo": text.format(0, "0xd4f") + text.format(1, "0xfff")})
    assert look(run_probe, root).cpu_model == "Neoverse-V2 + Arm implementer 0x41 part 0xfff"


def test_shared_memory_that_is_no_mount_has_no_size(run_probe: RunProbe, build_root: BuildRoot) -> None:
    assert (
        look(run_probe, build_root("debian-container", {"/proc/mounts": "/dev/sda / ext4 rw 0 0\n"})).shared_memory
        is None
    )


def test_hostile_files_are_survived(run_probe: RunProbe, build_root: BuildRoot) -> None:
    noise = bytes(range(256)) * 64
    names = ("/proc/cpuinfo", "/proc/meminfo", "/proc/mounts", "/proc/self/mountinfo", "/proc/self/cgroup")
    loop = {"/etc/os-release": "-> /usr/lib/os-release", "/usr/lib/os-release": "-> /etc/os-release"}
    platform = look(run_probe, build_root("debian-container", {**dict.fromkeys(names, noise), **loop}))
    assert platform.memory is None
    assert platform.distribution is None
    assert platform.container == "docker"


def test_this_machine(run_probe: RunProbe) -> None:
    platform = look(run_probe, "/", variables=dict(os.environ))
    about = os.uname()
    assert (platform.kernel_release, platform.machine) == (about.release, about.machine)
    assert (platform.host, platform.uid) == (socket.gethostname(), os.getuid())
    assert platform.cpus == len(os.sched_getaffinity(0))
    told = Path("/proc/meminfo").read_text(encoding="ascii").split("MemTotal:")[1].split()[0]
    assert platform.memory == int(told) * 1024
    assert platform.libc


@cases("user", None, 54321)
def test_nothing_needs_a_home_or_a_passwd_entry(user: int | None) -> None:
    """A process without variables, and, where this one is root, of a user whom nobody knows."""
    if user is not None and os.geteuid() != 0:
        pytest.skip("only root can become a user without passwd entry")
    program = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from probes import platform, kernel, pci, driver_files, toolkits, variables\n"
        "from probes.common.out import Out; from probes.common.tree import Tree\n"
        "for probe in (platform, kernel, pci, driver_files, toolkits, variables):\n"
        "    probe.collect(Tree({'root': '/'}), Out(probe.__name__, sys.stdout.buffer.write))\n"
    )
    checkout = str(Path(__file__).resolve().parents[3])
    for python in (sys.executable, "/usr/bin/python3"):
        try:
            done = subprocess.run(
                [python, "-I", "-S", "-B", "-c", program, checkout], user=user, env={}, capture_output=True, check=False
            )
        except OSError:
            continue
        assert done.returncode == 0, done.stderr
        assert b'"platform"' in done.stdout
        return
    pytest.skip("no interpreter that this user may start")


# --- What a host gives its containers, what an image was made for ---------------------------------------------------

LISTS = "/etc/nvidia-container-runtime/host-files-for-container.d"
APT = "/etc/apt/sources.list.d/nvidia-l4t-apt-source.list"
L4T_35 = "# R35 (release), REVISION: 4.1, GCID: 33958178, BOARD: t186ref, EABI: aarch64\n"


def look_containers(run_probe: RunProbe, root: str) -> Platform:
    snapshot, _ = run_probe("platform", {"root": root})
    assert snapshot.platform
    return snapshot.platform


def host(run_probe: RunProbe, build_root: BuildRoot, tree: Mapping[str, str | None], name: str = HOST) -> ContainerHost:
    found = look_containers(run_probe, build_root(name, tree)).container_host
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


@cases("text", "{", "[]", '{"runtimes": []}', '{"runtimes": {}}', "\udcff" * 3)
def test_a_configuration_that_adds_nothing(run_probe: RunProbe, build_root: BuildRoot, text: str) -> None:
    content = text.encode("utf-8", "surrogateescape").decode("latin-1")
    assert host(run_probe, build_root, {"/etc/docker/daemon.json": content}).runtimes in ((), None)


def test_a_container_is_no_host(run_probe: RunProbe, build_root: BuildRoot) -> None:
    assert look_containers(run_probe, build_root("debian-container", {"/usr/bin/docker": ""})).container_host is None


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
    platform = look_containers(run_probe, boxed(build_root, release=L4T_35))
    assert (platform.container, platform.tegra) == ("docker", True)
    assert (platform.tegra_release, platform.image_tegra_release) == (None, "35.4.1")


def test_the_release_file_that_was_mounted_is_the_hosts(run_probe: RunProbe, build_root: BuildRoot) -> None:
    source = "deb https://repo.download.nvidia.com/jetson/common r36.4 main\n"
    platform = look_containers(run_probe, boxed(build_root, mount("/etc/nv_tegra_release"), release=L4T_35, apt=source))
    assert (platform.tegra_release, platform.image_tegra_release) == ("35.4.1", "36.4")
    assert platform.source_of("image_tegra_release") == f"file {APT}"


def test_an_image_that_does_not_tell(run_probe: RunProbe, build_root: BuildRoot) -> None:
    platform = look_containers(
        run_probe, boxed(build_root, apt="# deb https://repo.download.nvidia.com/jetson/common r36.4 main\n")
    )
    assert (platform.tegra_release, platform.image_tegra_release) == (None, None)


def test_an_image_for_jetson_on_another_machine(run_probe: RunProbe, build_root: BuildRoot) -> None:
    platform = look_containers(run_probe, build_root("debian-container", {"/etc/nv_tegra_release": L4T_35}))
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
