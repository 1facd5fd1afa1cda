"""The rules about container hosts and images, and about WSL, on constructed machines."""

from typing import Any

from envcheck.model.snapshot import ContainerHost, DriverLibrary, Listing, ObservedError, Platform, Snapshot
from tests.every import every
from tests.rules.machines import (
    DOCKER,
    JETSON,
    NO_DEVICE,
    NO_LIBCUDA,
    UBUNTU,
    answered,
    but,
    cause,
    check_of,
    driver,
    kernel,
    library,
    machine,
    statuses,
    variables,
    without_gpu,
)

Case = tuple[str, str, Snapshot, tuple[str, ...]]

# --- container hosts ----------------------------------------------------------------------------------------------
CTK, HOOK, DOCKER_CLI = "/usr/bin/nvidia-ctk", "/usr/bin/nvidia-container-runtime-hook", "/usr/bin/docker"
CDI = "/etc/cdi/nvidia.yaml"
LISTS = "/etc/nvidia-container-runtime/host-files-for-container.d"


def host(*engines: str, toolkit: tuple[str, ...] = (), platform: Platform = UBUNTU, **more: Any) -> Snapshot:
    found = ContainerHost(source="file", engines=engines, toolkit=toolkit, **{"runtimes": (), "cdi": (), **more})
    return machine(platform=but(platform, container_host=found))


HOSTS: list[Case] = [
    ("container-toolkit-missing", "no engine", host(), ()),
    ("container-toolkit-missing", "docker without it", host(DOCKER_CLI), ("note",)),
    ("container-toolkit-missing", "podman without it", host("/usr/bin/podman"), ("note",)),
    ("container-toolkit-missing", "docker with its hook", host(DOCKER_CLI, toolkit=(CTK, HOOK)), ("pass",)),
    ("container-toolkit-missing", "joined to nothing", host(DOCKER_CLI, toolkit=(CTK,)), ("note",)),
    ("container-toolkit-missing", "a runtime", host(DOCKER_CLI, toolkit=(CTK,), runtimes=("nvidia",)), ("pass",)),
    ("container-toolkit-missing", "podman with CDI", host("/usr/bin/podman", toolkit=(CTK,), cdi=(CDI,)), ("pass",)),
    ("container-toolkit-missing", "docker from a snap", host("/snap/bin/docker", toolkit=(CTK, HOOK)), ("note",)),
    ("container-toolkit-missing", "two dockers", host("/snap/bin/docker", DOCKER_CLI, toolkit=(HOOK,)), ("pass",)),
    ("container-toolkit-missing", "a container", machine(platform=DOCKER), ()),
    ("container-toolkit-missing", "nobody looked", machine(), ()),
    ("container-toolkit-missing", "no driver to give", but(without_gpu(), platform=host(DOCKER_CLI).platform), ()),
    ("container-toolkit-missing", "a Jetson without mount lists",
     host(DOCKER_CLI, toolkit=(CTK, HOOK), platform=JETSON, mount_lists=()), ("note",)),
    (
        "container-toolkit-missing",
        "a Jetson whose lists name what is gone",
        host(
            DOCKER_CLI,
            toolkit=(CTK, HOOK),
            platform=JETSON,
            mount_lists=(f"{LISTS}/l4t.csv",),
            mounts_missing=("/usr/lib/x.so",),
        ),
        ("note",),
    ),
]  # fmt: skip


def test_the_way_to_the_toolkit_fits_distribution_and_engine() -> None:
    ubuntu = check_of("container-toolkit-missing", host(DOCKER_CLI)).fixes
    assert [fix.command[:3] for fix in ubuntu] == [
        ("sudo", "apt-get", "install"),
        ("sudo", "nvidia-ctk", "runtime"),
        ("sudo", "systemctl", "restart"),
    ]
    fedora = but(UBUNTU, distribution="fedora", distribution_like=())
    found = check_of("container-toolkit-missing", host("/usr/bin/podman", platform=fedora)).fixes
    assert found[0].command == ("sudo", "dnf", "install", "nvidia-container-toolkit")
    assert found[1].command[:3] == ("sudo", "nvidia-ctk", "cdi")
    snap = check_of("container-toolkit-missing", host("/snap/bin/docker", toolkit=(CTK, HOOK)))
    assert snap.fixes[0].command == ("sudo", "snap", "remove", "docker")
    assert snap.fixes[0].risk


# --- driver libraries in images -----------------------------------------------------------------------------------
FOLDER = "/usr/lib/x86_64-linux-gnu"
OLDER = "535.54.03"


def put_in(release: str, soname: str = "libcuda.so.1", *, mounted: bool | None, met: bool = True) -> DriverLibrary:
    return but(library(soname, release), mounted=mounted, found_as=(f"{FOLDER}/{soname}",) if met else ())


