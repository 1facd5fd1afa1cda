"""Logs composed of real lines in their real order: which one is the cause, and what only follows from it."""

# ruff: noqa: E501  lines as the programs print them

from __future__ import annotations

from typing import NamedTuple


class Log(NamedTuple):
    """A log and the problem that it shows."""

    cause: str
    lines: tuple[str, ...]


NOISE = (
    "2024-05-01 10:00:00.123456: I tensorflow/core/util/port.cc:153] oneDNN custom operations are on. You may see slightly different numerical results",
    "E0000 00:00:1715000000.000000   12345 cuda_dnn.cc:8310] Unable to register cuDNN factory: Attempting to register factory for plugin cuDNN when one has already been registered",
    "E0000 00:00:1715000000.000000   12345 cuda_blas.cc:1418] Unable to register cuBLAS factory: Attempting to register factory for plugin cuBLAS when one has already been registered",
    "NCCL INFO NET/Plugin: Could not find: libnccl-net.so. Using internal network plugin.",
    "FutureWarning: The pynvml package is deprecated. Please install nvidia-ml-py instead.",
    "I tensorflow/compiler/xla/stream_executor/cuda/cuda_gpu_executor.cc:995] successful NUMA node read from SysFS had negative value (-1), but there must be at least one NUMA node, so returning NUMA node zero",
    "[TRT] [W] CUDA lazy loading is not enabled. Enabling it can significantly reduce device memory usage",
    " [WARNING]  async_io requires the dev libaio .so object and headers but these were not found.",
    "W tensorflow/compiler/tf2tensorrt/utils/py_utils.cc:38] TF-TRT Warning: Could not find TensorRT",
    "nvidia: module verification failed: signature and/or required key missing - tainting kernel",
    "ERROR: pip's dependency resolver does not currently take into account all the packages that are installed.",
)
"""Lines that look like failures and are none."""

_TRACE = ["Traceback (most recent call last):", '  File "train.py", line 3, in <module>']

