"""What a rule is given: its subject, and all that is known of the machine, of what nobody read as an empty record."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Literal, TypeAlias

import msgspec

from envcheck.compat.package_needs import marks_of, release_fits, release_for, release_rows
from envcheck.enrich.stated import driver_os, first_of
from envcheck.knowledge.error_lines import lines_with, named_by
from envcheck.knowledge.matrix import Matrix
from envcheck.knowledge.relations.driver import driver_runs_cuda, minimum_driver, newest_cuda_of
from envcheck.knowledge.relations.fit import Fit
from envcheck.knowledge.relations.gpu_code import compiler_of, cuda_serves
from envcheck.knowledge.tables import Machine, Os
from envcheck.knowledge.tables.software import ReleaseRow
from envcheck.model.checks import ASSUMED, Check
from envcheck.model.snapshot import (
    DeviceNode,
    Distribution,
    Driver,
    DriverLibrary,
    Environment,
    Framework,
    Gpu,
    Kernel,
    KernelModule,
    Library,
    Measurement,
    ObservedError,
    Platform,
    Snapshot,
    Told,
    Variables,
    frameworks_in,
    items_in,
)
from envcheck.model.versions import ComputeCapability, CudaVersion, DriverRelease
from envcheck.text.lazy import lazy_pattern

DRIVERS_FOR_GUESTS = frozenset({"vfio-pci", "pci-stub", "xen-pciback"})
"""Kernel drivers that reserve a GPU for a virtual machine."""
_GPU_NODE = lazy_pattern(r"/dev/nvidia\d+")
_OF_GPUS = ("nvidia-frontend", "nvidia")  # Names in /proc/devices, of older and of newer releases of the kernel module
_NODES = {"/dev/nvidiactl": ((*_OF_GPUS, "nvidiactl"), 255), "/dev/nvidia-uvm": (("nvidia-uvm",), 0)}
"""Whose devices the nodes besides the GPUs' are, and their minor numbers."""
_OTHER_FILES = "-bps"  # What ``ls -l`` begins a line with: regular files, block devices, FIFOs, sockets

LEAST_IMPORTANT = 2  # The importance of compilers, extensions of a framework, and those without a row in the matrix

KnownGpus: TypeAlias = tuple[tuple[Gpu, ComputeCapability], ...]  # GPUs with their compute capability