def boxed(*libraries: DriverLibrary, complete: bool = True, **changes: Any) -> Snapshot:
    return machine(platform=DOCKER, driver=driver(libraries=Listing(items=libraries, complete=complete), **changes))


OURS = put_in("550.54.14", mounted=True)
MISMATCH: dict[str, Any] = {
    "nvml": answered("nvmlInit", 18, "LIB_RM_VERSION_MISMATCH"),
    "cuda_init": answered("cuInit", 803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"),
    "cuda_devices": None,
}
THEIRS_FIRST = boxed(put_in(OLDER, mounted=False), put_in("550.54.14", mounted=True, met=False), **MISMATCH)

IMAGES: list[Case] = [
    ("driver-libraries-in-image", "the host's alone", boxed(OURS), ("pass",)),
    ("driver-libraries-in-image", "another release is met first", THEIRS_FIRST, ("fail",)),
    ("driver-libraries-in-image", "another release behind", boxed(OURS, put_in(OLDER, mounted=False)), ("note",)),
    ("driver-libraries-in-image", "another release of NVML is met first",
     boxed(OURS, put_in(OLDER, "libnvidia-ml.so.1", mounted=False), **MISMATCH), ("fail",)),
    ("driver-libraries-in-image", "of the host's release", boxed(put_in("550.54.14", mounted=False)), ("pass",)),
    ("driver-libraries-in-image", "whose it is is not known", boxed(put_in(OLDER, mounted=None)), ()),
    ("driver-libraries-in-image", "not all were seen", boxed(OURS, complete=False), ()),
    ("driver-libraries-in-image", "a compat package", boxed(OURS, but(put_in(OLDER, mounted=False), kind="compat")),
     ("pass",)),
    ("driver-libraries-in-image", "no container", but(THEIRS_FIRST, platform=UBUNTU), ()),
    ("driver-libraries-in-image", "WSL has other libraries", but(THEIRS_FIRST, platform__wsl=True), ()),
    ("driver-libraries-in-image", "the module is not known", but(THEIRS_FIRST, kernel=kernel(nvidia=None)), ()),
]  # fmt: skip


def test_the_image_explains_the_mismatch_and_names_the_file() -> None:
    assert cause(THEIRS_FIRST) == "driver-libraries-in-image"
    assert check_of("driver-library-mismatch", THEIRS_FIRST).explained_by == "driver-libraries-in-image@machine"
    found = check_of("driver-libraries-in-image", THEIRS_FIRST)
    assert found.title == f"The image contains driver libraries of version {OLDER}"
    assert any(each.value.startswith(f"{FOLDER}/libcuda.so.{OLDER}") for each in found.evidence)
    assert found.fixes[0].command == ("dpkg", "-S", f"{FOLDER}/libcuda.so.{OLDER}")


# --- containers with the driver's utilities alone -----------------------------------------------------------------
UTILITY = machine(
    platform=DOCKER,
    driver=driver(
        cuda_init=NO_LIBCUDA,
        cuda_devices=None,
        cuda_device_count=None,
        libraries=Listing(items=(put_in("550.54.14", "libnvidia-ml.so.1", mounted=True),), complete=True),
    ),
    variables=variables(NVIDIA_DRIVER_CAPABILITIES="utility"),
)


def test_a_container_for_utilities_alone_is_told_how_to_get_cuda() -> None:
    found = check_of("container-without-gpu", UTILITY)
    assert (found.status, found.title) == ("fail", "The container has the driver's utilities, but not CUDA")
    assert ("NVIDIA_DRIVER_CAPABILITIES", "utility") in [(each.what, each.value) for each in found.evidence]
    assert "NVIDIA_DRIVER_CAPABILITIES=compute,utility" in found.fixes[0].text
    assert cause(UTILITY) == "container-without-gpu"
    assert check_of("gpu-init-failed", UTILITY).explained_by == "container-without-gpu@machine"


def test_a_libcuda_that_is_there_is_not_called_missing() -> None:
    listing = Listing(items=(OURS, put_in("550.54.14", "libnvidia-ml.so.1", mounted=True)), complete=True)
    assert check_of("container-without-gpu", but(UTILITY, driver__libraries=listing)).status == "pass"


# --- WSL ----------------------------------------------------------------------------------------------------------
WSL = but(UBUNTU, wsl=True)
WINDOWS_LIBCUDA = DriverLibrary(
    source="file", path="/usr/lib/wsl/lib/libcuda.so.1.1", soname="libcuda.so.1", kind="driver",
    found_as=("/usr/lib/wsl/lib/libcuda.so.1",),
)  # fmt: skip
LINUX_LIBCUDA = put_in("535.183.01", mounted=False)


def wsl(*libraries: DriverLibrary, works: bool, **changes: Any) -> Snapshot:
    fields: dict[str, Any] = {"libraries": Listing(items=libraries, complete=True), **changes}
    if not works:
        fields = {"cuda_init": NO_DEVICE, "cuda_devices": 0, "cuda_device_count": None, **fields}
    return machine(platform=WSL, driver=driver("566.36", **fields), kernel=kernel(0, nvidia=None))


def text_in_wsl(*lines: str, **changes: Any) -> Snapshot:
    errors = tuple(ObservedError(source="pasted text", text=line, line=1) for line in lines)
    return but(
        Snapshot(platform=Platform(source="pasted text", os="linux", wsl=True), observed_errors=errors), **changes
    )


NO_DEVICE_LINE = "Call to cuInit results in CUDA_ERROR_NO_DEVICE (100)"
ANSWERED = but(answered("cuInit"), library="/usr/lib/wsl/drivers/nv_dispi.inf_amd64_1/libcuda.so.1.1")

IN_WSL: list[Case] = [
    ("wsl-libcuda-shadowed", "Windows' alone", wsl(WINDOWS_LIBCUDA, works=True), ("pass",)),
    ("wsl-libcuda-shadowed", "a Linux driver first", wsl(LINUX_LIBCUDA, WINDOWS_LIBCUDA, works=False), ("fail",)),
    ("wsl-libcuda-shadowed", "a Linux driver alone", wsl(LINUX_LIBCUDA, works=False), ("fail",)),
    ("wsl-libcuda-shadowed", "a Linux driver behind",
     wsl(WINDOWS_LIBCUDA, LINUX_LIBCUDA, works=True, cuda_init=ANSWERED), ("note",)),
    ("wsl-libcuda-shadowed", "Windows gives no GPU", wsl(WINDOWS_LIBCUDA, works=False), ()),
    ("wsl-libcuda-shadowed", "CUDA was not asked", wsl(LINUX_LIBCUDA, works=False, cuda_init=None), ("fail",)),
    ("wsl-libcuda-shadowed", "mounted into a container",
     wsl(but(WINDOWS_LIBCUDA, path=f"{FOLDER}/libcuda.so.1.1", mounted=True), works=False), ()),
    ("wsl-libcuda-shadowed", "a copy that works",
     wsl(but(WINDOWS_LIBCUDA, path=f"{FOLDER}/libcuda.so.1.1", mounted=False), works=True), ("note",)),
    ("wsl-libcuda-shadowed", "no WSL", machine(), ()),
    ("wsl-libcuda-shadowed", "a text that says no more", text_in_wsl(NO_DEVICE_LINE), ("warn",)),
    ("wsl-libcuda-shadowed", "a text that names another problem",
     text_in_wsl(NO_DEVICE_LINE, "Failed to initialize NVML: Driver/library version mismatch"), ()),
    ("wsl-libcuda-shadowed", "a text in which the GPU is hidden on purpose",
     text_in_wsl(NO_DEVICE_LINE, variables=variables(CUDA_VISIBLE_DEVICES="")), ()),
    ("wsl-libcuda-shadowed", "a text that names a Linux driver's release",
     text_in_wsl("libcuda reported version is: 525.105.17"), ("fail",)),
    ("wsl-libcuda-shadowed", "a text that names no release",
     text_in_wsl('libcuda reported version is: Invalid argument: expected %d.%d for driver version; got "1"'), ()),
]  # fmt: skip


def test_what_shadows_windows_libcuda_is_named_and_explains_the_rest() -> None:
    shadowed = wsl(LINUX_LIBCUDA, WINDOWS_LIBCUDA, works=False)
    found = check_of("wsl-libcuda-shadowed", shadowed)
    assert f"{FOLDER}/libcuda.so.535.183.01" in found.evidence[0].value
    assert found.fixes[0].command[:4] == ("sudo", "apt-get", "remove", "--purge")
    assert cause(shadowed) == "wsl-libcuda-shadowed"


def test_a_folder_of_the_variable_is_taken_out_of_it() -> None:
    odd = but(LINUX_LIBCUDA, found_as=("/opt/old/libcuda.so.1",))
    snapshot = but(wsl(odd, WINDOWS_LIBCUDA, works=False), variables=variables(LD_LIBRARY_PATH="/opt/old:/x"))
    assert "Remove /opt/old from LD_LIBRARY_PATH" in check_of("wsl-libcuda-shadowed", snapshot).fixes[0].text


CASES: list[Case] = [*HOSTS, *IMAGES, *IN_WSL]


@every(CASES)
def test_rule(rule: str, case: str, snapshot: Snapshot, expected: tuple[str, ...]) -> None:
    assert statuses(rule, snapshot) == expected
