"""Lines in which DCGM, the kernel module, NCCL, schedulers and container tools report what they find, by problem."""

# ruff: noqa: E501  lines as the programs print them

from __future__ import annotations

EXAMPLES: dict[str, list[str]] = {
    "container-toolkit-missing": ["Error: couldn't find binary nvidia-container-cli in PATH: /usr/bin:/bin"],
    "container-without-gpu": [
        "WARNING: When using nvidia-container-cli with --contain NVIDIA_VISIBLE_DEVICES must be set or no GPUs will be available in container."
    ],
    "driver-not-installed": [
        'level=error msg="failed to generate CDI spec: failed to get libcuda.so parent directory: not found"',
        "error: failed to locate libraries for driver version 535.104.05: pattern libcuda.so.535.104.05 not found",
        "failed to locate driver libraries: failed to locate libnvidia-ml.so.1",
        "could not locate dxcore.dll at WSL driver store paths",
        "Internal error. Could not dlopen libcuda.so.",
    ],
    "driver-not-loaded": [
        "failed to create discoverer: no NVIDIA device nodes found",
        "No NVIDIA devices found in /run/nvidia/driver",
        "failed to load NVIDIA kernel modules: failed to load module nvidia: exit status 1",
    ],
    "fabric-manager-not-running": [
        "Error: GPU 3: Fabric State is Failed (3).",
        "Fabric Manager (Cluster UUID: 00000000-0000, Clique ID: 0, Health Mask: 0x0): training has not started.",
    ],
    "gpu-firmware-timeout": [
        "NVRM: _kgspRpcSanityCheck: GPU0 sanity check failed 0xf waiting for RPC response from GSP. Expected function 76",
        "NVRM: Rate limiting GSP RPC error prints for GPU at PCI:0:3b:0 (printing 1 of every 30).  The GPU likely needs to be reset.",
    ],
    "gpu-init-failed": [
        "GPU 2 failed to create a CUDA context: CUDA_ERROR_INVALID_VALUE",
        "NVRM: No interrupts of any type are available. Cannot use this GPU.",
        "NVRM: gpuInitVmmuInfo: Guest driver is incompatible with host driver",
    ],
    "gpu-lost": [
        "NVRM: GPU Config Space not accessible",
        "NVRM: intrGetPendingStall: Failed GPU reg read : 0xffffffff. Check whether GPU is present on the bus",
    ],
    "gpu-needs-reset": [
        "GPU 1 requires a reset to recover from a fault. Recovery action: 1 (GPU_RESET).",
        "GPU 1 fault may have left the OS in an inconsistent state. Recovery action: 2 (NODE_REBOOT).",
        "MIG is disabled, but set to be enabled on next GPU reset",
    ],
    "imex-not-ready": [
        "NVRM: failed to initialize IMEX channels.",
        "nv-caps-imex failed to create channel0.",
        "NVRM: Abrupt nvidia-imex daemon shutdown detected, disabled fabric allocations",
        "requested IMEX channel 7 does not exist",
        "IMEX domain status is DOWN (1)",
    ],
    "jetpack-mismatch": ["WARNING: Unsupported JetPack version detected.  GPU may not be supported"],
    "mig-without-instances": [
        "NVRM: Subscription failed: MIG GPU instancing not done",
        "NVRM: Compute instance Subscription failed: MIG GPU partitioning not done",
        "NVRM: Channel allocation not allowed when MIG is enabled without GPU instancing",
        "at least one MIG device is enabled but empty",
    ],
    "nccl-no-interface": ["node1:12:34 [0] NCCL WARN no device found matching eth7, verify NCCL_OOB_NET_IFNAME"],
    "nccl-version-mismatch": [
        "NCCL WARN The application was compiled with too old version of NCCL. It was compiled with NCCL version 22800",
        "Incompatible NCCL versions. nccl-tests was compiled with NCCL 22803, but is running with NCCL 22703.",
        "NCCLAlltoall requires NCCL version >= 2.7.0. If your NCCL installation cannot be updated",
    ],
    "nvlink-down": [
        "GPU 0's NvLink link 3 is currently down",
        "NvSwitch physical ID 2's NvLink port 11 is currently down.",
        "Only 16 NvLinks are up out of the expected 18",
        "Detected fatal errors on NvSwitch 1 link 4",
        "NVRM: NVLink: Link training failed for link 4(0x1, 0x2, 0x0, 0x0, 0x0, 0x0, 0x0)",
        "NVRM: Links failed to train for the given gpu pairs!",
        "nvidia-uvm: NVLINK error encountered, GPU ID 2: GPU-1b2c",
    ],
    "pcie-link-degraded": [
        "GPU 0 is running at PCI link width 4X, which is below the minimum allowed link generation of 16 (parameter 'test_unpinned.min_pci_width')"
    ],
    "peer-access-blocked": [
        "node1:12:34 [1] NCCL WARN failed to peer with device 2(=2): 217 peer access is not supported between these two devices",
        "DeviceImplementation > 1 requires CUDA P2P connectivity across all ranks. Not all ranks of this communicator have P2P connectivity.",
    ],
    "power-throttled": ["Detected clocks event due to power violation in GPU 0."],
    "ranks-share-gpu": [
        'NCCL_NVLS_ENABLE has been set to "1" and communicator has multiple ranks using the same NVML device.'
    ],
    "row-remap-failed": [
        "GPU 0 had uncorrectable memory errors and row remapping failed.",
        "GPU 0 exceeded uncorrectable row remap limit with 512 remapped rows",
    ],
    "row-remap-pending": [
        "GPU 0 had memory errors and row remappings are pending",
        "A pending retired page has been detected in GPU 3.",
    ],
    "scheduler-lacks-gpu": [
        "slurmd: fatal: We were configured with nvml functionality, but that lib wasn't found on the system.",
        "slurmd: error: If using AutoDetect the amount of GPUs configured in slurm.conf does not match what was detected.",
        "slurmd: warning: This GPU specified in [slurm|gres].conf has mismatching Cores or Links from the device found on the system. Ignoring it.",
        "slurmd: fatal: /dev/nvidia4 is not a valid character or block device, fix your gres.conf",
    ],
    "shared-memory-too-small": [
        "mm_posix.c:196  UCX  ERROR Not enough memory to write total of 4292720 bytes. Please check that /dev/shm or the directory you specified has more available memory."
    ],
    "thermal-throttled": [
        "Detected clocks event due to thermal violation in GPU 0.",
        "There were thermal violations totaling 12.0 seconds for GPU 1",
    ],
    "uncorrected-ecc": [
        "Detected 2 volatile double-bit ECC error(s) in GPU 0.",
        "CUDA APIs have indicated that a double-bit ECC error has occured on GPU 0.",
        "GPU 0 had uncorrectable memory errors and 3 rows were remapped",
        "Found 12 faulty memory elements on GPU 0",
        "nvidia-uvm: ECC error encountered, GPU ID 2: GPU-1b2c",
    ],
}
