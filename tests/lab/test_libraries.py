"""The inventory of libraries on real wheels, conda packages, Debian packages, an rpm database and a toolkit."""

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from envcheck.model.snapshot import Library, Snapshot
from tests.known import known
from tests.lab.debian_driver import SECONDS, _apt, _private_apt
from tests.lab.inventory import inventory
from tests.probes.owners.test_owner_rpm import CUBLAS, PATH

pytestmark = pytest.mark.lab

X86_64 = pytest.mark.skipif(platform.machine() != "x86_64", reason="the wheels asked for are for x86_64")


class Lab:
    """A virtual environment that wheels are put into."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.prefix = folder / "env"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", self.prefix], check=True)

    def pip(self, *words: str) -> None:
        command = [sys.executable, "-m", "pip", "--python", str(self.prefix), *words]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=1800)
        if done.returncode != 0:
            pytest.skip(f"pip {words[0]}: {(done.stderr.strip().splitlines() or ['no reason given'])[-1]}")

    def install(self, *wheels: str) -> None:
        self.pip("install", "-q", "--no-deps", "--only-binary=:all:", "--no-cache-dir", *wheels)

    def look(self) -> Snapshot:
        return inventory({"python": [str(self.prefix)]})

    def found(self) -> dict[str, Library]:
        """By family; only what lies in this environment."""
        libraries = self.look().libraries
        assert libraries is not None
        assert libraries.complete
        return {item.family: item for item in libraries.items if item.environment == str(self.prefix)}


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    yield Lab(tmp_path)
    shutil.rmtree(tmp_path / "env", ignore_errors=True)  # gigabytes, of which pytest would keep three


# --- wheels -------------------------------------------------------------------------------------------------------
TELL = {
    "nvidia-cuda-runtime-cu11==11.7.99": ("cudart", "11.7"),
    "nvidia-cuda-runtime-cu12==12.4.127": ("cudart", "12.4"),
    "nvidia-cuda-nvrtc-cu12==12.4.127": ("nvrtc", "12.4"),
    "nvidia-nvjitlink-cu12==12.4.127": ("nvJitLink", "12.4"),
    "nvidia-curand-cu12==10.3.5.147": ("curand", "10.3.5"),
    "nvidia-cusolver-cu12==11.6.1.9": ("cusolver", "11.6.1"),
    "nvidia-nccl-cu11==2.14.3": ("nccl", "2.14.3"),
    "nvidia-cufile-cu12==1.11.1.6": ("cufile", "1.11.1.6"),
    "tensorrt-dispatch-cu12-libs==11.4.0.106": ("nvinfer_dispatch", "11.4.0.106"),
}
"""Wheels, and what the library in them says of itself."""


@X86_64
@pytest.mark.parametrize("wheel", TELL)
def test_the_file_of_a_wheel_tells_its_version(lab: Lab, wheel: str) -> None:
    lab.install(wheel)
    family, version = TELL[wheel]
    found = lab.found()[family]
    assert (found.owner, found.declared, found.altered) == (wheel, wheel.partition("==")[2], False)
    assert found.on_disk is not None
    assert f"{found.on_disk}.".startswith(f"{version}.")
    assert known(found.cuda).split(".")[0] in ("11", "12")


def test_a_file_for_another_processor_tells_its_version(tmp_path: Path) -> None:
    site = tmp_path / "site"
    command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--only-binary=:all:", "--target", str(site)]
    command += ["--platform", "manylinux2014_aarch64", "nvidia-cuda-runtime-cu12==12.6.77"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    if done.returncode != 0:
        pytest.skip((done.stderr.strip().splitlines() or ["no reason given"])[-1])
    snapshot = inventory({"python": [str(Path(sys.executable).resolve())], "variables": {"PYTHONPATH": str(site)}})
    (found,) = [item for item in known(snapshot.libraries).items if item.path.startswith(str(site))]
    assert (found.family, found.on_disk, found.declared) == ("cudart", "12.6", "12.6.77")


@X86_64
def test_two_cudnn_wheels_in_one_place(lab: Lab) -> None:
    lab.install("nvidia-cudnn-cu12==9.1.0.70")
    before = lab.found()["cudnn"]
    assert (before.on_disk, before.cuda, before.claimed_by) == ("9.1.0", "12.4", ())
    lab.install("nvidia-cudnn-cu11==9.10.2.21")
    both = ("nvidia-cudnn-cu11==9.10.2.21", "nvidia-cudnn-cu12==9.1.0.70")
    found = lab.found()
    for family in ("cudnn", "cudnn_ops", "cudnn_graph", "cudnn_adv", "cudnn_cnn"):
        library = found[family]
        assert tuple(sorted(library.claimed_by)) == both, family
        assert (library.owner, library.declared, library.altered) == (both[0], "9.10.2.21", False), family
        assert library.on_disk == "9.10.2", family
    assert found["cudnn"].cuda == "11.8"
    lab.pip("uninstall", "-q", "--yes", "nvidia-cudnn-cu11")
    assert not any(family.startswith("cudnn") for family in lab.found())
    environments = lab.look().environments
    shipped = known(environments).items[0].shipped
    assert shipped
    assert {(file.package, file.kind) for file in shipped.damaged} == {("nvidia-cudnn-cu12", "missing")}
    assert any(file.path.endswith("/libcudnn.so.9") for file in shipped.damaged)


@X86_64
def test_nccl_for_two_cudas_in_one_place(lab: Lab) -> None:
    lab.install("nvidia-nccl-cu12==2.21.5")
    lab.install("nvidia-nccl-cu13==2.27.7")
    found = lab.found()["nccl"]
    assert set(found.claimed_by) == {"nvidia-nccl-cu12==2.21.5", "nvidia-nccl-cu13==2.27.7"}
    assert (found.owner, found.on_disk, found.altered) == ("nvidia-nccl-cu13==2.27.7", "2.27.7", False)
    assert known(found.cuda).startswith("13.")
    assert found.gpu_code is not None


# --- conda --------------------------------------------------------------------------------------------------------
INSTALL = """
import asyncio, hashlib, io, json, sys, tarfile
from pathlib import Path
from rattler import BuildString, PackageRecord, RepoDataRecord, install

