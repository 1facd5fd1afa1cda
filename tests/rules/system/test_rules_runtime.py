"""The rules about what programs need when they run: folders, limits, processors, names. On constructed machines."""

from __future__ import annotations

from typing import Any

from envcheck.model.snapshot import (
    Distribution,
    FolderAccess,
    Framework,
    Kernel,
    KernelModule,
    ObservedError,
    ProbeRun,
    Snapshot,
    Trial,
    VariablePath,
    Variables,
)
from tests.every import cases, every
from tests.rules.machines import (
    DOCKER,
    UBUNTU,
    answered,
    bad,
    but,
    cause,
    check_of,
    driver,
    h200,
    machine,
    statuses,
    torch,
    venv,
    with_venv,
)

RULE = "cache-not-writable"
TRITON = Framework(source="file x", name="triton", version="3.5.1", cuda="12.8", cpu_only=False)
CUPY = Framework(source="file x", name="cupy-cuda12x", version="13.6.0", cuda="12", cpu_only=False)
JAX = Framework(source="file x", name="jax", version="0.9.0", cuda="12", cpu_only=False)
XLA = "--xla_gpu_autotune_level=2 --xla_gpu_per_fusion_autotune_cache_dir=/x/tuned --xla_dump_to=/home/ada/dump"
NO = "this user may not write in it"
TMP = FolderAccess(path="/tmp", obstacle=NO)
HOME, SHARED = FolderAccess(path="/home/ada"), FolderAccess(path="/dev/shm")
READ_ONLY = FolderAccess(path="/home/ada", obstacle="its file system is read-only")


def writing(
    *places: FolderAccess, frameworks: tuple[Framework, ...] = (torch(), TRITON), named: bool = True, **values: str
) -> Snapshot:
    found = Variables(
        source="process", values=values, complete=True, paths=(), home="/home/ada", temporary="/tmp",
        user_known=named, places=places,
    )  # fmt: skip
    return but(with_venv(machine(h200()), venv(*frameworks)), variables=found)


def leading(*places: FolderAccess, **kinds: Any) -> Snapshot:
    """Of JAX and CuPy; the variables name a place in home, of this kind."""
    paths = tuple(VariablePath(path=f"/home/ada/{name}", leads_to=kind) for name, kind in kinds.items())
    values = {name: each.path for name, each in zip(kinds, paths, strict=True)}
    snapshot = writing(HOME, *places, frameworks=(torch(), JAX, CUPY))
    found = but(snapshot.variables or Variables(), values=values, paths=paths, temporary="/var/tmp")
    return but(snapshot, variables=found)


def test_a_folder_for_temporary_files_is_one_that_is_there() -> None:
    """Nobody makes it; and what is mounted at the home folder does not mend another one."""
    check = check_of("cache-not-writable", leading(TMP, TMPDIR="nothing"))
    assert [fix.command for fix in check.fixes] == [("env", "TMPDIR=/home/ada", "python")]


def closed(folder: str, package: str, **values: str) -> Snapshot:
    """PyTorch and a package in one environment, and a folder in which this user may not write."""
    snapshot = writing(HOME, FolderAccess(path=folder, obstacle=NO))
    found = but(snapshot.variables or Variables(), values=values)
    package_too = Distribution(source="wheel metadata", name=package, version="1.0", channel="pip")
    environment = venv(torch())
    environment = but(environment, distributions=(*(environment.distributions or ()), package_too))
    return but(with_venv(snapshot, environment), variables=found)


