"""The list of a project's files, in both formats that indexes speak; every way to fail is one sentence."""

import socket
from collections.abc import Iterator
from contextlib import closing

import pytest

from envcheck.errors import UsageError
from envcheck.refresh import index as client
from envcheck.refresh.index import IndexFile, PackageIndex, index_address
from envcheck.refresh.wheel_files import rows_of
from tests.every import cases
from tests.refresh.serving import Index as Served
from tests.refresh.serving import serve


def ask(address: str, project: str) -> list[IndexFile]:
    with closing(PackageIndex(address)) as index:
        return index.files(project)


@pytest.fixture
def served() -> Iterator[Served]:
    """An index with three files, one of them withdrawn."""
    index = Served()
    index.add("demo-1.0-py3-none-any.whl", {}, requires_python=">=3.9,<3.14")
    index.add("demo-1.1-py3-none-any.whl", {})
    index.add("demo-2.0-py3-none-any.whl", {})
    index.yanked.add("demo-1.1-py3-none-any.whl")
    with serve(index):
        yield index


@cases("spoken", "json", "html")
def test_both_formats_say_the_same(served: Served, spoken: str) -> None:
    served.format = spoken
    found = ask(served.address, "Demo")
    assert [(file.name, file.yanked) for file in found] == [
        ("demo-1.0-py3-none-any.whl", False), ("demo-1.1-py3-none-any.whl", True), ("demo-2.0-py3-none-any.whl", False),
    ]  # fmt: skip
    assert [file.requires_python for file in found] == [">=3.9,<3.14", "", ""]
    base = served.address.removesuffix("/simple")
    assert found[0].url.partition("#")[0] == f"{base}/files/demo-1.0-py3-none-any.whl"


def test_the_name_of_a_project_is_normalised(served: Served) -> None:
    ask(served.address + "/", "My.Package_name")
    assert served.asked == ["/simple/my-package-name/"]


@cases("status", 404, 403, 500)
def test_a_refusal_is_said_without_the_address(served: Served, status: int) -> None:
    served.broken["demo/"] = status
    address = served.address.replace("http://", "http://user:secret@")
    with pytest.raises(UsageError, match=f"the index cannot be asked for demo: HTTP status {status}") as caught:
        ask(address, "demo")
    assert "secret" not in str(caught.value)


@cases("address, sha256, why",
    ("http://index.example", "0" * 64, "without TLS"), ("http://127.0.0.1@index.example", "0" * 64, "without TLS"),
    ("https://index.example", "", "does not tell its sha256"), ("http://localhost:9", "", "does not tell its sha256"),
)  # fmt: skip
def test_rows_that_nobody_vouches_for_are_refused_before_they_are_asked_for(
    address: str, sha256: str, why: str
) -> None:
    with closing(PackageIndex(address)) as index, pytest.raises(UsageError, match=why):
        rows_of("2026-11-29", IndexFile("rows.whl", f"{address}/rows.whl", sha256=sha256), index)


def test_nobody_there() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        closed = taken.getsockname()[1]
    with pytest.raises(UsageError, match="the index cannot be asked for demo: no connection"):
        ask(f"http://127.0.0.1:{closed}/simple", "demo")


def test_an_answer_that_is_no_list(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(served, "page", lambda _: ("application/vnd.pypi.simple.v1+json", b'{"files": 3}'))
    with pytest.raises(UsageError, match="the index's answer about demo cannot be read as a list of files"):
        ask(served.address, "demo")


def test_an_endless_answer_is_cut(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "_MOST_BYTES", 1 << 20)
    monkeypatch.setattr(served, "page", lambda _: ("text/html", b"x" * (3 << 20)))
    with pytest.raises(UsageError, match="the index's answer about demo is longer than 1 MiB"):
        ask(served.address, "demo")


@cases("address", "file:///srv/index", "index.example/simple", "ftp://index.example")
def test_an_address_must_be_of_the_web(address: str) -> None:
    with pytest.raises(UsageError, match="start with http:// or https://"):
        PackageIndex(address)


@cases("option, variables, address",
    ("https://a/simple", {"PIP_INDEX_URL": "https://b/simple"}, "https://a/simple"),
    (None, {"UV_INDEX_URL": "https://c/simple", "PIP_INDEX_URL": "https://b/simple"}, "https://b/simple"),
    (None, {"PIP_INDEX_URL": "", "UV_DEFAULT_INDEX": "https://d/simple"}, "https://d/simple"),
)  # fmt: skip
def test_the_index_is_the_one_of_pip_and_uv(option: str | None, variables: dict[str, str], address: str) -> None:
    assert index_address(option, variables) == address


def test_no_index_is_guessed() -> None:
    with pytest.raises(UsageError, match=r"no index is configured: name it with --index-url URL \(or in PIP_INDEX_URL"):
        index_address(None, {})