folder, prefix, library = map(Path, sys.argv[1:])
real, link = "targets/x86_64-linux/lib/libcudart.so.12.4.127", "lib/libcudart.so.12"
data = library.read_bytes()

def digest(raw):
    return hashlib.sha256(raw).hexdigest()

def put(archive, name, raw):
    member = tarfile.TarInfo(name)
    member.size = len(raw)
    archive.addfile(member, io.BytesIO(raw))

index = {"name": "cuda-cudart", "version": "12.4.127", "build": "he02047a_2", "build_number": 2, "depends": [],
         "subdir": "linux-64"}
paths = [{"_path": real, "path_type": "hardlink", "sha256": digest(data), "size_in_bytes": len(data)},
         {"_path": link, "path_type": "softlink", "sha256": digest(b""), "size_in_bytes": 0}]
package = folder / "cuda-cudart-12.4.127-he02047a_2.tar.bz2"
with tarfile.open(package, "w:bz2") as archive:
    put(archive, "info/index.json", json.dumps(index).encode())
    put(archive, "info/paths.json", json.dumps({"paths": paths, "paths_version": 1}).encode())
    put(archive, "info/files", f"{real}\\n{link}\\n".encode())
    put(archive, real, data)
    member = tarfile.TarInfo(link)
    member.type, member.linkname = tarfile.SYMTYPE, f"../{real}"
    archive.addfile(member)
record = PackageRecord("cuda-cudart", "12.4.127", BuildString("he02047a_2"), 2, "linux-64",
                       sha256=hashlib.sha256(package.read_bytes()).digest(), size=package.stat().st_size)