WRITING: list[tuple[str, Snapshot, str]] = [
    ("all may be written", writing(HOME), "pass"),
    ("home is read-only", writing(READ_ONLY), "warn"),
    ("the cache alone, which sudo made", writing(HOME, FolderAccess(path="/home/ada/.triton", obstacle=NO)), "warn"),
    ("home is read-only, the cache is a mount", writing(READ_ONLY, FolderAccess(path="/home/ada/.triton"),
     FolderAccess(path="/home/ada/.cache"), FolderAccess(path="/home/ada/.nv")), "pass"),
    ("a variable leads away", writing(HOME, FolderAccess(path="/x", obstacle=NO), TRITON_CACHE_DIR="/x/y"), "warn"),
    ("its home leads away", writing(HOME, FolderAccess(path="/x", obstacle=NO), TRITON_HOME="/x"), "warn"),
    ("a variable leads out of a bad home", writing(READ_ONLY, FolderAccess(path="/x"), TRITON_CACHE_DIR="/x",
     XDG_CACHE_HOME="/x", CUDA_CACHE_PATH="/x"), "pass"),
    ("code cannot be loaded", writing(FolderAccess(path="/home/ada", noexec=True)), "warn"),
    ("only data lies there", writing(HOME, FolderAccess(path="/x", noexec=True), CUDA_CACHE_PATH="/x"), "pass"),
    ("no space", writing(FolderAccess(path="/home/ada", free=1 << 20)), "warn"),
    ("little space suffices", writing(FolderAccess(path="/home/ada", free=900 << 20)), "pass"),
    ("no inodes", writing(FolderAccess(path="/home/ada", free_files=0)), "warn"),
    ("the driver's alone", writing(HOME, FolderAccess(path="/home/ada/.nv", obstacle=NO)), "note"),
    ("the driver's, by its variable", writing(HOME, FolderAccess(path="/x", obstacle=NO), CUDA_CACHE_PATH="/x"),
     "warn"),
    ("nothing is kept there", writing(HOME, FolderAccess(path="/x", obstacle=NO), CUDA_CACHE_PATH="/x",
     CUDA_CACHE_DISABLE="1"), "pass"),
    ("of another user", writing(HOME, FolderAccess(path="/tmp/torchinductor_ada", obstacle=NO)), "warn"),
    ("no name for the folder", writing(HOME, named=False), "warn"),
    ("CuPy needs it", writing(READ_ONLY, frameworks=(CUPY,)), "fail"),
    ("CuPy keeps it in memory", writing(READ_ONLY, frameworks=(CUPY,), CUPY_CACHE_IN_MEMORY="1"), "note"),
    ("a variable of a framework that is not there", writing(HOME, FolderAccess(path="/x", obstacle=NO),
     CUPY_CACHE_DIR="/x"), "pass"),
    ("TileLang's", closed("/home/ada/.tilelang", "tilelang"), "warn"),
    ("TileLang's, kept nowhere", closed("/home/ada/.tilelang", "tilelang", TILELANG_DISABLE_CACHE="1"), "pass"),
    ("DeepGEMM's", closed("/home/ada/.deep_gemm", "deep-gemm"), "warn"),
    ("DeepGEMM's, elsewhere", closed("/home/ada/.deep_gemm", "deep-gemm", DG_JIT_CACHE_DIR="/home/ada/x"), "pass"),
    ("Warp's", closed("/x", "warp-lang", WARP_CACHE_PATH="/x/warp"), "warn"),
    ("cuTile's, which passes it over", closed("/home/ada/.cache/cutile-python", "cuda-tile"), "note"),
    ("cuTile's, kept nowhere", closed("/home/ada/.cache/cutile-python", "cuda-tile", CUDA_TILE_CACHE_DIR="0"), "pass"),
    ("XLA's temporary folder", leading(TMP, TMPDIR="nothing"), "fail"),
    ("XLA's temporary folder, led elsewhere", leading(TMP, HOME, TMPDIR="folder"), "pass"),
    ("a cache that is a file", leading(HOME, CUPY_CACHE_DIR="file"), "fail"),
    ("a flag of XLA", writing(HOME, FolderAccess(path="/x", obstacle=NO), frameworks=(JAX,), XLA_FLAGS=XLA), "warn"),
    ("a flag of XLA elsewhere", writing(HOME, frameworks=(JAX,), XLA_FLAGS=XLA.replace("/x", "/home/ada")), "pass"),
    ("a flag of XLA by a name alone", writing(READ_ONLY, frameworks=(JAX,), XLA_FLAGS="--xla_dump_to=sponge",
     CUDA_CACHE_PATH="/x"), "pass"),
    ("SGLang's", closed("/home/ada/.cache/sglang", "sglang"), "warn"),
    ("the Hub's kernels", closed("/x", "kernels", KERNELS_CACHE="/x"), "warn"),
    ("the driver loads nothing from there", writing(HOME, FolderAccess(path="/home/ada/.nv", noexec=True)), "pass"),
]  # fmt: skip