class Facts(msgspec.Struct, frozen=True, dict=True):
    """Everything a rule may read in addition to its subject. A record of the machine that nobody read is empty."""

    snapshot: Snapshot
    matrix: Matrix
    about: tuple[str, ...] = ()  # Names of the frameworks that a remedy is for; empty while rules judge

    @cached_property
    def judged(self) -> dict[tuple[str, int], Check | None]:
        """What the rules found, by their names and the identities of their subjects."""
        return {}

    @cached_property
    def os(self) -> Literal["linux", "windows", "macos"]:
        """The operating system; Linux if unknown."""
        return self.platform.os or "linux"

    @cached_property
    def platform(self) -> Platform:
        return self.snapshot.platform or Platform()

    @cached_property
    def kernel(self) -> Kernel:
        return self.snapshot.kernel or Kernel()

    @cached_property
    def module(self) -> KernelModule:
        return self.kernel.nvidia or KernelModule()

    @cached_property
    def driver(self) -> Driver:
        return self.snapshot.driver or Driver()

    @cached_property
    def variables(self) -> Variables:
        return self.snapshot.variables or Variables()

    @cached_property
    def told(self) -> Told:
        return self.snapshot.told or Told()

    @property
    def misses_no_gpu(self) -> bool:
        """Whether the program of a text is to do without a GPU: it hides all, or computes on a TPU."""
        return bool(self.told.hidden_on_purpose or self.told.on_tpu)

    @cached_property
    def driver_os(self) -> Os:
        """The operating system of the driver: inside WSL, Linux programs use the Windows driver."""
        return driver_os(self.snapshot.platform)

    @cached_property
    def gpus(self) -> tuple[Gpu, ...]:
        return items_in(self.snapshot.gpus)

    @cached_property
    def own_gpus(self) -> tuple[Gpu, ...]:
        """The GPUs of this system: without those reserved for a virtual machine or given to another container."""
        own = [gpu for gpu in self.gpus if gpu.kernel_driver not in DRIVERS_FOR_GUESTS]
        listed = [gpu for gpu in self.gpus if gpu.index is not None or gpu.cuda_ordinal is not None]
        if listed and self.in_container:
            nodes = [node.path for node in self.kernel.device_nodes or ()]
            own = [gpu for gpu in own if gpu in listed or f"/dev/nvidia{gpu.minor}" in nodes]
        return tuple(own)

    @cached_property
    def usable_gpus(self) -> tuple[Gpu, ...]:
        """The GPUs that CUDA enumerates; all own GPUs if CUDA was not asked."""
        return tuple(gpu for gpu in self.gpus if gpu.cuda_ordinal is not None) or self.own_gpus

    @cached_property
    def environment(self) -> Environment:
        """The environment that is judged."""
        return self.snapshot.judged_environment or Environment(key="")

    @property
    def python(self) -> str | None:
        """The version of its Python."""
        return self.environment.python

    @property
    def interpreter(self) -> str:
        """The path of its Python, or ``python`` where it is unknown."""
        return self.environment.executable or "python"

    @cached_property
    def markers(self) -> Mapping[str, str]:
        """The known environment markers (PEP 508) of that environment."""
        return marks_of(self.python, self.os, self.platform.machine)

    def variable(self, name: str) -> str | None:
        """Value of an environment variable; None if it is not set or was not read."""
        return self.variables.values.get(name)

    @cached_property
    def frameworks(self) -> tuple[Framework, ...]:
        """Those of the environment that is judged."""
        return frameworks_in(self.environment)

    @cached_property
    def distributions(self) -> tuple[Distribution, ...]:
        """Its installed packages whose metadata was read."""
        return self.environment.distributions or ()

    @cached_property
    def tried_frameworks(self) -> tuple[Framework, ...]:
        return tuple(found for found in self.frameworks if found.trial)

    @property
    def finds_no_gpu(self) -> bool:
        """Whether a framework that may be built for CUDA was asked and finds no GPU."""
        return any(each.gpu_available is False and not each.cpu_only and not each.hip for each in self.frameworks)

    @property
    def only_compiles_for_torch(self) -> bool:
        """Whether Triton stands beside PyTorch, of which only ``torch.compile`` needs it, and not beside vLLM."""
        names = {each.name for each in self.frameworks}
        return "torch" in names and "vllm" not in names

    @property
    def libraries(self) -> tuple[Library, ...]:
        """The copies of CUDA libraries that were found on this system."""
        return items_in(self.snapshot.libraries)

    def framework(self, name: str | None) -> Framework | None:
        return next((each for each in self.frameworks if each.name == name), None)

    @cached_property
    def packages(self) -> Mapping[str, Distribution]:
        """The same by name; of several of one name the first, which is imported. In one folder, a record without a
        list of files is what an interrupted installation left.
        """
        found: dict[str, Distribution] = {}
        for each in self.distributions:
            first = found.setdefault(each.name, each)
            beside = (first.path or "").rpartition("/")[0] == (each.path or "").rpartition("/")[0]
            if first.record is False and each.record and beside:
                found[each.name] = each
        return found

    def installed(self, name: str) -> Distribution | None:
        return self.packages.get(name)

    @property
    def versions(self) -> tuple[Framework | Distribution, ...]:
        """The frameworks of known version, then what is listed besides."""
        known = {each.name: each for each in self.frameworks if each.version}
        return (*known.values(), *(each for each in self.distributions if each.name not in known))

    @property
    def may_have_gpus(self) -> bool:
        """False only when every source was checked and this system has no GPU of its own."""
        listing = self.snapshot.gpus
        return listing is None or not listing.complete or bool(self.own_gpus)

    @property
    def is_assumed(self) -> bool:
        """Whether ``--assume`` or a target names the GPUs or the driver: nobody looked at that machine."""
        return any(record.source == ASSUMED for record in (*self.gpus, self.driver))

    @property
    def in_container(self) -> bool:
        return self.platform.container not in (None, "", "none")

    @property
    def on_plain_host(self) -> bool:
        """Whether this system has its own kernel and NVIDIA's own kernel module: no container, no WSL, no Jetson."""
        return not self.in_container and self.uses_linux_driver

    @property
    def known_to_be_host(self) -> bool:
        """Whether somebody looked for a container and found none: only a device node can withhold a GPU there."""
        return self.platform.container is not None and self.on_plain_host

    @property
    def uses_linux_driver(self) -> bool:
        """Whether the driver is NVIDIA's for Linux: in WSL it is Windows', on a Jetson part of the system."""
        return not self.platform.wsl and not self.on_tegra

    @property
    def on_tegra(self) -> bool:
        """Whether this is a Jetson or DRIVE system, or a container on one."""
        return bool(self.platform.tegra or self.platform.tegra_release)

    @property
    def processor(self) -> Machine:
        """The architecture for choosing wheels; x86_64 when it is unknown."""
        return "aarch64" if self.platform.on_arm or self.platform.tegra else "x86_64"

    @property
    def gpu_nodes(self) -> tuple[DeviceNode, ...] | None:
        """The device nodes of GPUs; None when they were not checked."""
        nodes = self.kernel.device_nodes
        return None if nodes is None else tuple(node for node in nodes if _GPU_NODE.fullmatch(node.path))

    @cached_property
    def foreign_nodes(self) -> tuple[tuple[DeviceNode, str], ...]:
        """The device nodes without which CUDA does not start that are not the kernel module's: other files or devices.

        Each with the number of the device that it should be, as in ``195:0``; empty where that is unknown.
        """
        numbers, found = self.kernel.device_numbers or {}, []
        for node in self.kernel.device_nodes or ():
            drivers, minor = _NODES.get(node.path, (_OF_GPUS, node.minor))
            if minor is None:
                continue
            expected = [f"{numbers[name]}:{minor}" for name in drivers if name in numbers]
            other_device = expected and node.number is not None and node.number not in expected
            if other_device or (node.mode and node.mode[0] in _OTHER_FILES):
                found.append((node, expected[0] if expected else ""))
        return tuple(found)

    @property
    def nvml_answers(self) -> bool:
        return self.driver.nvml is not None and self.driver.nvml.code == 0

    @property
    def cuda_answers(self) -> bool:
        return self.driver.cuda_init is not None and self.driver.cuda_init.code == 0

    @cached_property
    def gpus_with_capability(self) -> KnownGpus:
        """The usable GPUs whose compute capability is known."""
        pairs = ((gpu, ComputeCapability.parse(gpu.compute_capability)) for gpu in self.usable_gpus)
        return tuple((gpu, capability) for gpu, capability in pairs if capability is not None)

    @cached_property
    def release_text(self) -> str | None:
        """The driver's release: the running one, else the kernel module's, else that of the libraries on disk."""
        return release_in(self.snapshot)

    @cached_property
    def driver_release(self) -> DriverRelease | None:
        return DriverRelease.stated(self.release_text)

    @cached_property
    def supported_cuda(self) -> CudaVersion | None:
        """The newest CUDA version that the driver supports: as it reports, else by its branch."""
        reported, number = CudaVersion.parse(self.driver.cuda), self.driver_release
        return reported or (newest_cuda_of(self.matrix, number, self.driver_os) if number else None)

    def supports_natively(self, cuda: CudaVersion) -> bool | None:
        """Whether the driver supports ``cuda`` without minor-version compatibility; None when that is unknown."""
        return None if self.supported_cuda is None else self.supported_cuda >= cuda

    @property
    def supports_all_natively(self) -> bool:
        """Whether the driver supports the CUDA of every framework that states one, and there is one."""
        stated = [CudaVersion.parse(framework.cuda) for framework in self.frameworks]
        known = [cuda for cuda in stated if cuda is not None]
        return bool(known) and all(self.supports_natively(cuda) for cuda in known)

    def runs_builds_for(self, cuda: CudaVersion) -> bool:
        """Whether the driver runs builds for ``cuda``; true also where no driver is known."""
        number, reported = self.driver_release, CudaVersion.parse(self.driver.cuda)
        if number is not None:
            return driver_runs_cuda(self.matrix, number, cuda, self.driver_os, reported=reported).ok
        if reported is None or reported >= cuda:
            return True
        # A newer CUDA runs too where the oldest driver that supports what is reported is new enough for it.
        rows = (minimum_driver(self.matrix, version, self.driver_os) for version in (cuda, reported))
        needed, present = (DriverRelease.parse(row.driver) if row else None for row in rows)
        return needed is not None and present is not None and needed <= present

    def unserved_gpus(self, cuda: CudaVersion) -> tuple[tuple[Gpu, Fit], ...]:
        """The GPUs for which no CUDA of this major version has a target."""
        newest = max((each for each in self.matrix.cuda_rows if each.major == cuda.major), default=None)
        asked = ((gpu, cuda_serves(self.matrix, each, newest)) for gpu, each in self.gpus_with_capability if newest)
        return tuple((gpu, fit) for gpu, fit in asked if fit.bad)

    def rows_of_release(self, name: str, version: str | None) -> tuple[ReleaseRow, ...]:
        """The rows of the matrix about a release, for this driver's system and processor."""
        return release_rows(self.matrix, name, version or "", self.driver_os, self.processor)

    def fit_of_release(self, name: str, version: str | None, component: str, there: str) -> Fit | None:
        """Whether a release goes with a version of a component, here; None where no row tells."""
        return release_fits(self.matrix, name, version or "", component, there, self.driver_os, self.processor)

    def bounds_for(self, name: str, component: str, there: str, *, python: str | None = None) -> str:
        """The newest release of a package that is known to go with a component here, as bounds; empty for none."""
        os, processor = self.driver_os, self.processor
        return release_for(self.matrix, name, component, there, os, processor, python=python) or ""

    def is_main_framework(self, framework: Framework) -> bool:
        """Whether programs are written against it: it is no extension, no compiler and no inference engine.

        A failure of such a framework is a failure of its environment.
        """
        row = self.matrix.role_of(framework.name)
        return framework.extends is None and row is not None and row.role in ("framework", "library")

    def importance(self, framework: Framework) -> int:
        """How important a framework is, from 0: frameworks and engines, then libraries, then the rest."""
        row = self.matrix.role_of(framework.name)
        if row is None or row.role == "compiler" or (framework.extends is not None and row.role != "engine"):
            return LEAST_IMPORTANT
        return 1 if row.role == "library" else 0

    def compiles_its_code(self, framework: Framework) -> bool:
        """Whether its files hold only a part of the GPU code that it runs."""
        return self.matrix.has_trait(framework.name, "compiles-at-run-time")

    def other_cuda_builds(self, framework: Framework) -> tuple[Framework, ...]:
        """Other frameworks beside it that are built for CUDA, without the one that it extends."""
        others = (each for each in self.frameworks if each.name not in (framework.name, framework.extends))
        return tuple(
            each for each in others if self.is_main_framework(each) and each.cpu_only is False and not each.hip
        )

    def provides_gpu_support(self, framework: Framework) -> bool:
        """Whether the framework that it extends uses the GPU only through it: numba-cuda, or a CUDA plug-in of JAX."""
        base, own = self.framework(framework.extends), framework.source
        return base is not None and (base.read.get("cpu_only") == own or (base.cpu_only is None and base.cuda is None))

    def cuda_of_code(self, framework: Framework) -> CudaVersion | None:
        """The CUDA version whose PTX it holds: that of the compiler which wrote it, where a row tells, else its own."""
        rows = self.rows_of_release(framework.name, first_of(framework.version or ""))
        isa = next((row.ptx for row in rows if row.ptx), None)
        return compiler_of(self.matrix, isa) or CudaVersion.parse(framework.cuda)

    def lines_with(self, fragment: str) -> tuple[ObservedError, ...]:
        """The lines of a text in which a fragment of ``matrix/errors.toml`` is."""
        return lines_with(fragment, self.snapshot.observed_errors)

    @cached_property
    def complains_of_speed(self) -> bool:
        """Whether a line of a text says that a program is slow, other than by naming what costs speed."""
        slow = (each.text for each in self.lines_with("slow-or-hanging"))
        return any((line := named_by(text)) is None or not line.costs_speed for text in slow)


def release_in(snapshot: Snapshot) -> str | None:
    """The driver's release in a Snapshot. Of the libraries on disk, libcuda decides: programs load it."""
    driver, kernel = snapshot.driver, snapshot.kernel
    if driver and driver.release:
        return driver.release
    if kernel and kernel.nvidia and kernel.nvidia.version:
        return kernel.nvidia.version
    library = library_on_disk(snapshot)
    return library.version if library else None


def library_on_disk(snapshot: Snapshot) -> DriverLibrary | None:
    """A driver library with a known release, preferably libcuda."""
    driver = snapshot.driver
    libraries = driver.libraries.items if driver and driver.libraries else ()
    known = [library for library in libraries if library.kind == "driver" and library.version and not library.refused]
    return next((library for library in known if "/libcuda.so" in library.path), known[0] if known else None)


class MeasurementSubject(msgspec.Struct, frozen=True):
    gpu: Gpu
    measurement: Measurement


Subject: TypeAlias = Snapshot | Gpu | Environment | Framework | MeasurementSubject
