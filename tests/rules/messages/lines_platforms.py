"""Lines in the shape of public reports, for the rows of ``errors.toml``."""

from __future__ import annotations

ALONE_ONLY_A_SETTING = "ACSCtl:\tSrcValid+ TransBlk- ReqRedir+ CmpltRedir+ UpstreamFwd+ EgressCtrl- DirectTrans-"
"""A line of lspci that names its problem only beside others."""

EXAMPLES: dict[str, list[str]] = {
    "driver-libraries-in-image": [
        "mount error: file creation failed: /merged/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1: file exists: unknown."
    ],
    "container-toolkit-missing": [
        'docker: Error response from daemon: could not select device driver "" with capabilities: [[gpu]].',
        'Error response from daemon: could not select device driver "nvidia" with capabilities: [[gpu]]',
        "docker: Error response from daemon: Unknown runtime specified nvidia.",
        "Error response from daemon: unknown or invalid runtime name: nvidia",
        'failed to get sandbox runtime: no runtime for "nvidia" is configured',
        "Error: setting up CDI devices: unresolvable CDI devices nvidia.com/gpu=all",
        "nvidia-container-runtime: command not found",
        'exec: "nvidia-container-runtime-hook": executable file not found in $PATH',
        "fork/exec /usr/bin/nvidia-container-runtime: no such file or directory: unknown",
        "nvidia-docker: command not found",
        "If this is a GPU node, did you configure the NVIDIA Container Toolkit?",
    ],
    "gpu-hidden": [
        "nvidia-container-cli: device error: 1: unknown device: unknown.",
        "nvidia-container-cli: initialization error: unknown device id: 4",
    ],
    "jetson-libraries-not-mounted": [
        "OSError: /usr/lib/aarch64-linux-gnu/libcudnn.so.8: file too short",
        "invoking the NVIDIA Container Runtime Hook directly (e.g. by docker --gpus) is not supported.",
        "ImportError: libnvdla_compiler.so: cannot open shared object file: No such file or directory",
        "libnvrm_gpu.so: cannot open shared object file: No such file or directory",
    ],
    "shared-memory-too-small": [
        "include/shm.h:28 NCCL WARN Call to posix_fallocate failed : No space left on device",
        "include/shm.h:28 NCCL WARN Call to ftruncate failed : No space left on device",
        "NCCL WARN Error while creating shared memory segment nccl-shm-recv-1462445a6f01cbfc-1-2-3 (size 9637888)",
        "misc/shmutils.cc:72 NCCL WARN Error: failed to extend /dev/shm/nccl-xyz to 9637892 bytes",
        "RuntimeError: unable to allocate shared memory(shm) for file </torch_1_4_0>: Resource temporarily unavailable",
        "RuntimeError: unable to write to file </torch_61_2093884432_0>: No space left on device (28)",
        "OSError: [Errno 28] No space left on device: '/dev/shm/tmpabc'",
        "RuntimeError: DataLoader worker (pid 1234) is killed by signal: Bus error. Raise your shared memory limit.",
        "ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared memory (shm).",
        "please increase the size with --shm-size",
        "[WARNING] /dev/shm size might be too small",
        "NOTE: The SHMEM allocation limit is set to the default of 64MB.  This may be",
        "WARNING: The object store is using /tmp instead of /dev/shm because /dev/shm has only 67108864 bytes.",
    ],
    "windows-gpu-unsupported": [
        "WARNING:tensorflow:TensorFlow GPU support is not available on native Windows for TensorFlow >= 2.11.",
        "GPU is not supported on native Windows, use WSL2",
    ],
    "mig-without-instances": ["a node in MIG mode, one GPU without MIG devices"],
    "mig-permission": [
        "error visiting device: error getting device memory info: Insufficient Permissions",
        "Unable to create a GPU instance on GPU 0 using profile 9: Insufficient Permissions",
        "NVML_ERROR_NO_PERMISSION while listing MIG devices",
        "open /dev/nvidia-caps/nvidia-cap12: operation not permitted",
        "panic: cannot set MIG_MONITOR_DEVICES in non privileged container",
    ],
    "mig-enumeration": [
        "ValueError: invalid literal for int() with base 10: 'MIG-7d3c2e0a-1111-5c5c-9b9b-abcdef012345'"
    ],
    "peer-access-blocked": [
        "RuntimeError: CUDA error: peer access is not supported between these two devices",
        "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED: peer access is not supported",
        "cudaErrorPeerAccessUnsupported",
        "NCCL WARN P2P is disabled between NVLINK connected GPUs 1 and 0. This should not be the case",
        "nvidia 0000:41:00.0: AMD-Vi: Event logged [IO_PAGE_FAULT domain=0x000c address=0x3d400000000 flags=0x0030]",
        "AllReduce hangs unless NCCL_P2P_DISABLE=1",
        "Training stops at the first step; NCCL_P2P_DISABLE=1 solves it",
        "all_reduce_perf runs fine with NCCL_P2P_DISABLE=1",
        ALONE_ONLY_A_SETTING,
        "p2pBandwidthLatencyTest is stuck; disabling IOMMU in the BIOS fixed it",
    ],
    "gpu-memory-exhausted": [
        "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB",
        "failed to allocate 190.31M from device: CUDA_ERROR_OUT_OF_MEMORY",
        "torch.OutOfMemoryError: Allocation on device 0 would exceed allowed memory. GPU",
        "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 8589934592 bytes.",
        "ValueError: Free memory on device (3.2/23.5 GiB) on startup is less than desired GPU memory utilization (0.9)",
    ],
}

HARMLESS = [
    "/sbin/ldconfig.real: /usr/lib/wsl/lib/libcuda.so.1 is not a symbolic link",
    "ACSCtl:\tSrcValid- TransBlk- ReqRedir- CmpltRedir- UpstreamFwd- EgressCtrl- DirectTrans-",
    "Custom allreduce is disabled because your platform lacks GPU P2P capability or P2P test failed.",
    "Unable to set persistence mode for GPU 00000000:01:00.0: Insufficient Permissions",
    "nvidia-ml-py: Insufficient Permissions while changing the application clocks",
    "OSError: [Errno 28] No space left on device: '/root/.cache/huggingface'",
    "PostgreSQL: out of shared memory; you might need to increase max_locks_per_transaction",
    "NCCL INFO NCCL_P2P_DISABLE set by environment to 0",
    "/usr/lib/x86_64-linux-gnu/libfoo.so.1: file too short",
    "ValueError: invalid literal for int() with base 10: 'GPU-7d3c2e0a'",
    "MemoryError: Unable to allocate 8 GiB for an array",
    "Docker uses the runtime runc, which is configured",
]