def given(
    *,
    gpus: int = 1,
    cuda: int = 0,
    uid: int = 1000,
    node: int = 0,
    near: tuple[int, ...] = (),
    values: Variables | None = None,
    **fields: Any,
) -> Snapshot:
    """A machine whose process has these limits, processors and names."""
    platform = but(UBUNTU, **{"uid": uid, "cpus": 16, "processors": 16, "limits": {}, "adapters": (), **fields})
    counts = near or (None,) * gpus
    beside = (but(h200(number), numa_node=node, processors_near=count) for number, count in enumerate(counts))
    snapshot = machine(*beside, platform=platform)
    snapshot = but(snapshot, variables=values or snapshot.variables)
    return but(snapshot, driver=but(driver(), cuda_init=answered("cuInit", cuda, "X"))) if cuda else snapshot


def limited(expected: str, what: str, **fields: Any) -> tuple[str, str, Snapshot, tuple[str, ...]]:
    return "limit-too-low", what, given(**fields), (expected,) if expected else ()


LIMITS = [
    limited("pass", "unlimited"),
    limited("pass", "the usual", limits={"open-files": 1024, "locked-memory": 8 << 20, "processes": 4096}),
    limited("warn", "few addresses", limits={"address-space": 16 << 30}),
    limited("fail", "few addresses, and cuInit says so", limits={"address-space": 8 << 30}, cuda=2),
    limited("warn", "few addresses, and cuInit says something else", limits={"address-space": 8 << 30}, cuda=802),
    limited("fail", "seccomp refuses what cuInit asks for", limits={"memory-files": 0}, cuda=304),
    limited("warn", "few files", limits={"open-files": 256}),
    limited("warn", "few processes", limits={"processes": 100}),
    limited("fail", "few processes, and cuInit says so", limits={"processes": 60}, cuda=304),
    limited("fail", "few tasks, and cuInit says so", task_limit=20, cuda=304),
    limited("warn", "small files", limits={"file-size": 1 << 20}),
    limited("fail", "seccomp refuses threads", limits={"threads": 0}, cuda=304),
    limited("warn", "little data", limits={"data": 200 << 20}),
    limited("warn", "an hour of processor time", limits={"processor-time": 3600}),
    limited("pass", "few processes, for root", limits={"processes": 100}, uid=0),
    limited("pass", "little memory to lock, no InfiniBand", limits={"locked-memory": 65536}),
    limited("warn", "little memory to lock, InfiniBand", limits={"locked-memory": 65536}, adapters=("mlx5_0",)),
    limited("warn", "little memory", memory_limit=1 << 30),
    limited("fail", "too little memory to start", memory_limit=300 << 20),
    limited("pass", "enough memory", memory_limit=64 << 30),
    limited("warn", "few processes of the control group, for root too", task_limit=100, uid=0),
    limited("pass", "enough processes", task_limit=4096),
    limited("", "not known", limits=None),
]


def profiling(
    expected: str, what: str, *, restricted: bool | None = True, release: str = "580.65.06", **fields: Any
) -> tuple[str, str, Snapshot, tuple[str, ...]]:
    given_to = {"programs": ("/usr/local/cuda/bin/ncu", "/usr/local/cuda/bin/nsys"), "capabilities": (), **fields}
    snapshot = given(**given_to)
    module = KernelModule(source="procfs", loaded=True, version=release, counters_for_admins=restricted)
    kernel = but(snapshot.kernel or Kernel(), nvidia=module)
    return "profiler-not-permitted", what, but(snapshot, kernel=kernel), (expected,) if expected else ()