LOGS: dict[str, Log] = {
    "secure boot, then nvidia-smi": Log(
        "secure-boot-blocks-module",
        (
            "modprobe: ERROR: could not insert 'nvidia': Key was rejected by service",
            "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest NVIDIA driver is installed and running.",
            "RuntimeError: No CUDA GPUs are available",
        ),
    ),
    "DKMS, then nvidia-smi": Log(
        "kernel-module-missing",
        (
            "Error! Bad return status for module build on kernel: 6.8.0-31-generic (x86_64)",
            "dpkg: error processing package nvidia-dkms-535 (--configure):",
            "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.",
        ),
    ),
    "nouveau, then the installer": Log(
        "nouveau-loaded",
        (
            "ERROR: Unable to load the kernel module 'nvidia.ko'.",
            "NVRM: The NVIDIA probe routine was not called for 1 device(s).",
            "NVRM: This can occur when another driver was loaded and",
            "NVRM: No NVIDIA devices probed.",
        ),
    ),
    "legacy GPU, then no devices": Log(
        "gpu-unsupported-by-driver",
        (
            "NVRM: The NVIDIA GPU 0000:01:00.0 (PCI ID: 10de:1004)",
            "NVRM: installed in this system is supported through the NVIDIA 470.xx Legacy drivers. Please",
            "NVRM: None of the NVIDIA devices were initialized.",
            "No devices were found",
        ),
    ),
    "versions differ, then CUDA": Log(
        "driver-library-mismatch",
        (
            "NVRM: API mismatch: the client has the version 535.161.07, but",
            "Failed to initialize NVML: Driver/library version mismatch",
            "RuntimeError: Unexpected error from cudaGetDeviceCount(). Error 803: system has unsupported display driver / cuda driver combination",
        ),
    ),
    "lost GPU, then unknown errors": Log(
        "gpu-lost",
        (
            "NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, name=python, GPU has fallen off the bus.",
            "Unable to determine the device handle for GPU0000:3B:00.0: Unknown Error",
            "RuntimeError: CUDA error: unspecified launch failure",
        ),
    ),
    "firmware timeout, then a lost answer": Log(
        "gpu-firmware-timeout",
        (
            "NVRM: Xid (PCI:0000:2b:00): 119, pid=1234, name=nvidia-smi, Timeout after 6s of waiting for RPC response from GPU0 GSP! Expected function 76 (GSP_RM_CONTROL) (0x20802002 0x8).",
            "NVRM: nvGpuOpsReportFatalError: uvm encountered global fatal error 0x60, requiring os reboot to recover.",
        ),
    ),
    "uncorrectable ECC, then NCCL": Log(
        "uncorrected-ecc",
        (
            "RuntimeError: CUDA error: uncorrectable ECC error encountered",
            "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1333, unhandled cuda error, NCCL version 2.18.6",
            "ncclUnhandledCudaError: Call to CUDA function failed.",
        ),
    ),
    "fabric manager, then torch": Log(
        "fabric-manager-not-running",
        (
            "fabric manager NVIDIA GPU driver interface version 535.183.01 don't match with driver version. Please update with matching NVIDIA driver package.",
            "UserWarning: CUDA initialization: Unexpected error from cudaGetDeviceCount(). Error 802: system not yet initialized",
            "RuntimeError: No CUDA GPUs are available",
        ),
    ),
    "no toolkit, docker": Log(
        "container-toolkit-missing",
        (
            'docker: Error response from daemon: could not select device driver "" with capabilities: [[gpu]].',
            "ERRO[0000] error waiting for container: context canceled",
        ),
    ),
    "old driver, container": Log(
        "driver-too-old",
        (
            "docker: Error response from daemon: failed to create task for container: OCI runtime create failed: runc create failed: unable to start container process: error during container init: error running hook #0: exit status 1, stderr: Auto-detected mode as 'legacy'",
            "nvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.4, please update your driver to a newer version, or use an earlier cuda container: unknown.",
        ),
    ),
    "container without a GPU, then torch": Log(
        "container-without-gpu",
        (
            "WARNING: The NVIDIA Driver was not detected.  GPU functionality will not be available.",
            "   Use the NVIDIA Container Toolkit to start this container with GPU support; see",
            "RuntimeError: Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU and installed a driver",
        ),
    ),
    "cgroups": Log(
        "container-cgroups-refused",
        (
            "docker: Error response from daemon: failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: error running hook #0: exit status 1, stderr: Auto-detected mode as 'legacy'",
            "nvidia-container-cli: mount error: failed to add device rules: unable to find any existing device filters attached to the cgroup: bpf_prog_query(BPF_CGROUP_DEVICE) failed: operation not permitted: unknown.",
        ),
    ),
    "shared memory, then workers": Log(
        "shared-memory-too-small",
        (
            "ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared memory (shm).",
            *_TRACE,
            "RuntimeError: DataLoader worker (pid 4711) is killed by signal: Bus error. It is possible that dataloader's workers are out of shared memory.",
        ),
    ),
    "NCCL shared memory, then torch": Log(
        "shared-memory-too-small",
        (
            "host:12:40 [0] misc/shmutils.cc:72 NCCL WARN Error: failed to extend /dev/shm/nccl-Bjb6YW to 33030532 bytes, error: No space left on device (28)",
            "host:12:40 [0] misc/shmutils.cc:113 NCCL WARN Error while creating shared memory segment /dev/shm/nccl-Bjb6YW (size 33030528), error: No space left on device (28)",
            "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1691, unhandled system error (run with NCCL_DEBUG=INFO for details)",
            "ncclSystemError: System call (e.g. socket, malloc) or external library call failed or device error.",
        ),
    ),
    "duplicate GPU, then torch": Log(
        "ranks-share-gpu",
        (
            "host:77:77 [0] init.cc:943 NCCL WARN Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 1000",
            "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1970, invalid usage (run with NCCL_DEBUG=WARN for details), NCCL version 2.21.5",
            "ncclInvalidUsage: This usually reflects invalid usage of NCCL library.",
        ),
    ),
    "no interface, then torch": Log(
        "nccl-no-interface",
        (
            "host:9:9 [0] bootstrap.cc:45 NCCL WARN Bootstrap : no socket interface found",
            "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1333, internal error, NCCL version 2.18.1",
        ),
    ),
    "locked memory, then torch": Log(
        "locked-memory-too-small",
        (
            "node1:8:92 [3] misc/ibvwrap.cc:190 NCCL WARN Call to ibv_reg_mr failed with error Cannot allocate memory",
            "node1:8:92 [3] transport/net.cc:840 -> 2",
            "RuntimeError: NCCL error in: ProcessGroupNCCL.cpp:1269, unhandled system error, NCCL version 2.14.3",
        ),
    ),
    "old driver, then no GPU": Log(
        "driver-too-old",
        (
            "UserWarning: CUDA initialization: The NVIDIA driver on your system is too old (found version 11040). Please update your GPU driver",
            *_TRACE,
            "RuntimeError: CUDA is required but not available",
        ),
    ),
    "no code for the GPU, after a warning": Log(
        "gpu-code-missing",
        (
            "UserWarning: NVIDIA GeForce RTX 5090 with CUDA capability sm_120 is not compatible with the current PyTorch installation.",
            "The current PyTorch install supports CUDA capabilities sm_50 sm_60 sm_70 sm_75 sm_80 sm_86 sm_90.",
            *_TRACE,
            "RuntimeError: CUDA error: no kernel image is available for execution on the device",
            "CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect.",
        ),
    ),
    "CPU build": Log(
        "cpu-only-build",
        (
            *_TRACE,
            '    raise AssertionError("Torch not compiled with CUDA enabled")',
            "AssertionError: Torch not compiled with CUDA enabled",
        ),
    ),
    "extension without its binary, chained": Log(
        "extension-binary-missing",
        (
            *_TRACE,
            "ModuleNotFoundError: No module named 'flash_attn_2_cuda'",
            "The above exception was the direct cause of the following exception:",
            *_TRACE,
            "RuntimeError: Failed to import transformers.models.llama.modeling_llama because of the following error (look up to see its traceback):",
            "No module named 'flash_attn_2_cuda'",
        ),
    ),
    "extension for another PyTorch, chained": Log(
        "extension-built-for-other-torch",
        (
            *_TRACE,
            "ImportError: /venv/lib/python3.10/site-packages/flash_attn_2_cuda.cpython-310-x86_64-linux-gnu.so: undefined symbol: _ZN3c105ErrorC2ENS_14SourceLocationESs",
            "During handling of the above exception, another exception occurred:",
            *_TRACE,
            "RuntimeError: Failed to import transformers.integrations.bitsandbytes because of the following error: CUDA Setup failed despite GPU being available.",
        ),
    ),
    "torchvision, then transformers": Log(
        "torch-family-mismatch",
        (
            *_TRACE,
            "RuntimeError: operator torchvision::nms does not exist",
            "During handling of the above exception, another exception occurred:",
            *_TRACE,
            "ModuleNotFoundError: Could not import module 'BloomPreTrainedModel'. Are this object's requirements defined correctly?",
        ),
    ),
    "nvJitLink": Log(
        "nvjitlink-mismatch",
        (
            *_TRACE,
            "ImportError: /opt/conda/lib/python3.11/site-packages/torch/lib/../../nvidia/cusparse/lib/libcusparse.so.12: undefined symbol: __nvJitLinkComplete_12_4, version libnvJitLink.so.12",
        ),
    ),
    "cuDNN for ONNX Runtime, then its provider": Log(
        "cudnn-missing",
        (
            "[E:onnxruntime:Default, provider_bridge_ort.cc:1992 TryGetProviderInfo_CUDA] /onnxruntime_src/onnxruntime/core/session/provider_bridge_ort.cc:1637 onnxruntime::Provider& onnxruntime::ProviderLibrary::Get() [ONNXRuntimeError] : 1 : FAIL : Failed to load library libonnxruntime_providers_cuda.so with error: libcudnn.so.9: cannot open shared object file: No such file or directory",
            "[W:onnxruntime:Default, onnxruntime_pybind_state.cc:965 CreateExecutionProviderInstance] Failed to create CUDAExecutionProvider. Require cuDNN 9.* and CUDA 12.*.",
        ),
    ),
    "cuBLAS for ONNX Runtime, then its provider": Log(
        "cuda-library-missing",
        (
            "[E:onnxruntime:Default, provider_bridge_ort.cc:1862 TryGetProviderInfo_CUDA] Failed to load library libonnxruntime_providers_cuda.so with error: libcublasLt.so.12: cannot open shared object file: No such file or directory",
            "[W:onnxruntime:Default, onnxruntime_pybind_state.cc:870 CreateExecutionProviderInstance] Failed to create CUDAExecutionProvider. Require cuDNN 9.* and CUDA 12.*.",
        ),
    ),
    "old cuDNN, then TensorFlow": Log(
        "cudnn-too-old",
        (
            "E tensorflow/compiler/xla/stream_executor/cuda/cuda_dnn.cc:417] Loaded runtime CuDNN library: 8.0.4 but source was compiled with: 8.6.0.  CuDNN library needs to have matching major version and equal or higher minor version.",
            "tensorflow.python.framework.errors_impl.FailedPreconditionError: DNN library initialization failed. Look at the errors above for more details.",
        ),
    ),
    "JAX plug-in, then the CPU": Log(
        "jax-plugin-mismatch",
        (
            "JAX plugin jax_cuda12_plugin version 0.4.31 is installed, but it is not compatible with the installed jaxlib version 0.4.33, so it will not be used.",
            "WARNING:2024-10-01 10:00:00,000:jax._src.xla_bridge:987: An NVIDIA GPU may be present on this machine, but a CUDA-enabled jaxlib is not installed. Falling back to cpu.",
        ),
    ),
    "bitsandbytes: no binary, then its remark": Log(
        "extension-binary-missing",
        (
            "Could not find the bitsandbytes CUDA binary at PosixPath('/venv/lib/python3.10/site-packages/bitsandbytes/libbitsandbytes_cuda128.so')",
            "The installed version of bitsandbytes was compiled without GPU support. 8-bit optimizers, 8-bit multiplication, and GPU quantization are unavailable.",
        ),
    ),
    "no C compiler, then Inductor": Log(
        "jit-compiler-missing",
        (
            *_TRACE,
            "RuntimeError: Failed to find C compiler. Please specify via CC environment variable or set triton.knobs.build.impl.",
            "The above exception was the direct cause of the following exception:",
            *_TRACE,
            "torch._inductor.exc.InductorError: RuntimeError: Failed to find C compiler. Please specify via CC environment variable.",
        ),
    ),
    "old ptxas, then Triton": Log(
        "jit-compiler-too-old",
        (
            "ptxas fatal   : Value 'sm_120a' is not defined for option 'gpu-name'",
            "During handling of the above exception, another exception occurred:",
            "triton.runtime.errors.PTXASError: PTXAS error: Internal Triton PTX codegen error",
        ),
    ),
    "old nvcc, then ninja": Log(
        "toolkit-lacks-gpu",
        (
            "nvcc fatal   : Unsupported gpu architecture 'compute_90'",
            "ninja: build stopped: subcommand failed.",
            "RuntimeError: Error compiling objects for extension",
        ),
    ),
    "host compiler, then ninja": Log(
        "host-compiler-unsupported",
        (
            "/usr/local/cuda/include/crt/host_config.h:132:2: error: #error -- unsupported GNU version! gcc versions later than 11 are not supported! The nvcc flag '-allow-unsupported-compiler' can be used to override this version check",
            "ninja: build stopped: subcommand failed.",
            "RuntimeError: Error building extension 'fused_adam'",
        ),
    ),
    "build isolation": Log(
        "build-does-not-see-torch",
        (
            "  x Getting requirements to build wheel did not run successfully.",
            "  error: subprocess-exited-with-error",
            "      ModuleNotFoundError: No module named 'torch'",
            "ERROR: Failed to build 'flash-attn' when getting requirements to build wheel",
        ),
    ),
    "toolkit differs, then setup": Log(
        "toolkit-differs-from-build",
        (
            "RuntimeError: The detected CUDA version (12.4) mismatches the version that was used to compile PyTorch (11.8). Please make sure to use the same CUDA versions.",
            "ERROR: Failed building wheel for apex",
        ),
    ),
    "TensorRT plan": Log(
        "tensorrt-engine-mismatch",
        (
            "[TRT] [E] 6: The engine plan file is not compatible with this version of TensorRT, expecting library version 8.6.1.6 got 8.5.2.2, please rebuild.",
            "[TRT] [E] 4: [runtime.cpp::deserializeCudaEngine::66] Error Code 4: Internal Error (Engine deserialization failed.)",
            "AttributeError: 'NoneType' object has no attribute 'create_execution_context'",
        ),
    ),
    "glibc, then import": Log(
        "glibc-too-old",
        (
            *_TRACE,
            "ImportError: /lib64/libc.so.6: version `GLIBC_2.32' not found (required by /venv/lib/python3.9/site-packages/flash_attn_2_cuda.cpython-39-x86_64-linux-gnu.so)",
        ),
    ),
    "NumPy, then a traceback": Log(
        "numpy-abi-mismatch",
        (
            "A module that was compiled using NumPy 1.x cannot be run in",
            "NumPy 2.0.1 as it may crash. To support both 1.x and 2.x",
            *_TRACE,
            "AttributeError: _ARRAY_API not found",
            "UserWarning: Failed to initialize NumPy: _ARRAY_API not found (Triggered internally at ../torch/csrc/utils/tensor_numpy.cpp:84.)",
        ),
    ),
    "ollama: old driver, then the CPU": Log(
        "driver-too-old",
        (
            'time=2024-06-01T10:00:00.000Z level=INFO source=gpu.go:298 msg="NVIDIA driver too old" ',
            'time=2024-06-01T10:00:00.000Z level=INFO source=gpu.go:386 msg="no compatible GPUs were discovered"',
        ),
    ),
    "Kubernetes: the toolkit, then the scheduler": Log(
        "container-toolkit-missing",
        (
            "E0112 01:53:45.100000       1 factory.go:115] Incompatible platform detected",
            "E0112 01:53:45.100000       1 factory.go:116] If this is a GPU node, did you configure the NVIDIA Container Toolkit?",
            "Warning  FailedScheduling  12s  default-scheduler  0/1 nodes are available: 1 Insufficient nvidia.com/gpu.",
        ),
    ),
    "old driver packages, then nvidia-smi": Log(
        "driver-packages-conflict",
        (
            "The following packages have unmet dependencies:",
            " nvidia-driver-535 : Depends: nvidia-dkms-535 (<= 535.54.03-1) but it is not going to be installed",
            "E: Unable to correct problems, you have held broken packages.",
            "bash: nvidia-smi: command not found",
        ),
    ),
}
