"""Findings on the page for people: causes, fixes, what they cite, and one line for several that say the same."""

import msgspec

from envcheck.model.checks import Check, Fix, Ignored, Source, Subject
from envcheck.model.snapshot import ApiResult, Driver, Environment, Listing, Mig, MigInstance, Snapshot
from envcheck.report import Options, render
from envcheck.report.page.pen import ROOMS, Pen, fix_lines
from tests.every import cases
from tests.report.examples import HOME, PLAIN, VENV, about, check, driver_too_old, gpu, page, torch_build
from tests.report.examples import machine as build_machine


def test_what_the_user_can_do_comes_first() -> None:
    text = render(driver_too_old(), "text", PLAIN)
    assert text.index("torch==2.6.0+cu118") < text.index("as root: Install driver")


@cases("about, fixes, lines",
    ("each of several ways is told in words, what only looks first",
     (Fix(text="Read the kernel log", command=("sudo", "dmesg"), who="root"),
      Fix(text="See whether the machine shows the card", command=("lspci", "-nn", "-d", "10de:")),
      Fix(text="Judge the Python environment alone", command=("envcheck", "check", "--scope", "env"))),
     ["  fix   See whether the machine shows the card:", "        lspci -nn -d 10de:",
      "  fix   Judge the Python environment alone:", "        envcheck check --scope env",
      "  fix   Read the kernel log:", "        sudo dmesg"]),
    ("steps that belong together are shown together and told from alternatives",
     (Fix(text="Remove both", command=("pip", "uninstall", "a", "b")),
      Fix(text="Install one", command=("pip", "install", "b"), continues=True),
      Fix(text="Keep them apart", command=("python", "-m", "venv", "c"))),
     ["  fix   step 1 of 2: Remove both:", "        pip uninstall a b", "  fix   step 2 of 2: Install one:",
      "        pip install b", "  fix   Keep them apart:", "        python -m venv c"]),
    ("a fix is a sentence before its command", (Fix(text="Install torch again", command=("pip", "install", "torch")),),
     ["  fix   Install torch again:", "        pip install torch"]),
)  # fmt: skip
def test_fixes(about: str, fixes: tuple[Fix, ...], lines: list[str]) -> None:
    assert page(check("no-nvidia-gpu", "fail", layer="gpu", fixes=fixes)).splitlines()[1 : 1 + len(lines)] == lines


def test_a_long_command_is_printed_whole_and_alone() -> None:
    found = driver_too_old()
    command = found.checks[0].fixes[1].command
    assert f"  {' '.join(command)}" in render(found, "text", PLAIN).splitlines()


def test_a_command_of_absurd_length_is_named_and_never_cut() -> None:
    fix = Fix(text="Install it", command=("pip", "install", *(f"package-{number}" for number in range(400))))
    bad = check("cpu-only-build", "fail", "A build for CPUs", fixes=(fix,))
    text = page(bad, snapshot=build_machine((), torch_build()))
    assert "package-0" not in text
    assert "a command of 4,701 characters (-v prints it)" in text
    assert "package-399" in page(bad, options=Options(verbose=True))


def test_the_tightest_page_has_every_step_of_the_first_way() -> None:
    step = Fix(text="Remove both, " * 20, command=("pip", "uninstall", "a", "b"))
    install = Fix(text="Install one", command=("pip", "install", "b"), continues=True)
    other = Fix(text="Keep them apart", command=("python", "-m", "venv", "c"))
    bad = check("onnxruntime-cpu-and-gpu", "fail", fixes=(step, install, other))
    lines = ["".join(span.text for span in line) for line in fix_lines(bad, Pen(PLAIN), ROOMS[-1])]
    said = [line.split("  ")[-1].strip() for line in lines]
    assert said == ["pip uninstall a b", "pip install b", "+1 more fix (-v)"]


def test_only_a_page_of_the_first_source_s_product_is_cited() -> None:
    """Else Docker's missing toolkit would cite a page on Jetson because its address is shorter."""
    long = Source(title="Docker", address="https://docs.nvidia.com/datacenter/cloud-native/" + "x" * 80)
    short = Source(title="Jetson", address="https://nvidia.github.io/container-wiki/toolkit/jetson.html")
    near = Source(title="Docker, an overview", address="https://docs.nvidia.com/datacenter/cloud-native/index.html")

    def cited(*sources: Source) -> str:
        found = check("container-toolkit-missing", "fail", layer="container", sources=sources)
        return next(line for line in page(found).splitlines() if line.startswith("  docs")).split(maxsplit=1)[1]

    assert cited(long, short) == "envcheck rule container-toolkit-missing"
    assert cited(long, short, near) == near.address
    assert cited(short, near) == short.address