PROFILERS = [
    profiling("note", "the counters are for administrators"),
    profiling("pass", "an administrator", capabilities=("sys_admin",)),
    profiling("pass", "a container with the capability", capabilities=("perfmon",), uid=1000),
    profiling("note", "root of a container without it", uid=0, container="docker"),
    profiling("pass", "all users may", restricted=False, perf_event_paranoid=2),
    profiling("note", "samples of processors", restricted=False, perf_event_paranoid=4),
    profiling("pass", "Nsight Compute takes none", restricted=False, perf_event_paranoid=4, programs=("/opt/ncu",)),
    profiling("", "no profiler", programs=()),
    profiling("", "not known", restricted=None, perf_event_paranoid=2),
]


def confined(expected: str, what: str, **fields: Any) -> tuple[str, str, Snapshot, tuple[str, ...]]:
    return "process-confined", what, given(**fields), (expected,) if expected else ()


PROCESSORS = [
    confined("pass", "all"), confined("warn", "one of many", cpus=1),
    confined("pass", "the only one there is", cpus=1, processors=1),
    confined("warn", "the share of one", cpu_limit=1.0), confined("warn", "half of one", cpu_limit=0.5),
    confined("pass", "a share of many", cpu_limit=4.0), confined("warn", "fewer than GPUs", gpus=8, cpus=4),
    confined("warn", "a machine with fewer than GPUs", gpus=4, cpus=2, processors=2),
    confined("pass", "as many as GPUs", gpus=8, cpus=8),
    confined("warn", "memory elsewhere", processor_nodes=(0,), memory_nodes=(1,)),
    confined("warn", "processors far from the GPU", cpus=8, processor_nodes=(0,), node=1),
    confined("note", "processors far from one of two GPUs", gpus=2, cpus=8, near=(8, 0)),
    confined("warn", "processors far from both, on one node", gpus=2, cpus=8, processor_nodes=(0,), near=(0, 0)),
    confined("pass", "the GPU's own list counts", cpus=8, processor_nodes=(0,), node=1, near=(8,)),
    confined("pass", "all processors, on one node", processor_nodes=(0,), node=1),
    confined("warn", "no memory beside the GPU", nodes_without_memory=(1,), node=1),
    confined("pass", "no memory on another node", nodes_without_memory=(1,), node=0),
    confined("pass", "memory near", processor_nodes=(0, 1), memory_nodes=(1,)),
    confined("", "not known", processors=None),
    confined("", "two of a machine that is not known", processors=None, cpus=2),
    ("process-confined", "two, in a text about a slow program",
     but(given(processors=None, cpu_limit=2.0, cpus=None), observed_errors=(
         ObservedError(source="pasted text", text="the training is very slow"),)), ("warn",)),
]  # fmt: skip


def named(
    expected: str,
    what: str,
    gpus: int = 1,
    hosts: tuple[str, ...] | None = ("localhost",),
    *,
    server: bool = True,
    **values: str,
) -> tuple[str, str, Snapshot, tuple[str, ...]]:
    found = Variables(source="process", values=values, complete=True, hosts=hosts, name_server=server)
    adapters = ("mlx5_0", "mlx5_1")
    links = ("docker0", "eth0", "ib0", "lo")
    environment = venv(torch())
    snapshot = given(gpus=gpus, values=found, interfaces=links, adapters=adapters, host="node1")
    return "network-name-unknown", what, with_venv(snapshot, environment), (expected,) if expected else ()


