"""Fixes: commands that fit the environment's manager and the distribution, and the user's own way."""

import re

import msgspec

from envcheck.knowledge.load import load_matrix
from envcheck.model.checks import Fix
from envcheck.model.snapshot import Distribution, Driver, Environment, Framework, Listing, Platform, Snapshot
from envcheck.rules.api import Facts
from envcheck.rules.fixes.install import conda_command, in_user_site, install, one_bound, pip_command
from envcheck.rules.fixes.reinstall import reinstall
from tests.every import cases
from tests.rules.machines import (
    DOCKER,
    UBUNTU,
    VENV,
    but,
    check_of,
    driver,
    error,
    geforce,
    gpus,
    h200,
    judge,
    kernel,
    machine,
    not_loaded,
    on_the_bus,
    torch,
    unloaded,
    venv,
    with_venv,
    without_driver,
)

CPU_BUILD = torch("2.5.1+cpu", None)
INDEX = "https://download.pytorch.org/whl/"


def facts_of(environment: Environment) -> Facts:
    """The facts of a machine of which only this environment is known."""
    judged = msgspec.structs.replace(environment, judged=True)
    return Facts(Snapshot(environments=Listing(items=(judged,), complete=True)), load_matrix())


def mend(environment: Environment, release: str = "550.54.14", *found: object, **changes: object) -> tuple[Fix, ...]:
    """The fixes for the CPU build in this environment, on an H200 with this driver."""
    snapshot = machine(*found, driver=driver(release, cuda=None), kernel=kernel(release=release))  # type: ignore[arg-type]
    return check_of("cpu-only-build", but(with_venv(snapshot, environment), **changes)).fixes


def test_pip_by_the_environments_own_interpreter() -> None:
    (fix,) = mend(venv(CPU_BUILD))
    pip = (f"{VENV}/bin/python", "-m", "pip", "install")
    assert fix.command == (*pip, "torch==2.5.1+cu124", "--index-url", f"{INDEX}cu124")
    assert (fix.who, bool(fix.risk)) == ("user", True)


def test_uv() -> None:
    (fix,) = mend(venv(CPU_BUILD, manager="uv"))
    assert fix.command == ("uv", "pip", "install", "--python", VENV, "torch==2.5.1+cu124", "--torch-backend=cu124")


def test_conda_for_what_conda_installed() -> None:
    package = Distribution(name="pytorch", version="2.5.1", channel="conda", build="py3.12_cpu_0")
    environment = venv(CPU_BUILD, manager="conda", prefix="/opt/conda/envs/ml", distributions=(package,))
    (fix,) = mend(environment)
    assert fix.command == (
        "conda",
        "install",
        "--prefix",
        "/opt/conda/envs/ml",
        "--channel",
        "conda-forge",
        "pytorch-gpu",
        "cuda-version=12.4",
    )


CONDA_META = f"{VENV}/conda-meta"
HUB_RECORD = Distribution(name="huggingface-hub", version="0.36.0", channel="conda", build="pyh_0",
    path=f"{CONDA_META}/huggingface_hub-0.36.0-pyh_0.json")  # fmt: skip
HUB_METADATA = Distribution(name="huggingface-hub", version="0.36.0", channel="pip", installer="conda")


@cases(
    "there, spec", (HUB_RECORD, "huggingface_hub"), (but(HUB_RECORD, path=f"{CONDA_META}/x.json"), "huggingface-hub")
)
def test_conda_is_asked_by_the_name_that_its_record_has(there: Distribution, spec: str) -> None:
    """Also where only the metadata for Python tells that the package is damaged."""
    facts = facts_of(venv(distributions=(HUB_METADATA, there), manager="conda"))
    conda = ("conda", "install", "--prefix", VENV, "--force-reinstall", "--no-deps", "--channel", "conda-forge")
    assert [fix.command for fix in reinstall((HUB_METADATA,), facts)] == [(*conda, f"{spec}=0.36.0=pyh_0")]
    (fix,) = install(facts, ("huggingface-hub<0.30",), "Install")
    assert fix.command[-1] == f"{spec}<0.30"


