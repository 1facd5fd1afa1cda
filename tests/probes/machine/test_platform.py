"""The platform probe, on made-up trees and on this machine; what a host gives its containers."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from envcheck.model.snapshot import Platform
from tests.every import cases
from tests.known import Expected, fields, known
from tests.probes.conftest import Changes, Probed, RunProbe

ID = "3f" * 32
HOST = "ubuntu-580-open"
NAMESPACES = {"cgroup": 4026531835, "pid": 4026531836, "uts": 4026531838, "ipc": 4026531839}
LINKS = {f"/proc/self/ns/{name}": f"-> {name}:[{number}]" for name, number in NAMESPACES.items()}
NOISE = bytes(range(256)) * 64
NOISY = ("/proc/cpuinfo", "/proc/meminfo", "/proc/mounts", "/proc/self/mountinfo", "/proc/self/cgroup")
GUEST = {"/proc/cpuinfo": "processor\t: 0\nmodel name\t: Xeon\nflags\t\t: fpu hypervisor\n"}
CLOCK = "/sys/devices/system/clocksource/clocksource0/available_clocksource"
DMI = "/sys/class/dmi/id"
L4T_35 = "# R35 (release), REVISION: 4.1, GCID: 33958178, BOARD: t186ref, EABI: aarch64\n"


def look(probed: Probed, tree: str | None, changes: Changes | None = None, **variables: str) -> Platform:
    return known(probed("platform", tree, changes, variables=variables).platform)


@cases("about, tree, changes, expected",
    ("a container of Debian", "debian-container", {},
     {"os": "linux", "distribution": "debian", "distribution_version": "12",
      "distribution_title": "Debian GNU/Linux 12 (bookworm)", "kernel_release": "6.1.0-28-amd64", "machine": "x86_64",
      "libc": "glibc 2.36", "cpu_model": "AMD EPYC 7763 64-Core Processor", "cpus": 2, "memory": 32867936 * 1024,
      "shared_memory": 64 * 1024**2, "numa_nodes": 1, "container": "docker", "wsl": False, "virtualization": "none",
      "tegra_release": "", "host": "3f2a9c1d7e55", "uid": None, "source_of.memory": "file /proc/meminfo"}),
    ("a host that runs Docker is no container", HOST, {"/run/docker.sock": "", "/var/lib/docker/overlay2/ab12/": ""},
     {"container": "none", "distribution_like": ("debian",), "numa_nodes": 2, "host": "node7"}),
    ("a process of the Docker service is no container", HOST,
     {"/proc/self/cgroup": "0::/system.slice/docker.service\n"}, {"container": "none"}),
    ("the container is unknown without proc", None, {"/etc/os-release": "ID=alpine\nVERSION_ID=3.20.3\n"},
     {"container": None, "wsl": None, "tegra_release": None, "virtualization": None, "distribution": "alpine"}),
    ("WSL 2", "wsl2", {}, {"wsl": True, "container": "none", "virtualization": "hyperv"}),
    ("WSL 2 with a kernel of one's own", "wsl2", {"/proc/sys/kernel/osrelease": "6.6.1-mine\n"}, {"wsl": True}),
    ("Jetson Orin", "jetson-orin", {},
     {"tegra_release": "36.4.0", "machine": "aarch64", "cpu_model": "Cortex-A78AE", "cpus": 2,
      "virtualization": "none"}),
    ("Tegra without a release file is not called none", "jetson-orin", {"/etc/nv_tegra_release": None},
     {"tegra_release": None}),
    ("RHEL, whose os-release is a link", "rhel", {},
     {"distribution": "rhel", "distribution_version": "9.4", "libc": "glibc 2.34"}),
    ("os-release in /usr/lib alone", "rhel", {"/etc/os-release": None},
     {"distribution": "rhel", "source_of.distribution": "file /usr/lib/os-release"}),
    ("musl", None, {"/lib/ld-musl-x86_64.so.1": "\x7fELF\x02"}, {"libc": "musl", "machine": "x86_64"}),
    ("bare metal of a vendor of virtual machines", HOST,
     {f"{DMI}/sys_vendor": "Microsoft Corporation\n", f"{DMI}/product_name": "Surface Laptop\n"},
     {"virtualization": "none"}),
    ("Grace is named, an unknown part is numbered", None,
     {"/proc/cpuinfo": "processor\t: 0\nCPU implementer\t: 0x41\nCPU architecture: 8\nCPU part\t: 0xd4f\n\n"
                       "processor\t: 1\nCPU implementer\t: 0x41\nCPU architecture: 8\nCPU part\t: 0xfff\n\n"},
     {"cpu_model": "Neoverse-V2 + Arm implementer 0x41 part 0xfff"}),
    ("shared memory that is no mount has no size", "debian-container", {"/proc/mounts": "/dev/sda / ext4 rw 0 0\n"},
     {"shared_memory": None}),
    ("hostile files", "debian-container",
     {**dict.fromkeys(NOISY, NOISE), "/etc/os-release": "-> /usr/lib/os-release",
      "/usr/lib/os-release": "-> /etc/os-release"}, {"memory": None, "distribution": None, "container": "docker"}),
    ("a container is no host", "debian-container", {"/usr/bin/docker": ""}, {"container_host": None}),
    ("an image for Jetson on another machine", "debian-container", {"/etc/nv_tegra_release": L4T_35},
     {"tegra": False, "tegra_release": "", "image_tegra_release": "35.4.1"}),
)  # fmt: skip
def test_what_a_tree_tells(probed: Probed, about: str, tree: str | None, changes: Changes, expected: Expected) -> None:
    assert fields(look(probed, tree, changes), expected) == expected


def test_image_booted_as_a_machine_is_no_container(probed: Probed) -> None:
    platform = look(probed, HOST, {"/.dockerenv": "", **LINKS})
    assert platform.container == "none"
    assert "/.dockerenv" in known(platform.container_evidence)


@pytest.mark.parametrize("left", sorted(NAMESPACES))
def test_dockerenv_counts_where_any_namespace_is_its_own(probed: Probed, left: str) -> None:
    other = {f"/proc/self/ns/{left}": f"-> {left}:[4026532400]"}
    assert look(probed, HOST, {"/.dockerenv": "", **LINKS, **other}).container == "docker"


@cases(
    "changes, variables, name", ({"/run/.containerenv": 'engine="podman-5.2.2"\n'}, {}, "podman"),
    ({"/proc/self/cgroup": f"4:memory:/docker/{ID}\n"}, {}, "docker"),
    ({"/proc/self/cgroup": f"0::/machine.slice/libpod-{ID}.scope/container\n"}, {}, "podman"),
    ({"/proc/self/cgroup": f"0::/kubepods.slice/kubepods-pod1.slice/cri-containerd-{ID}.scope\n"}, {}, "kubernetes"),
    ({"/.dockerenv": "", "/run/secrets/kubernetes.io/serviceaccount/token": "x"}, {}, "kubernetes"),
    ({"/.dockerenv": ""}, {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, "kubernetes"),
    ({"/run/systemd/container": "systemd-nspawn\n"}, {}, "systemd-nspawn"),
    ({"/proc/1/environ": "PATH=/bin\0container=lxc\0"}, {}, "lxc"), ({"/dev/lxd/sock": ""}, {}, "lxc"),
    ({"/.singularity.d/": ""}, {}, "apptainer"), ({"/.dockerenv": ""}, {"APPTAINER_CONTAINER": "/x.sif"}, "apptainer"),
    ({}, {"container": "oci"}, "other"), ({"/run/.containerenv": ""}, {"container": "oci"}, "podman"),
    ({"/.flatpak-info": ""}, {}, "other"),
)  # fmt: skip
def test_containers(probed: Probed, changes: Changes, variables: dict[str, str], name: str) -> None:
    assert look(probed, HOST, changes, **variables).container == name


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
def test_virtualization(probed: Probed, changes: dict[str, str], name: str) -> None:
    assert look(probed, HOST, {**GUEST, **changes}).virtualization == name


def test_this_machine(run_probe: RunProbe) -> None:
    snapshot, _ = run_probe("platform", {"root": "/", "variables": dict(os.environ)})
    platform = known(snapshot.platform)
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


@cases("about, tree, changes, expected",
    ("without engine and toolkit", HOST, {},
     {"engines": (), "toolkit": (), "runtimes": (), "cdi": (), "mount_lists": None, "mounts_missing": None}),
    ("Docker with the toolkit", HOST,
     {"/usr/bin/docker": "", "/usr/bin/nvidia-ctk": "", "/usr/bin/nvidia-container-runtime-hook": "",
      "/etc/docker/daemon.json": '{"runtimes": {"nvidia": {"path": "nvidia-container-runtime"}}}',
      "/etc/cdi/nvidia.yaml": 'cdiVersion: "0.5.0"\nkind: nvidia.com/gpu\ndevices: []\n',
      "/etc/cdi/other.yaml": "kind: vendor.com/device\n",
      "/var/run/cdi/management.json": '{"cdiVersion": "0.5.0", "kind": "nvidia.com/gpu"}'},
     {"engines": ("/usr/bin/docker",), "toolkit": ("/usr/bin/nvidia-ctk", "/usr/bin/nvidia-container-runtime-hook"),
      "runtimes": ("nvidia",), "source_of.runtimes": "file /etc/docker/daemon.json",
      "cdi": ("/etc/cdi/nvidia.yaml",)}),
    ("Docker from a snap", HOST, {"/snap/bin/docker": "-> /usr/bin/snap"}, {"engines": ("/snap/bin/docker",)}),
    ("mount lists of a Jetson", "jetson-orin",
     {f"{LISTS}/l4t.csv": "lib, /usr/lib/gone.so.1\nsym, /usr/lib/aarch64-linux-gnu/libcuda.so.1\n"
                          "dev, /dev/nvhost*\n#lib, /x\n", f"{LISTS}/note.txt": "lib, /y\n"},
     {"mount_lists": (f"{LISTS}/l4t.csv",), "mounts_missing": ("/usr/lib/gone.so.1",)}),
    ("a Jetson without mount lists", "jetson-orin", {}, {"mount_lists": (), "mounts_missing": None}),
)  # fmt: skip
def test_what_a_host_has(probed: Probed, about: str, tree: str, changes: Changes, expected: Expected) -> None:
    assert fields(look(probed, tree, changes).container_host, expected) == expected


@cases("text", "{", "[]", '{"runtimes": []}', '{"runtimes": {}}', "\udcff" * 3)
def test_a_configuration_that_adds_nothing(probed: Probed, text: str) -> None:
    content = text.encode("utf-8", "surrogateescape").decode("latin-1")
    assert known(look(probed, HOST, {"/etc/docker/daemon.json": content}).container_host).runtimes in ((), None)


def boxed(probed: Probed, mounts: str = "", **tree: str) -> Platform:
    """A container of Docker on a Jetson, with further mounts."""
    mounted = {"/proc/self/mountinfo": f"600 500 0:60 / / rw - overlay overlay rw\n{mounts}"}
    paths = {"release": "/etc/nv_tegra_release", "apt": APT}
    files = {paths[name]: content for name, content in tree.items()}
    return look(probed, "jetson-orin", {"/.dockerenv": "", **mounted, "/etc/nv_tegra_release": None, **files})


def mount(path: str) -> str:
    return f"610 600 259:1 {path} {path} ro,relatime - ext4 /dev/nvme0n1p1 rw\n"


def test_the_release_file_of_an_image_is_not_the_hosts(probed: Probed) -> None:
    platform = boxed(probed, release=L4T_35)
    assert (platform.container, platform.tegra) == ("docker", True)
    assert (platform.tegra_release, platform.image_tegra_release) == (None, "35.4.1")


def test_the_release_file_that_was_mounted_is_the_hosts(probed: Probed) -> None:
    source = "deb https://repo.download.nvidia.com/jetson/common r36.4 main\n"
    platform = boxed(probed, mount("/etc/nv_tegra_release"), release=L4T_35, apt=source)
    assert (platform.tegra_release, platform.image_tegra_release) == ("35.4.1", "36.4")
    assert platform.source_of("image_tegra_release") == f"file {APT}"


def test_an_image_that_does_not_tell(probed: Probed) -> None:
    platform = boxed(probed, apt="# deb https://repo.download.nvidia.com/jetson/common r36.4 main\n")
    assert (platform.tegra_release, platform.image_tegra_release) == (None, None)


def test_whose_the_drivers_libraries_are(probed: Probed) -> None:
    folder, own = "/usr/lib/x86_64-linux-gnu", "\x7fELF\x02"
    paths = (f"{folder}/libcuda.so.580.65.06", "/usr/local/nvidia", "/usr/lib/with\\040blank")
    mounts = "600 500 0:60 / / rw - overlay overlay rw\n" + "".join(map(mount, paths))
    mounted = {
        f"{folder}/libcuda.so.580.65.06": True,
        f"{folder}/libcuda.so.570.86.15": False,
        "/usr/local/nvidia/lib64/libnvidia-ml.so.1": True,
    }
    tree = {"/proc/self/mountinfo": mounts, **dict.fromkeys(mounted, own)}
    found = known(known(probed("driver_files", None, tree).driver).libraries)
    assert {library.path: library.mounted for library in found.items} == mounted


def test_whose_they_are_is_open_without_proc(probed: Probed) -> None:
    found = known(known(probed("driver_files", HOST, {"/proc/self/mountinfo": None}).driver).libraries)
    assert {library.mounted for library in found.items} == {None}