NAMES = [
    named("", "nothing is named"), named("pass", "a prefix", NCCL_SOCKET_IFNAME="eth"),
    named("warn", "an exact name that is only a prefix", NCCL_SOCKET_IFNAME="=eth"),
    named("pass", "an exact name", NCCL_SOCKET_IFNAME="=eth0"),
    named("pass", "one of a list", NCCL_SOCKET_IFNAME="ens,ib"),
    named("warn", "none of a list", NCCL_SOCKET_IFNAME="ens,eno"),
    named("fail", "none, for several GPUs", 2, NCCL_SOCKET_IFNAME="ens"),
    named("pass", "all but some", NCCL_SOCKET_IFNAME="^docker,lo"),
    named("warn", "all but all", NCCL_SOCKET_IFNAME="^docker,lo,eth,ib"),
    named("pass", "all but one by its name", NCCL_SOCKET_IFNAME="^=eth0"),
    named("pass", "an adapter with its port", 2, NCCL_IB_HCA="=mlx5_0:1"),
    named("warn", "an adapter that is not there", 2, NCCL_IB_HCA="mlx4"),
    named("", "an adapter where one GPU needs none", NCCL_IB_HCA="mlx4"),
    named("warn", "Gloo takes no prefix", GLOO_SOCKET_IFNAME="eth"), named("pass", "Gloo", GLOO_SOCKET_IFNAME="eth0"),
    named("pass", "UCX, an adapter", UCX_NET_DEVICES="mlx5_1:1"), named("", "UCX, all", UCX_NET_DEVICES="all"),
    named("warn", "UCX, none", UCX_NET_DEVICES="mlx5_7:1"), named("pass", "an address", MASTER_ADDR="10.0.0.1"),
    named("pass", "this host", MASTER_ADDR="node1"), named("pass", "with a port", NCCL_COMM_ID="node1:2950"),
    named("pass", "IPv6", NCCL_COMM_ID="[fe80::1]:2950"), named("warn", "no", NCCL_COMM_ID="node7:2950", server=False),
    named("pass", "a host of the file", MASTER_ADDR="node7", hosts=("node7",)),
    named("note", "a host that a server may know", MASTER_ADDR="node7"),
    named("warn", "a host that nothing can know", MASTER_ADDR="node7", server=False),
    named("", "nobody looked", MASTER_ADDR="node7", hosts=None),
]  # fmt: skip

CASES = [
    *((RULE, what, snapshot, (expected,)) for what, snapshot, expected in WRITING), *LIMITS, *PROCESSORS, *NAMES,
    *PROFILERS,
]  # fmt: skip


@every(CASES)
def test_what_programs_need(rule: str, what: str, snapshot: Snapshot, expected: tuple[str, ...]) -> None:
    assert statuses(rule, snapshot) == expected, what


def test_a_limit_explains_what_cuda_says_of_it() -> None:
    snapshot = given(limits={"address-space": 8 << 30}, cuda=2)
    assert cause(snapshot) == "limit-too-low"
    assert bad(but(snapshot, platform=but(UBUNTU, limits={}))) != [], "it is no false alarm without the limit"


def test_a_limit_that_is_reached_explains_what_could_not_be_started() -> None:
    refused = "could not be started: Resource temporarily unavailable (see ulimit -u)"
    title = "Operating system"
    run = ProbeRun(source="x", name="platform", title=title, status="failed", detail=refused, limit="processes")
    snapshot = but(given(limits=None, cuda=304), runs=(run,))
    assert cause(snapshot) == "limit-too-low"
    assert check_of("limit-too-low", snapshot).evidence[0].value == refused
    assert "control group" in check_of("limit-too-low", snapshot).message
    of_root = but(snapshot, runs=(but(run, limit="tasks"),))
    assert "ulimit" not in " ".join(fix.text for fix in check_of("limit-too-low", of_root).fixes)
    few = but(given(task_limit=60), runs=(run,))
    assert (cause(few), check_of("limit-too-low", few).status) == ("limit-too-low", "fail")
    assert "control group" in check_of("limit-too-low", few).title