def test_what_conda_has_no_record_of_is_pips() -> None:
    (fix,) = reinstall((HUB_METADATA,), facts_of(venv(distributions=(HUB_METADATA,), manager="conda")))
    assert "pip" in fix.command


def test_pip_for_what_pip_installed_into_a_conda_environment() -> None:
    (fix,) = mend(venv(CPU_BUILD, manager="conda"))
    assert "--index-url" in fix.command


def test_a_virtual_environment_first_where_the_system_forbids_pip() -> None:
    first, second = mend(
        venv(CPU_BUILD, manager="system", externally_managed=True, executable="/usr/bin/python3", prefix="/usr")
    )
    assert first.command == ("/usr/bin/python3", "-m", "venv", ".venv")
    assert second.command[:5] == (".venv/bin/python", "-m", "pip", "install", "torch==2.5.1+cu124")


def test_the_companions_of_torch_come_along() -> None:
    together = tuple(
        Distribution(name=name, version=version, channel="pip")
        for name, version in (("torch", "2.5.1+cpu"), ("torchvision", "0.20.1+cpu"), ("numpy", "2.1"))
    )
    (fix,) = mend(venv(CPU_BUILD, distributions=together))
    assert "torchvision==0.20.1+cu124" in fix.command
    assert "torchaudio" not in " ".join(fix.command)
    assert "numpy" not in " ".join(fix.command)


def test_the_companions_are_known_to_be_built_for_that_cuda() -> None:
    """PyTorch 2.11 is built for CUDA 12.9 too, torchvision 0.26 is not; of torchaudio 2.11.1 no build is known."""
    old = {"torch": "2.11.0+cpu", "torchvision": "0.26.0+cpu", "torchaudio": "2.11.1"}
    listed = tuple(Distribution(name=name, version=version, channel="pip") for name, version in old.items())
    (fix,) = mend(venv(but(CPU_BUILD, version="2.11.0+cpu"), distributions=listed))
    wanted = ("torch==2.11.0+cu128", "torchvision==0.26.0+cu128", "torchaudio==2.11.0+cu128")
    assert fix.command[4:] == (*wanted, "--index-url", f"{INDEX}cu128")


@cases(
    "release, backend", ("550.54.14", "cu124"), ("580.65.06", "cu124"), ("535.183.01", "cu121"), ("450.80.02", "cu118")
)
def test_the_build_is_one_that_the_driver_cuda(release: str, backend: str) -> None:
    assert mend(venv(CPU_BUILD), release)[0].command[-1] == f"{INDEX}{backend}"


def test_the_newest_release_where_the_installed_one_has_no_build_that_fits() -> None:
    blackwell = geforce("NVIDIA GeForce RTX 5090", "12.0", "10de:2b85")
    (fix,) = mend(venv(CPU_BUILD), "580.65.06", blackwell)
    assert next(word for word in fix.command if word.startswith("torch==")) != "torch==2.5.1"
    assert fix.command[-1].startswith(f"{INDEX}cu1")


def test_a_page_where_nothing_is_known_to_fit() -> None:
    (fix,) = mend(venv(torch("2.5.1+cpu", None)), "390.87")
    assert fix.command == ()
    assert "pytorch.org" in fix.text
    other = with_venv(machine(), venv(Framework(name="jax", version="0.4.30", cpu_only=True)))
    assert check_of("cpu-only-build", other).fixes[0].command == ()


def test_builds_for_the_python_that_is_there() -> None:
    old = mend(venv(torch("2.13.0+cpu", None), python="3.9.18"))[0]
    assert "torch==2.13.0" not in old.command
    assert any(word.startswith("torch==2.") for word in old.command)


def tasks(release: str | None, spoken: str | None, *found: object, build: Framework = CPU_BUILD) -> list[str]:
    """What the fixes for the CPU build say, where no more than this is known of driver and GPU."""
    known = Driver(source="pasted text", release=release, cuda=spoken) if release or spoken else None
    wanted = error("CUDA error: boom").observed_errors
    snapshot = with_venv(Snapshot(driver=known, observed_errors=wanted, platform=UBUNTU), venv(build))
    with_gpus = but(snapshot, gpus=gpus(*found)) if found else snapshot  # type: ignore[arg-type]
    return [fix.text for fix in check_of("cpu-only-build", with_gpus).fixes]


