"""Commands of RUN lines: whatever a shell allows in front of, behind and around an installation."""

from pathlib import Path

import pytest

from envcheck.errors import UsageError
from envcheck.plans.shell import commands
from tests.every import cases, tabled
from tests.plans.reading import packages, plan

INSTALL = "pip install torch==2.0.1"


@tabled
def test_an_installation_is_found(tmp_path: Path, around: str) -> None:
    found = packages(plan(tmp_path, Dockerfile=f"FROM debian\nRUN {around.replace('{}', INSTALL)}\n"))
    assert found["torch"].version == "2.0.1"
    assert all(each.problem is None for each in found.values())


@cases("line",
    "echo 'pip install torch==2.0.1'", "apt-get install -y python3-pip", "pip download torch==2.0.1", "# pip install x",
)  # fmt: skip
def test_what_installs_no_package_is_left_out(tmp_path: Path, line: str) -> None:
    assert packages(plan(tmp_path, Dockerfile=f"FROM debian\nRUN {line}\n")) == {}


@cases("line", "pip install $(cat x)", "pip install `cat x`", "pip install a{b,c}", "pip install 'x", "pip install $X")
def test_what_a_shell_would_have_to_compute_stays_open(tmp_path: Path, line: str) -> None:
    (found,) = packages(plan(tmp_path, Dockerfile=f"FROM debian\nRUN {line}\n")).values()
    assert found.problem


@tabled
def test_known_variables_are_filled_in(tmp_path: Path, lines: str) -> None:
    text = lines if lines.startswith("ARG V") else f"FROM debian\n{lines}"
    assert packages(plan(tmp_path, Dockerfile=f"{text}\n"))["torch"].version == "2.0.1"


@tabled
def test_indexes_of_variables_count(tmp_path: Path, lines: str) -> None:
    assert packages(plan(tmp_path, Dockerfile=f"FROM debian AS a\n{lines}\n"))["torch"].build == "cu118"


@tabled
def test_packages_that_are_copied_from_a_stage_count(tmp_path: Path, copy: str, names: set[str]) -> None:
    text = (
        f"FROM debian AS build\nENV D=/data/wheelhouse\nRUN {INSTALL} --target=/build/packages\nFROM debian\n{copy}\n"
    )
    assert set(packages(plan(tmp_path, Dockerfile=text))) == names


@cases("name", "Dockerfile-gpu", "Dockerfile_trt", "Containerfile.cuda", "gpu.Dockerfile", "GPUDockerfile")
def test_names_of_dockerfiles(tmp_path: Path, name: str) -> None:
    assert packages(plan(tmp_path, **{name: f"FROM debian\nRUN {INSTALL}\n"}))["torch"].line == 2


def test_the_name_of_an_egg_is_that_of_the_package(tmp_path: Path) -> None:
    text = "FROM debian\nRUN pip install 'git+https://example.org/a/b.git@main#egg=xformers'\n"
    assert packages(plan(tmp_path, Dockerfile=text))["xformers"].problem


def test_a_line_of_an_included_file_stays_open_with_its_place(tmp_path: Path) -> None:
    text = "FROM debian\nCOPY . .\nRUN pip install -r requirements.txt\n"
    found = plan(tmp_path, Dockerfile=text, _requirements__txt="a b\n").planned or ()
    assert [(each.source, each.name) for each in found] == [(f"{tmp_path}/requirements.txt:1", "")]


@cases("text", "$" * 50_000, "((" * 20_000, "sh -c 'sh -c \"sh -c x\"' " * 500, "a=1 " * 20_000, "<" * 9999)
def test_hostile_texts_end(text: str) -> None:
    assert sum(1 for _ in commands(text, {})) <= 40_000


def test_the_number_of_stages_is_bounded(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="Dockerfile:201: more than 200 stages"):
        plan(tmp_path, Dockerfile="FROM debian\n" * 1900)


VARIABLES = " ".join(f"a{n}=1" for n in range(3000))


@cases("lines", "RUN x\n" * 3000, f"COPY {'a ' * 3000} /b/\nRUN x\n", f"ENV {VARIABLES}\nRUN x\n")
def test_what_each_line_notes_is_bounded(tmp_path: Path, lines: str) -> None:
    with pytest.raises(UsageError, match="more than 2,000"):
        plan(tmp_path, Dockerfile=f"FROM debian\n{lines}")


def test_stages_that_copy_from_each_other_often_are_read_once(tmp_path: Path) -> None:
    stages = "".join(
        f"FROM debian AS s{n}\n" + (f"COPY --from=s{n - 1} /opt/venv /opt/venv\n" * 3 if n else f"RUN {INSTALL}\n")
        for n in range(60)
    )
    assert packages(plan(tmp_path, Dockerfile=stages))["torch"].version == "2.0.1"