records = [RepoDataRecord(record, package.name, package.as_uri(), folder.as_uri())]
asyncio.run(install(records, target_prefix=prefix, cache_dir=folder / "cache", show_progress=False))
"""
"""Put NVIDIA's file into a conda package, and have a real installer of conda packages (pixi's) install that."""


@X86_64
def test_a_conda_package_put_there_by_a_real_installer(lab: Lab) -> None:
    lab.install("nvidia-cuda-runtime-cu12==12.4.127", "py-rattler")
    library = lab.found()["cudart"].path
    prefix = lab.folder / "conda"
    command = [lab.prefix / "bin" / "python", "-c", INSTALL, lab.folder, prefix, library]
    subprocess.run(list(map(str, command)), check=True, timeout=300, capture_output=True)
    snapshot = inventory({"python": [str(prefix)]})
    assert snapshot.libraries is not None
    (found,) = [item for item in snapshot.libraries.items if item.environment == str(prefix)]
    assert (found.owner, found.declared, found.altered, found.origin) == (
        "cuda-cudart 12.4.127", "12.4.127", False, "conda",
    )  # fmt: skip
    assert found.names == (f"{prefix}/lib/libcudart.so.12",)
    Path(found.path).write_bytes(Path(found.path).read_bytes() + b"\0")
    snapshot = inventory({"python": [str(prefix)]})
    assert [item.altered for item in known(snapshot.libraries).items if item.environment == str(prefix)] == [True]


# --- systems ------------------------------------------------------------------------------------------------------
DEBIAN = {
    "libcudart11.0": ("cudart", "11.8.89"), "libnvrtc11.2": ("nvrtc", "11.8.89"),
    "libnvtoolsext1": ("nvToolsExt", "11.8.86"), "libcupti11.8": ("cupti", "11.8.87"),
    "libcurand10": ("curand", "10.3.0.86"), "libcuda1": ("cuda", None), "libnvidia-ml1": ("nvidia-ml", None),
}  # fmt: skip
"""Debian's packages of CUDA 11.8 and of the driver: the family in each, and its version where that is CUDA's."""


@X86_64
def test_debian_s_packages_in_a_root_of_their_own(tmp_path: Path) -> None:
    if not all(map(shutil.which, ("apt-get", "apt-cache", "dpkg"))):
        pytest.skip("needs apt and dpkg")
    options = _private_apt(tmp_path)
    _apt(tmp_path, "apt-get", *options, "update")
    _apt(tmp_path, "apt-get", *options, "download", *DEBIAN)
    root = tmp_path / "root"
    _unpack(root, tmp_path)
    snapshot = inventory({"root": str(root), "python": []})
    found = {item.family: item for item in known(snapshot.libraries).items}
    for package, (family, version) in DEBIAN.items():
        library = found[family]
        said = subprocess.run(
            ["dpkg-query", f"--admindir={root}/var/lib/dpkg", "-W", "-f", "${Package} ${Version}", package],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        assert library.owner == said
        assert version in (None, library.declared)
        assert library.cuda == ("11.8" if version else None), family
        assert library.origin == ("system" if version else "driver")
        assert library.on_disk in (library.declared, None), family
    shutil.rmtree(root)


def _unpack(root: Path, archives: Path) -> None:
    """Let dpkg itself keep its database below ``root``; the maintainers' scripts are not run by unpacking."""
    for name in ("info", "updates", "triggers"):
        (root / "var/lib/dpkg" / name).mkdir(parents=True)
    (root / "var/lib/dpkg/status").touch()
    command = ["dpkg", f"--root={root}", "--force-all", "--no-triggers", "--unpack", *map(str, archives.glob("*.deb"))]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=SECONDS)
    if done.returncode != 0:
        pytest.skip(f"dpkg --unpack: {(done.stderr.strip().splitlines() or ['no reason given'])[-1]}")


RPM = (
    "rpm", "rpm-common", "librpm9", "librpmio9", "librpmbuild9", "librpmsign9", "liblua5.3-0", "libpopt0", "libdw1",
    "libelf1", "debugedit",
)  # fmt: skip
SPEC = (Path(__file__).with_name("data") / "libcublas.spec").read_text(encoding="utf-8")


def test_a_database_that_rpm_wrote(tmp_path: Path) -> None:
    rpm = _rpm(tmp_path)
    (tmp_path / "x.spec").write_text(SPEC)
    rpm("rpmbuild", "-bb", "--define", f"_topdir {tmp_path}/top", f"{tmp_path}/x.spec")
    (package,) = (tmp_path / "top").rglob("*.rpm")
    root = tmp_path / "machine"
    (root / "var/lib/rpm").mkdir(parents=True)
    place = root / "usr/lib64/libcublas.so.12.4.5.8"
    place.parent.mkdir(parents=True)
    place.write_bytes(b"12345")
    database = ("--root", str(root), "--dbpath", "/var/lib/rpm", "--define", "_db_backend sqlite")
    rpm("rpm", *database, "-i", "--justdb", "--nodeps", "--ignorearch", "--nosignature", str(package))
    snapshot = inventory({"root": str(root), "python": []})
    assert snapshot.libraries is not None
    (found,) = snapshot.libraries.items
    assert (found.owner, found.declared, found.altered, found.cuda) == (
        "libcublas-12-4 12.4.5.8-1", "12.4.5.8", False, "12.4",
    )  # fmt: skip
    place.write_bytes(b"123456")
    snapshot = inventory({"root": str(root), "python": []})
    assert [item.altered for item in known(snapshot.libraries).items] == [True]