def test_the_fix_says_what_it_was_chosen_for() -> None:
    both = "Install torch 2.5.1 built for cu124, which fits this driver and GPU"
    assert tasks("550.54.14", None, h200()) == [both]
    assert tasks("550.54.14", None) == ["Install torch 2.5.1 built for cu124, which fits this driver"]
    (open_driver,), (open_both,) = tasks(None, None, h200()), tasks(None, None)
    build, condition = r"Install torch 2\.5\.1 built for cu(\d\d)(\d)", r"the driver must run CUDA \1\.\2"
    assert re.fullmatch(f"{build}, which fits this GPU; {condition}", open_driver)
    assert re.fullmatch(f"{build}; {condition}", open_both)


@cases("spoken, version, build",
    ("13.0", "2.5.1+cpu", "2.5.1 built for cu124"), ("12.4", "2.5.1+cpu", "2.5.1 built for cu124"),
    ("11.8", "2.5.1+cpu", "2.5.1 built for cu118"), ("11.4", "2.5.1+cpu", "2.5.1 built for cu118"),
    ("12.0", "2.8.0+cpu", "2.8.0 built for cu12"), ("12.8", "2.11.0+cpu", "2.11.0 built for cu12"),
)  # fmt: skip
def test_what_the_driver_cuda_bounds_the_build_where_its_release_is_not_known(
    spoken: str, version: str, build: str
) -> None:
    """The last but one runs by minor-version compatibility; none gets a build for a newer major than it speaks."""
    (task,) = tasks(None, spoken, h200(), build=torch(version, None))
    assert task.startswith(f"Install torch {build}")


def test_wsl_gets_linux_wheels_by_windows_driver_numbers() -> None:
    wsl = Platform(os="linux", container="none", wsl=True, machine="x86_64")
    (fix,) = mend(venv(CPU_BUILD), "551.88", platform=wsl)
    assert fix.command[-1] == f"{INDEX}cu124"


def test_the_users_own_way_comes_before_the_administrators() -> None:
    snapshot = machine(driver=driver("570.86.10", cuda=None), kernel=kernel(release="570.86.10"))
    found = check_of("driver-too-old", with_venv(snapshot, venv(torch("2.11.0+cu130", "13.0", gpu_code=("sm_90",)))))
    assert [fix.who for fix in found.fixes] == ["user", "root"]
    assert found.fixes[0].command[-1] == f"{INDEX}cu128"
    assert found.fixes[1].command == ("sudo", "ubuntu-drivers", "install")
    assert "580" in found.fixes[1].text


def on(platform: Platform) -> Snapshot:
    return without_driver(platform=platform)


def distribution(name: str, *like: str) -> Platform:
    return but(UBUNTU, distribution=name, distribution_like=like)


@cases("platform, command",
    (UBUNTU, ("sudo", "ubuntu-drivers", "install")),
    (distribution("linuxmint", "ubuntu", "debian"), ("sudo", "ubuntu-drivers", "install")),
    (distribution("debian"), ("sudo", "apt-get", "install", "nvidia-driver")), (distribution("rhel", "fedora"), ()),
    (distribution("rocky", "rhel", "centos", "fedora"), ()), (distribution("opensuse-leap", "suse"), ()),
    (distribution("arch"), ()),
)  # fmt: skip
def test_the_driver_is_installed_by_the_distributions_means(platform: Platform, command: tuple[str, ...]) -> None:
    (fix,) = check_of("driver-not-installed", on(platform)).fixes
    assert (fix.command, fix.who) == (command, "root")
    assert command or "docs.nvidia.com" in fix.text
    assert fix.risk


