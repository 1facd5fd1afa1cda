"""Error lines about containers, WSL, Jetson, Windows, MIG and peer access."""

from __future__ import annotations

from envcheck.rules.error_line import ErrorLine, said

_ASKED_FOR_PERMISSION = r"Insufficient Permissions|NO_PERMISSION"
_TOOLKIT = r"nvidia-container-(?:runtime|toolkit|cli)\S*"
_STOPS = r"(?:hang|hung|stuck|deadlock|freez|time(?:s|d)? ?out|fail)\w*\b"
_DRIVERS_OWN = r"lib(?:cuda|nvidia-\w+|nvcuvid|cudadebugger|nvoptix|vdpau_nvidia)\.so"

PLATFORMS: tuple[ErrorLine, ...] = (
    *said(
        "framework-ran",
        "driver-libraries-in-image",
        rf"(?:file creation failed|mount error|error (?:creating|mounting)).*{_DRIVERS_OWN}\S*: file exists",
    ),
    *said(
        "framework-ran",
        "container-toolkit-missing",
        r"could not select device driver \"?(?:nvidia)?\"? with capabilities",
        r"unknown (?:or invalid )?runtime(?: specified| name)?:? ?\"?'?nvidia",
        r"no runtime for \"?nvidia\"? is configured",
        r"unresolvable CDI devices?\b.*nvidia\.com/|nvidia\.com/gpu=\S* (?:is )?not (?:found|registered)",
        rf"{_TOOLKIT}: (?:executable file not found|no such file|not found|command not found)",
        r"nvidia-(?:docker|ctk)2?: (?:command )?not found",
        r"did you configure the NVIDIA Container Toolkit",
    ),
    *said(
        "driver-answered",
        "gpu-hidden",
        r"nvidia-container-cli\S*: device error: .*unknown device",
        r"invalid device:? .*nvidia\.com/gpu|unknown device id: ",
    ),
    *said(
        "framework-ran",
        "jetson-libraries-not-mounted",
        r"aarch64-linux-gnu/\S+\.so\S*: file too short",
        r"invoking the NVIDIA Container Runtime Hook directly .* is not supported",
        r"\blib(?:nvcudla|nvdla_(?:compiler|runtime)|nvcucompat|nvrm_(?:gpu|mem|host1x|graphics|chip|sync)|nvrm|nvos|nvbufsurf\w*|"
        r"nvbuf_utils|nvmm_utils|nvmedia\w*|nvsci\w+|tegrav4l2)\.so\S*: cannot open shared object file",
    ),
    *said(
        "framework-ran",
        "shared-memory-too-small",
        r"posix_fallocate failed ?: No space left",
        r"shm(?:utils)?\.(?:h|cc):\d+.*No space left on device",
        r"\b(?:while creating|failed to (?:create|allocate|extend|open|map)|unable to (?:create|allocate|extend))\b"
        r".*(?:shared memory segment|/dev/shm/|shared memory\s?\(shm\))",
        r"(?:/dev/shm\S*|/torch_\S+|/psm_\S+|shared memory|sem_open).*No space left on device",
        r"No space left on device.*(?:/dev/shm|/torch_\d|/psm_|shared memory)",
        r"DataLoader worker .*is killed by signal: Bus error",
        r"insufficient shared memory|out of shared memory\b(?!.*max_locks)",
        r"(?:increase|too small|raise).{0,60}(?:/dev/shm|--?shm-size|shm_size)",
        r"(?:/dev/shm|shm-size|shm_size).{0,60}\b(?:too small|too low|insufficient)",
    ),
    *said(
        "framework-ran",
        "shared-memory-too-small",
        r"SHMEM allocation limit is set to the default",
        r"object store is using /tmp instead of /dev/shm",
        status="note",
    ),
    *said(
        "driver-answered",
        "windows-gpu-unsupported",
        r"GPU support is not available on native Windows",
        r"GPU is not supported on native[- ]Windows|native[- ]Windows (?:GPU )?support .*(?:dropped|removed|ended)",
    ),
    *said(
        "driver-answered",
        "mig-without-instances",
        r"\bGPUs? without (?:any )?MIG (?:devices?|instances?)\b|\bMIG mode\b.{0,40}\bno (?:MIG |GPU )?instances\b",
    ),
    *said(
        "driver-answered",
        "mig-permission",
        rf"(?:visiting devices?|device memory info|\bMIG\b|compute instance|gpu instance).*(?:{_ASKED_FOR_PERMISSION})",
        rf"(?:{_ASKED_FOR_PERMISSION}).*\bMIG\b",
        r"nvidia-caps?\S*.*(?:Operation not permitted|Permission denied)",
        r"cannot set MIG_(?:CONFIG|MONITOR)_DEVICES in non privileged container",
    ),
    *said(
        "framework-ran",
        "mig-enumeration",
        r"invalid literal for int\(\).*['\"]MIG-",
    ),
    *said(
        "driver-answered",
        "peer-access-blocked",
        r"peer access is not supported between these two devices",
        r"CUDA_ERROR_PEER_ACCESS_UNSUPPORTED|cudaErrorPeerAccessUnsupported",
        r"P2P is disabled between (?:connected|NVLINK connected) GPUs",
        r"\bnvidia \S+: AMD-Vi: Event logged \[IO_PAGE_FAULT",
        rf"{_STOPS}.{{0,150}}\b(?:unless|without|until|except with)\b.{{0,60}}NCCL_P2P_DISABLE",
        r"NCCL_P2P_DISABLE=1\b.{0,30}\b(?:avoids|fixe[sd]|work(?:s|ed)|(?:re)?solve[sd]|help(?:s|ed)|is a workaround)",
        r"(?:works|worked|no hang|runs fine|ok)\b.{0,30}\bwith NCCL_P2P_DISABLE=1",
        r"\b(?:disabl|turn|switch)\w*\b.{0,30}\b(?:IOMMU|ACS|VT-d)\b.{0,60}\b(?:fix|solve|resolve|help|work)(?:s|d|ed)?\b",
        r"ACSCtl:.*ReqRedir\+",
    ),
    *said(
        "framework-ran",
        "gpu-memory-exhausted",
        r"CUDA out of memory|CUDA_ERROR_OUT_OF_MEMORY|cudaErrorMemoryAllocation\b|CUDA error: out of memory",
        r"OutOfMemoryError: .*\bGPU\b|torch\.(?:cuda\.)?OutOfMemoryError",
        r"RESOURCE_EXHAUSTED: (?:Out of memory|OOM)|cupy\S*OutOfMemoryError|std::bad_alloc: out_of_memory: CUDA",
        r"Free memory on device .* is less than desired GPU memory utilization",
        status="note",
    ),
)
