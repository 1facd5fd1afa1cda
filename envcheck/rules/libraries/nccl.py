"""NCCL, which carries data between GPUs: that it is installed, new enough, and finds a network interface."""

from __future__ import annotations

from envcheck.checks import Evidence, Fix
from envcheck.compat.error_lines import lines_with, nccl_releases
from envcheck.compat.relations.libraries import is_older
from envcheck.rules.api import Facts, FrameworkSubject, Outcome, never, passed, rule
from envcheck.rules.facts.frameworks import full_name
from envcheck.rules.facts.libraries import load_evidence, loads_are_known, loads_of, missing_because
from envcheck.rules.facts.trials import TRIAL_RULES, imported
from envcheck.rules.fixes.libraries import drop_from_variable, install_library_again, install_nccl
from envcheck.rules.libraries.missing import not_installed


@rule(
    layer="library",
    per="framework",
    arises=loads_are_known,
    explains=TRIAL_RULES,
    remedy=install_nccl,
    told_by=("damaged-distribution",),
)
def nccl_missing(subject: FrameworkSubject, facts: Facts) -> Outcome | None:
    """NCCL is not installed.

    What it checks
        Checks that the loader finds the libnccl.so.2 that a framework needs. NCCL's network plug-ins
        (libnccl-net.so, libibverbs) are optional.

    Why it matters
        A build of PyTorch with NCCL fails at `import`, and no framework trains on several GPUs.

    How to fix
        Install NVIDIA's wheel for the framework's CUDA major version (`nvidia-nccl-cu…`) in the
        release that the framework pins.

    Sources
        NCCL, installation: https://docs.nvidia.com/deeplearning/nccl/install-guide/index.html
    """
    found = missing_because("nccl-missing", subject, facts)
    return not_installed(subject, found, facts) if found else None


def _between_ranks(facts: Facts) -> Outcome | None:
    """The outcome where the text shows the releases that several processes of a job load."""
    versions = nccl_releases(facts.snapshot.observed_errors)
    if len(versions) < 2 or not lines_with("nccl-message-truncated", facts.snapshot.observed_errors):
        return None
    return Outcome(
        status="fail",
        title=f"The processes of a job load different releases of NCCL: {' and '.join(versions)}",
        fixes=(
            Fix(
                text="Use one release of NCCL on all nodes: the same image or environment, and no other copy on "
                "LD_LIBRARY_PATH; each process prints its own with NCCL_DEBUG=VERSION"
            ),
        ),
    )


@rule(layer="library", per="framework", explains=TRIAL_RULES, remedy=install_nccl, doubt=_between_ranks)
def nccl_version_mismatch(subject: FrameworkSubject, facts: Facts) -> Outcome | None:
    """NCCL is older than the one that the framework was built with.

    What it checks
        Checks that NCCL is at least as new as the one that the framework was built with. All
        processes of a job must use the same release; this machine cannot tell which one other
        machines have, but a pasted log of several processes can.

    Why it matters
        An older release lacks functions that the framework calls: `import` fails with "undefined
        symbol: ncclCommWindowRegister" or a similar error.

    How to fix
        Install the release that the framework pins, and keep older copies (of the system or of
        another wheel) off LD_LIBRARY_PATH.

    Sources
        NCCL, release notes: https://docs.nvidia.com/deeplearning/nccl/release-notes/index.html
        NCCL, an older library at run time: https://github.com/NVIDIA/nccl/issues/1784
    """
    framework = subject.framework
    load = next((load for load in loads_of(framework, "nccl") if load.version), None)
    if load is None or not framework.nccl or not loads_are_known(subject, facts):
        return None
    if not is_older(load.version, framework.nccl):
        return passed(f"{framework.name} loads NCCL {load.version}, which is new enough")
    built = Evidence(what="built with NCCL", value=framework.nccl or "", source=framework.source_of("nccl"))
    return Outcome(
        status="note" if imported(framework) else "warn",
        title=f"{framework.name} loads NCCL {load.version} but was built with {framework.nccl}",
        message=f"{load.path} is older than the NCCL that {full_name(framework)} was built with.",
        evidence=(*load_evidence([load]), built),
        fixes=(*drop_from_variable([load], facts), *install_library_again("nccl", subject, facts)),
    )


_RIGHT_INTERFACE = (
    Fix(
        text="Set NCCL_SOCKET_IFNAME to an interface that is up, or unset it",
        command=("env", "-u", "NCCL_SOCKET_IFNAME", "NCCL_DEBUG=INFO", "python"),
    ),
    Fix(text="List the interfaces", command=("ip", "-brief", "address")),
    Fix(text="Give a container without a network one: docker run --network host …"),
)


@rule(layer="library", arises=never, remedy=_RIGHT_INTERFACE)
def nccl_no_interface() -> None:
    """NCCL finds no network interface.

    What it checks
        Reads error lines of NCCL: "no socket interface found", "Address family not supported",
        "connecting to address with family … is neither AF_INET nor AF_INET6". The network itself is
        not checked.

    Why it matters
        The processes of a job find one another over an IP interface, even on one machine. Without
        one, or if NCCL_SOCKET_IFNAME names none, no collective operation starts.

    How to fix
        Correct or unset NCCL_SOCKET_IFNAME, bring an interface up, or start the container with a
        network.

    Sources
        NCCL, environment variables: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html
    """


_OWN_GPU_EACH = (
    Fix(text="Start at most one process for each GPU, and give each its own: torch.cuda.set_device(LOCAL_RANK)"),
    Fix(text="Compare the number of processes with the GPUs that are visible", command=("nvidia-smi", "-L")),
)


@rule(layer="framework", arises=never, remedy=_OWN_GPU_EACH)
def ranks_share_gpu() -> None:
    """Two processes of a job use one GPU.

    What it checks
        Reads error lines of NCCL: "Duplicate GPU detected", "Multiple Ranks are using the same GPU".

    Why it matters
        NCCL refuses two ranks of a communicator on one GPU. A job has more processes than visible GPUs,
        or its processes do not choose their own.

    How to fix
        Start as many processes as GPUs are visible, and select the GPU of each by its local rank before
        NCCL starts. Check CUDA_VISIBLE_DEVICES: it may be the same single GPU for all of them.

    Sources
        NCCL, init.cc: https://github.com/NVIDIA/nccl/blob/master/src/init.cc
        PyTorch, distributed, devices of ranks: https://docs.pytorch.org/docs/stable/distributed.html
    """


_UNLIMITED = (
    Fix(text="In a container: start it with --ulimit memlock=-1"),
    Fix(
        text="On a host: set memlock to unlimited in /etc/security/limits.conf, and LimitMEMLOCK=infinity for the "
        "scheduler's service (slurmd, kubelet, docker)",
        who="root",
    ),
)


@rule(layer="container", scope="container", arises=never, remedy=_UNLIMITED)
def locked_memory_too_small() -> None:
    """The limit for locked memory is too small for InfiniBand.

    What it checks
        Reads error lines of NCCL and of InfiniBand's library: "ibv_reg_mr … Cannot allocate memory",
        "ibv_create_cq … Cannot allocate memory".

    Why it matters
        A network adapter reads and writes memory that the kernel must not move. A process may lock no
        more than its limit, often 64 KiB in containers and batch jobs.

    How to fix
        Raise the limit: --ulimit memlock=-1 for containers, limits.conf on hosts, LimitMEMLOCK for the
        service that starts jobs.

    Sources
        NCCL user guide, troubleshooting:
          https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html
        Linux manual, limits of resources: https://man7.org/linux/man-pages/man2/getrlimit.2.html
    """