def test_the_driver_of_a_container_is_the_hosts_and_of_wsl_windows() -> None:
    new = with_venv(machine(driver=driver("470.82.01", cuda=None), platform=DOCKER), venv(torch()))
    (*_, host) = check_of("driver-too-old", new).fixes
    assert (host.who, host.command) == ("cluster-admin", ())
    assert "host" in host.text
    wsl = Platform(os="linux", container="none", wsl=True, machine="x86_64")
    (*_, windows) = check_of("driver-too-old", but(new, platform=wsl)).fixes
    assert "in Windows" in windows.text
    assert windows.command == ()


def test_no_module_is_loaded_inside_wsl() -> None:
    said = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver."
    pasted = but(error(said), platform=Platform(source="pasted text", os="linux", wsl=True))
    found = check_of("driver-not-loaded", pasted)
    assert (found.status, found.fixes) == ("note", ())
    assert "Update the driver in Windows" in found.message


def test_an_older_branch_is_not_to_be_had_by_updating() -> None:
    old = geforce("NVIDIA GeForce GTX 1080 Ti", "6.1", "10de:1b06")
    ignored = but(on_the_bus(old), name=old.name)
    snapshot = machine(
        ignored, driver=driver("595.58.03", nvml=None, cuda_init=None), kernel=kernel(0, release="595.58.03")
    )
    (fix,) = check_of("gpu-unsupported-by-driver", snapshot).fixes
    assert "R580" in fix.text
    assert "ubuntu-drivers" not in fix.command


@cases(
    "platform, command",
    (UBUNTU, ("sudo", "update-initramfs", "-u")),
    (distribution("fedora"), ("sudo", "dracut", "--force")),
    (distribution("arch"), ()),
)
def test_the_initial_ramdisk_is_rebuilt_by_its_own_tool(platform: Platform, command: tuple[str, ...]) -> None:
    snapshot = not_loaded(kernel=unloaded(nouveau_loaded=True), platform=platform)
    taken = but(snapshot, gpus__items=(on_the_bus(h200(), "nouveau"),))
    assert check_of("nouveau-loaded", taken).fixes[0].command == command


def test_a_bus_id_that_is_none_is_put_into_no_command() -> None:
    odd = h200(pci_bus_id="0000:01:00.0; reboot", mig__enabled=True, mig__instances=(), power__limit=300.0)
    for each in judge(machine(odd)):
        for fix in each.fixes:
            assert all("reboot" not in word for word in fix.command)
            assert "; reboot" not in fix.text


def test_nothing_that_ends_work_is_a_users_command() -> None:
    """A reset or a restart is described, with its price, for who may do it."""
    broken = machine(h200(recovery_action="gpu_reset", ecc__volatile_uncorrected=1, row_remap__pending=True))
    fixes = [fix for each in judge(broken) for fix in each.fixes]
    assert fixes
    for fix in fixes:
        assert fix.who == "root"
        assert fix.risk
        assert not any("reset" in word for word in fix.command)


# --- The commands for packages, by the tool that fills the environment ----------------------------------------------
SITE = "/home/ada/.local/lib/python3.12/site-packages"


def environment(prefix: str = "/usr", *distributions: Distribution, **more: object) -> Environment:
    fields = {"base_prefix": "/usr", "python": "3.12.3", "executable": f"{prefix}/bin/python3", **more}
    return Environment(
        source="file", key=prefix, prefix=prefix, site_packages=(SITE, f"{prefix}/lib/python3.12/site-packages"),
        distributions=distributions, distributions_complete=True, **fields,  # type: ignore[arg-type]
    )  # fmt: skip


def package(name: str, folder: str, installer: str = "pip") -> Distribution:
    path = f"{folder}/{name}-1.0.dist-info"
    return Distribution(source=f"file {path}", name=name, version="1.0", path=path, installer=installer)


NUMPY = package("numpy", SITE)