def test_a_database_of_the_older_form(tmp_path: Path) -> None:
    """Berkeley DB's own tool writes the file, of headers of this test's making: Debian's rpm only reads that form."""
    _apt(tmp_path, "apt-get", "download", "db5.3-util", "libdb5.3")
    for archive in tmp_path.glob("*.deb"):
        subprocess.run(["dpkg", "-x", archive, tmp_path / "tools"], check=True, timeout=SECONDS)
    (library,) = (tmp_path / "tools").rglob("libdb-5.3.so")
    root = tmp_path / "machine"
    (root / "var/lib/rpm").mkdir(parents=True)
    place = root / PATH.lstrip("/")
    place.parent.mkdir(parents=True)
    place.write_bytes(b"12")
    lines = ["VERSION=3", "format=bytevalue", "type=hash", "HEADER=END", f" {bytes(4).hex()}", f" {bytes(4).hex()}"]
    for number in range(1, 2000):
        blob = CUBLAS if number == 1500 else CUBLAS.replace(b"libcublas-12-4", b"bash-package-1") + bytes(number * 7)
        lines += [f" {number.to_bytes(4, 'little').hex()}", f" {blob.hex()}"]
    subprocess.run(
        [tmp_path / "tools/usr/bin/db5.3_load", root / "var/lib/rpm/Packages"],
        input="\n".join([*lines, "DATA=END", ""]).encode(),
        env={"LD_LIBRARY_PATH": str(library.parent)},
        check=True,
        timeout=SECONDS,
    )
    snapshot = inventory({"root": str(root), "python": []})
    (found,) = known(snapshot.libraries).items
    assert (found.owner, found.altered) == ("libcublas-12-4 12.4.5.8-1", False)


def _rpm(folder: Path) -> Callable[..., None]:
    """Debian's rpm, unpacked and not installed, as a function of its program and words."""
    if not all(map(shutil.which, ("apt-get", "dpkg"))):
        pytest.skip("needs apt and dpkg")
    _apt(folder, "apt-get", "download", *RPM)
    for archive in folder.glob("*.deb"):
        subprocess.run(["dpkg", "-x", archive, folder / "rpm"], check=True, timeout=SECONDS)
    libraries = [str(path) for path in (folder / "rpm").glob("*/lib/*-linux-gnu")]
    libraries += [str(path) for path in (folder / "rpm").glob("lib/*-linux-gnu")]
    variables = {
        "PATH": f"{folder}/rpm/usr/bin:{os.environ['PATH']}",
        "LD_LIBRARY_PATH": ":".join(libraries),
        "RPM_CONFIGDIR": f"{folder}/rpm/usr/lib/rpm",
        "HOME": str(folder),
    }

    def call(program: str, *words: str) -> None:
        command = [f"{folder}/rpm/usr/bin/{program}", *words]
        done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False, timeout=SECONDS)
        assert done.returncode == 0, done.stderr

    return call


def test_the_toolkit_of_this_machine() -> None:
    tops = sorted(path for path in Path("/usr/local").glob("cuda-*") if (path / "bin/nvcc").exists())
    if not tops:
        pytest.skip("no CUDA toolkit in /usr/local")
    top = tops[0].resolve()
    release = subprocess.run([top / "bin/nvcc", "--version"], capture_output=True, text=True, check=True).stdout
    snapshot = inventory({"python": []})
    assert snapshot.libraries is not None
    cudart = {item.family: item for item in snapshot.libraries.items if item.path.startswith(f"{top}/")}["cudart"]
    major_minor = ".".join(known(cudart.on_disk).split(".")[:2])
    assert f"release {major_minor}," in release
    assert (cudart.cuda, cudart.origin) == (major_minor, "toolkit")
    assert cudart.owner is not None