def test_a_finding_on_several_gpus_is_told_once() -> None:
    gpus = tuple(gpu(number) for number in (0, 1, 2, 5))
    bad = [
        check(
            "row-remap-failed",
            "fail",
            f"GPU {found.index} (H200): row remapping has failed",
            layer="gpu",
            subject=about(found),
        )
        for found in gpus
    ]
    late = [check("ecc", "warn", "Uncorrected errors", layer="gpu", subject=about(found)) for found in gpus[1:]]
    text = page(*bad, *late, snapshot=build_machine(gpus, None))
    lines = text.splitlines()
    assert lines[0].startswith("FAIL  GPU 0 (H200): row remapping has failed (also GPU 1-2, 5)")
    assert lines[1].strip() == "[row-remap-failed]"
    assert any(line.startswith("WARN  Uncorrected errors (GPU 1-2, 5) ") for line in lines)
    assert text.count("[row-remap-failed]") == 1


SPLIT = gpu(0, mig=Mig(enabled=True, instances=(MigInstance(), MigInstance())), utilisation=None, processes=None)
REFUSING = Driver(installed=True, release="550.54.14", cuda_init=ApiResult(call="cuInit", code=-1))
BROKEN = Environment(
    key=VENV, why="VIRTUAL_ENV", judged=True, problem="its base interpreter /usr/bin/python3.9 is gone"
)


@cases("about, checks, snapshot, told",
    ("an action stands in for a missing fix", [check("gpu-needs-reset", "fail", layer="gpu", action="reset")], None,
     ["  fix   reset the GPU\n"]),
    ("MIG, use and what a framework says", [],
     build_machine((SPLIT,), torch_build("2.6.0", "12.4", gpu_available=False), driver=REFUSING),
     ["GPU         -     H200 (sm_90, 140 GiB), MIG with 2 instances\n",
      "Driver      -     550.54.14; libcuda cannot be loaded\n",
      "Frameworks  -     torch 2.6.0 (CUDA 12.4), does not reach the GPU\n"]),
    ("an environment that cannot be examined", [],
     msgspec.structs.replace(build_machine((), None), environments=Listing(items=(BROKEN,))),
     ["Python      ?     ~/p/.venv (VIRTUAL_ENV): its base interpreter"]),
    ("what is required",
     [check("requirement-not-met", "fail", layer="request", subject=Subject(key="gpus>=8")),
      check("requirement-not-met", layer="request", subject=Subject(key="torch>=2.4"))], None,
     ["Required    FAIL  not met: gpus>=8; met: torch>=2.4"]),
    ("the home folder is shortened only as a whole path",
     [check("a", "fail", message=f"{HOME} {HOME}/x /mnt{HOME}/x {HOME}ism {HOME}.old", title="T")], None,
     ["why   ~ ~/x /mnt/home/ada/x /home/adaism /home/ada.old"]),
    ("findings are never lost in a circle of causes",
     [check("first", "fail", explained_by="second@machine"), check("second", "fail", explained_by="first@machine"),
      check("orphan", "fail", explained_by="gone@machine")], None, ["[first]", "[second]", "[orphan]"]),
)  # fmt: skip
def test_what_a_page_tells(about: str, checks: list[Check], snapshot: Snapshot | None, told: list[str]) -> None:
    text = page(*checks, snapshot=snapshot)
    assert [line for line in told if line not in text] == []


def test_a_check_of_an_environment_names_it() -> None:
    subject = Subject(kind="environment", key=VENV, environment=VENV)
    text = page(check("nvidia-wheel-conflict", "fail", layer="library", scope="env", subject=subject))
    assert "  seen  ~/p/.venv (VIRTUAL_ENV, Python 3.12)\n" in text
    assert "Python " not in text.replace("Python 3.12", "")


def test_ignored_findings_are_not_told_as_findings() -> None:
    aside = check("power-throttled", "warn", "Power is capped", layer="gpu", ignored=Ignored(reason="by design"))
    assert "Power is capped" not in page(aside, verdict="pass")
    assert "ignored by policy: by design" in page(aside, verdict="pass", options=Options(verbose=True))