@cases(
    "where, command",
    (environment("/usr", NUMPY), ("/usr/bin/python3", "-m", "pip", "install", "--user")),
    (environment("/venv", NUMPY), ("/usr/bin/python3.12", "-m", "pip", "install", "--user")),
    (environment("/venv", NUMPY, manager="uv"), ("/usr/bin/python3.12", "-m", "pip", "install", "--user")),
)
def test_a_package_of_the_user_site_is_installed_again_there(where: Environment, command: tuple[str, ...]) -> None:
    assert in_user_site(NUMPY, facts_of(where))
    (fix,) = [each for each in reinstall((NUMPY,), facts_of(where)) if "ensurepip" not in each.command]
    assert fix.command[:5] == command


def test_another_release_goes_into_the_virtual_environment_itself() -> None:
    """Its own folder comes before the user site, whose copy other programs use."""
    virtual = environment("/venv", NUMPY, manager="venv")
    for where, command in (
        (virtual, ("/venv/bin/python3", "-m", "pip", "install", "numpy>=2")),
        (msgspec.structs.replace(virtual, manager="uv"), ("uv", "pip", "install", "--python", "/venv", "numpy>=2")),
        (environment("/usr", NUMPY), ("/usr/bin/python3", "-m", "pip", "install", "--user", "numpy>=2")),
    ):
        found = install(facts_of(where), ("numpy>=2",), "x")
        assert [fix.command for fix in found if "ensurepip" not in fix.command] == [command]


def test_a_system_that_forbids_pip_is_told_to_allow_the_user_site() -> None:
    where = environment("/usr", NUMPY, externally_managed=True)
    assert "--break-system-packages" in pip_command(facts_of(where), "uninstall", "numpy", user=True)


@cases("folder", "/usr/lib/python3.12/site-packages", "/opt/other/lib/python3.12/site-packages")
def test_other_folders_are_no_user_site(folder: str) -> None:
    assert not in_user_site(package("numpy", folder), facts_of(environment("/usr")))


def test_an_environment_without_pip_gets_it_before_it_is_used() -> None:
    damaged = package("numpy", "/venv/lib/python3.12/site-packages")
    commands = [fix.command for fix in reinstall((damaged,), facts_of(environment("/venv", damaged, manager="venv")))]
    assert [command[2] for command in commands] == ["ensurepip", "pip"]
    with_uv = environment("/venv", package("numpy", "/venv/lib/python3.12/site-packages", "uv"))
    assert reinstall((damaged,), facts_of(with_uv))[0].command[:3] == ("uv", "pip", "install")


@cases("asked, wanted", (">=4.4 >=4.14.1 >=4.4.0", ">=4.14.1"), (">=2,!=3.1 <=4 <4", ">=2,<4,!=3.1"), (">=2 >2", ">2"),
    (">=2,!=1.5 ==2.*", ">=2,==2.*"), (">=2.0rc1 >=2.0", ">=2.0"), (">=2.0.post1 >=2.0", ">=2.0.post1"),
    ("<=2 <2", "<2"),
)  # fmt: skip
def test_of_bounds_that_others_imply_none_is_left(asked: str, wanted: str) -> None:
    assert one_bound(asked.split()) == wanted


def test_pixi_names_the_environment() -> None:
    where = facts_of(Environment(source="file", key="x", prefix="/p/.pixi/envs/gpu"))
    place = ("--manifest-path", "/p")
    assert conda_command(where, ["cudnn=9.1=h_0"], again=True)[2:] == (*place, "--environment", "gpu", "cudnn")
    assert conda_command(where, ["cudnn"])[2:] == (*place, "--feature", "gpu", "cudnn")


@cases("installer, bounds, again", ("pip", "<1.0", [True, False]), ("pip", ">=1.0", [False]), ("uv", "<1.0", [False]))
def test_what_lost_its_list_of_files_comes_back_before_pip_replaces_it(
    installer: str, bounds: str, again: list[bool]
) -> None:
    numpy, tool = (package(name, "/venv/lib/python3.12/site-packages", installer) for name in ("numpy", installer))
    where = environment("/venv", but(numpy, record=False), tool, judged=True)
    facts = Facts(Snapshot(environments=Listing(items=(where,), complete=True)), load_matrix())
    fixes = install(facts, (f"numpy{bounds}",), "x")
    assert ["--ignore-installed" in fix.command for fix in fixes] == again
