"""No line of a Dockerfile that may install packages is passed over: it is read, or the verdict stays open."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envcheck.errors import UsageError
from tests.documents import lines_of, texts
from tests.every import cases, tabled
from tests.plans.reading import judge, packages, plan, sample
from tests.thorough import examples

H100 = "gpu==H100,driver==580.65.06"
TORCH = "pip install torch==2.5.1 --index-url https://download.pytorch.org/whl/cu124"

# Each of these is shaped like a public project's Dockerfile, and passes: what the lines below are put into.
HEALTHY = {name: f"{text}\n" for name, _, text in texts(sample("dockerfiles.txt"))}
LINES = lines_of(sample("commands.txt"))


def exit_code(text: str) -> tuple[int, set[int]]:
    """The exit status, and the lines that the report names beside those of the images."""
    with tempfile.TemporaryDirectory() as folder:
        report = judge(plan(Path(folder), Dockerfile=text), H100)
    lines = {check.location.line for check in report.checks if check.location and check.status == "unknown"}
    return int(report.exit_code), {line for line in lines if line}


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_file_passes(name: str) -> None:
    assert exit_code(HEALTHY[name]) == (0, set())


@pytest.mark.parametrize("line", [each.replace("§", "\n") for each in LINES])
def test_a_line_that_may_install_is_told(line: str) -> None:
    code, lines = exit_code(f"{HEALTHY['notebook']}{line}\n")
    first = HEALTHY["notebook"].count("\n") + 1
    assert code == 3
    assert any(first <= each <= first + line.count("\n") for each in lines)


AROUND = r"""
{}
true && {}
({})
if true; then {}; fi
sudo -E {}
cd /x; {}
{} > /dev/null
bash -c '{}'
A=1 {}
while ! {}; do sleep 1; done
{} \§ # why§§  --quiet
"""[1:-1].split("\n")
NAMED = """
$PIP install
xargs pip install
pixi add
easy_install
uvx --with
pipenv install
$(which pip) install
pdm update
conda-lock install
mim install
python3 -m hatch run
pip-3 install
pipx runpip app install
"""[1:-1].split("\n")


@settings(max_examples=examples(400), deadline=None)
@given(
    name=st.sampled_from(sorted(HEALTHY)),
    place=st.integers(min_value=0, max_value=30),
    word=st.sampled_from(["RUN ", "RUN\t", "run ", "ONBUILD RUN ", "RUN --network=host ", "RUN <<EOF\n"]),
    wraps=st.lists(st.sampled_from(AROUND), max_size=2),
    named=st.sampled_from(NAMED),
    package=st.sampled_from(["vllm", "-U vllm", "some-package"]),
)
def test_an_unknown_spelling_anywhere_leaves_the_verdict_open(
    name: str, place: int, word: str, wraps: list[str], named: str, package: str
) -> None:
    command = f"{named} {package}"
    for around in wraps:
        command = around.replace("{}", command) if around != "bash -c '{}'" or "'" not in command else command
    command = command.replace("§", "\n")
    end = "\nEOF" if "EOF" in word else ""
    before, after = _divided(HEALTHY[name], place)
    code, lines = exit_code("".join([*before, f"{word}{command}{end}\n", *after]))
    first = "".join(before).count("\n") + 1
    assert code == 3
    assert lines & {*range(first, first + command.count("\n") + 2)}


def _divided(text: str, place: int) -> tuple[list[str], list[str]]:
    """The file's lines, divided where an instruction of the last stage begins."""
    lines = text.splitlines(keepends=True)
    begins = [n for n, line in enumerate(lines) if line.startswith(("RUN ", "WORKDIR", "CMD", "COPY", "ENTRYPOINT"))]
    at = begins[place % len(begins)]
    return lines[:at], lines[at:]


@tabled
def test_what_installs_nothing_is_no_doubt(line: str) -> None:
    assert exit_code(f"{HEALTHY['notebook']}{line}\n") == (0, set())


@cases(
    "text, code",
    ("FROM nvidia/cuda:12.4.1-runtime-ubuntu22.04\nRUN pip install 'fschat[model_worker]'", 3),
    ("FROM nvidia/cuda:12.4.1-runtime-ubuntu22.04\nRUN pip install 'fschat[model_worker]==0.2.36' numpy", 3),
    ("FROM nvidia/cuda:12.4.1-runtime-ubuntu22.04\nRUN pip install fschat numpy", 0),
    (f"FROM nvidia/cuda:12.4.1-runtime-ubuntu22.04\nRUN {TORCH} && pip install 'uvicorn[standard]'", 0),
    ("FROM pytorch/pytorch:2.4.0-cuda12.4-cudnn9-runtime\nRUN pip install 'uvicorn[standard]'", 0),
)
def test_extras_of_an_unknown_package_are_no_pass_for_the_image_alone(text: str, code: int) -> None:
    assert exit_code(text)[0] == code


@tabled
def test_lines_are_divided_as_docker_does(tmp_path: Path, text: str, found: set[str]) -> None:
    assert set(packages(plan(tmp_path, Dockerfile=text))) == found


@cases("text, told",
    (f"RUN pip install {'a ' * 2_500_000}", "Dockerfile:2: a line of more than 65,535 characters"),
    (f"ARG P='{' ' * 100_000}vllm'\nRUN pip install $P", "Dockerfile:2: a line of more than 65,535"),
    (f"ARG P='{' ' * 60_000}\\\n{' ' * 60_000}vllm'\nRUN pip install $P", ":2: an instruction of more than"),
    ("RUN <<EOF\n" + "pip install a\n" * 10_000 + "EOF", "Dockerfile:2: an instruction of more than 100,000"),
    ("RUN <<EOF\npip install a\n", "Dockerfile:2: no line ends the here-document"),
    (f"ENV A={'b' * 60_000}\nRUN {'$A;' * 20_000}", "its commands are too long"),
    (f"RUN {'x $(a);' * 9_000}", "its commands are too long"))  # fmt: skip
def test_what_is_out_of_bounds_is_refused(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        plan(tmp_path, Dockerfile=f"FROM debian\n{text}\n")


def test_programs_that_start_each_other_end(tmp_path: Path) -> None:
    text = f"FROM debian\nRUN {'uv run --no-sync ' * 3_000}pip install torch\nRUN {'ONBUILD RUN ' * 5_000}x\n"
    text += f"ONBUILD {'ONBUILD RUN ' * 5_000}x\nRUN {'sudo sh -c ' * 5_000}x\n"
    assert packages(plan(tmp_path, Dockerfile=text))[""].line == 2


def test_a_variable_that_would_grow_out_of_bounds_is_not_known(tmp_path: Path) -> None:
    text = f"FROM debian\nENV A='{' ' * 60_000}vllm'\nENV B=\"$A $A\"\nRUN pip install $B\n"
    (found,) = packages(plan(tmp_path, Dockerfile=text)).values()
    assert found.problem