@cases(
    "runtime, words",
    ("docker", "--ulimit nofile=65536"),
    ("kubernetes", "ulimit -Sn hard"),
    ("none", "as root: ulimit -n 65536"),
)
def test_limits_are_raised_in_the_words_of_the_runtime(runtime: str, words: str) -> None:
    found = check_of("limit-too-low", given(limits={"open-files": 64}, container=runtime))
    assert words in found.fixes[0].text


def test_no_temporary_folder_is_a_failure() -> None:
    snapshot = writing(HOME)
    assert snapshot.variables
    assert statuses(RULE, but(snapshot, variables=but(snapshot.variables, temporary=""))) == ("fail",)


def test_the_question_arises_with_a_build_for_cuda_and_where_somebody_looked() -> None:
    snapshot = writing(READ_ONLY)
    assert snapshot.variables
    assert statuses(RULE, but(snapshot, variables=but(snapshot.variables, places=None))) == ()
    assert statuses(RULE, writing(READ_ONLY, frameworks=(torch("2.5.1+cpu", cuda=None),))) == ()


def test_the_fix_names_the_variables_and_the_place() -> None:
    temporary, full = FolderAccess(path="/tmp"), FolderAccess(path="/tmp", free=0)
    found = check_of(RULE, writing(READ_ONLY, temporary))
    assert "TRITON_CACHE_DIR=/tmp/caches-0/triton" in found.fixes[0].command
    assert "TORCHINDUCTOR_CACHE_DIR" not in " ".join(found.fixes[0].command), "its folder is not in home"
    assert len(found.fixes) == 1, "nobody gives a read-only file system back"
    assert "volume" in check_of(RULE, but(writing(READ_ONLY), platform=DOCKER)).fixes[1].text
    assert "sudo" in check_of(RULE, writing(FolderAccess(path="/home/ada", obstacle=NO))).fixes[1].text
    elsewhere = check_of(RULE, writing(READ_ONLY, full, SHARED)).fixes[0].command
    assert "TRITON_CACHE_DIR=/dev/shm/caches-0/triton" in elsewhere
    (name,) = check_of(RULE, writing(HOME, temporary, named=False)).fixes
    assert name.command == ("env", "USER=user-0", "python"), "a folder alone does not end it"
    assert check_of(RULE, writing(READ_ONLY, full, but(SHARED, noexec=True))).fixes[0].command == ()
    flag = check_of(RULE, writing(temporary, FolderAccess(path="/x", obstacle=NO), frameworks=(JAX,), XLA_FLAGS=XLA))
    set_now = XLA.replace("/x/tuned", "/tmp/caches-0/xla-fusions")
    assert flag.fixes[0].command == ("env", f"XLA_FLAGS={set_now}", "python"), "the other flags stay"


# --- What a trial says in its own words ---------------------------------------------------------------------------

OLD_NUMPY = "A module that was compiled using NumPy 1.x cannot be run in NumPy 2.2.6 as it may crash."


@cases("error, rule",
    ("RuntimeError: Failed to find C compiler. Please specify via CC environment variable.", "jit-compiler-missing"),
    ("RuntimeError: Ninja is required to load C++ extensions", "jit-compiler-missing"),
    ('catastrophic error: cannot open source file "vector_types.h"', "jit-compiler-missing"),
    ("PermissionError: [Errno 13] Permission denied: '/root/.triton/cache/ABC'", RULE),
    ("KeyError: 'getpwuid(): uid not found: 1000'", RULE),
    ("OSError: [Errno 24] Too many open files: '/x'", "limit-too-low"),
    ("RuntimeError: can't start new thread", "limit-too-low"),
)  # fmt: skip
def test_the_error_of_a_trial_outranks_what_was_printed_beside_it(error: str, rule: str) -> None:
    trial = Trial(source="trial", imported=True, ran_on_gpu=False, error=error, warnings=(OLD_NUMPY,))
    assert cause(with_venv(machine(h200()), venv(torch(), but(TRITON, trial=trial)))) == rule
