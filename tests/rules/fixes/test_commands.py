"""The commands for packages, by the tool that fills the environment."""

from __future__ import annotations

import msgspec
import pytest

from envcheck.compat.load import load_matrix
from envcheck.rules.api import Facts
from envcheck.rules.fixes.commands import conda_command, in_user_site, pip_command
from envcheck.rules.fixes.install import install
from envcheck.rules.fixes.reinstall import reinstall
from envcheck.snapshot import Distribution, Environment, Listing, Snapshot

SITE = "/home/ada/.local/lib/python3.12/site-packages"


def environment(prefix: str = "/usr", *distributions: Distribution, **more: object) -> Environment:
    fields = {"base_prefix": "/usr", "python": "3.12.3", "executable": f"{prefix}/bin/python3", **more}
    return Environment(
        source="file", key=prefix, prefix=prefix, site_packages=(SITE, f"{prefix}/lib/python3.12/site-packages"),
        distributions=distributions, distributions_complete=True, **fields,  # type: ignore[arg-type]
    )  # fmt: skip


def package(name: str, folder: str, installer: str = "pip") -> Distribution:
    path = f"{folder}/{name}-1.0.dist-info"
    return Distribution(source=f"file {path}", name=name, version="1.0", path=path, installer=installer)


NUMPY = package("numpy", SITE)


@pytest.mark.parametrize(
    ("where", "command"),
    [
        (environment("/usr", NUMPY), ("/usr/bin/python3", "-m", "pip", "install", "--user")),
        (environment("/venv", NUMPY), ("/usr/bin/python3.12", "-m", "pip", "install", "--user")),
        (environment("/venv", NUMPY, manager="uv"), ("/usr/bin/python3.12", "-m", "pip", "install", "--user")),
    ],
)
def test_a_package_of_the_user_site_is_installed_again_there(where: Environment, command: tuple[str, ...]) -> None:
    assert in_user_site(where, NUMPY)
    (fix,) = [each for each in reinstall(where, (NUMPY,)) if "ensurepip" not in each.command]
    assert fix.command[:5] == command


def test_another_release_goes_into_the_virtual_environment_itself() -> None:
    """Its own folder comes before the user site, whose copy other programs use."""
    virtual = environment("/venv", NUMPY, manager="venv")
    for where, command in (
        (virtual, ("/venv/bin/python3", "-m", "pip", "install", "numpy>=2")),
        (msgspec.structs.replace(virtual, manager="uv"), ("uv", "pip", "install", "--python", "/venv", "numpy>=2")),
        (environment("/usr", NUMPY), ("/usr/bin/python3", "-m", "pip", "install", "--user", "numpy>=2")),
    ):
        judged = msgspec.structs.replace(where, judged=True)
        facts = Facts(Snapshot(environments=Listing(items=(judged,), complete=True)), load_matrix())
        assert [fix.command for fix in install(facts, ("numpy>=2",), "x") if "ensurepip" not in fix.command] == [
            command
        ]


def test_a_system_that_forbids_pip_is_told_to_allow_the_user_site() -> None:
    where = environment("/usr", NUMPY, externally_managed=True)
    assert "--break-system-packages" in pip_command(where, "uninstall", "numpy", user=True)


@pytest.mark.parametrize("folder", ["/usr/lib/python3.12/site-packages", "/opt/other/lib/python3.12/site-packages"])
def test_other_folders_are_no_user_site(folder: str) -> None:
    assert not in_user_site(environment("/usr"), package("numpy", folder))


def test_an_environment_without_pip_gets_it_before_it_is_used() -> None:
    damaged = package("numpy", "/venv/lib/python3.12/site-packages")
    commands = [fix.command for fix in reinstall(environment("/venv", damaged, manager="venv"), (damaged,))]
    assert [command[2] for command in commands] == ["ensurepip", "pip"]
    with_uv = environment("/venv", package("numpy", "/venv/lib/python3.12/site-packages", "uv"))
    assert reinstall(with_uv, (damaged,))[0].command[:3] == ("uv", "pip", "install")


def test_pixi_names_the_environment() -> None:
    where = Environment(source="file", key="x", prefix="/p/.pixi/envs/gpu")
    place = ("--manifest-path", "/p")
    assert conda_command(where, ["cudnn=9.1=h_0"], again=True)[2:] == (*place, "--environment", "gpu", "cudnn")
    assert conda_command(where, ["cudnn"])[2:] == (*place, "--feature", "gpu", "cudnn")
