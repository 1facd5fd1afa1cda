"""A package index: the files of a project, and single members of a wheel by range requests, never the whole file.

Only this module opens connections. It speaks the simple repository API, in JSON (PEP 691) and in HTML (PEP 503), for
indexes of both kinds are in use.
"""

from __future__ import annotations

import hashlib
import threading
import zipfile
import zlib
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import date, datetime
from html.parser import HTMLParser
from typing import Any, NamedTuple, TypeVar
from urllib.parse import urljoin, urlsplit

import msgspec
import requests
import urllib3
from packaging.utils import canonicalize_name
from remotezip import RemoteFetcher, RemoteZip, RemoteZipError

from envcheck import __version__
from envcheck.errors import UsageError

T = TypeVar("T")
R = TypeVar("R")

VARIABLES = ("PIP_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX_URL")
"""The variables that tell pip and uv which index to use."""

TIMEOUT = (15.0, 60.0)  # Seconds to connect, and to wait for the next bytes

_MOST_BYTES = 64 << 20
_JSON = "application/vnd.pypi.simple.v1+json"
_ACCEPT = f"{_JSON}, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1"


class IndexFile(NamedTuple):
    name: str
    url: str
    requires_python: str = ""
    yanked: bool = False
    sha256: str = ""  # Empty where the index does not tell it
    metadata_sha256: str = ""
    """Of its METADATA, which the index has as a file of its own (PEP 658); empty where it has none."""
    uploaded: date | None = None  # The day (PEP 700); None where the index does not tell it

    @property
    def metadata(self) -> IndexFile:
        """The file that METADATA is."""
        return IndexFile(f"{self.name}.metadata", f"{self.url}.metadata", sha256=self.metadata_sha256)


class _JsonFile(msgspec.Struct, frozen=True):
    filename: str
    url: str
    requires_python: str | None = msgspec.field(default=None, name="requires-python")
    yanked: bool | str = False
    hashes: dict[str, str] = {}
    core_metadata: dict[str, str] | bool = msgspec.field(default=False, name="core-metadata")
    upload_time: datetime | None = msgspec.field(default=None, name="upload-time")


class _JsonPage(msgspec.Struct, frozen=True):
    files: list[_JsonFile]


class PackageIndex:
    """An index at a base address, as in pip's ``--index-url``."""

    def __init__(self, address: str) -> None:
        named = urlsplit("")
        with suppress(ValueError):
            named = urlsplit(address)
        if named.scheme not in ("http", "https"):
            raise UsageError("the address of the index must be whole, and start with http:// or https://")
        self.is_private = named.scheme == "https" or named.hostname in ("localhost", "127.0.0.1", "::1")
        """Whether nobody between can change what it says."""
        self._base = address.rstrip("/") + "/"
        self._of_thread = threading.local()
        self._sessions: list[requests.Session] = []
        self.pool = ThreadPoolExecutor(8)
        """Reads small files, so many at once, whoever wants them; its connections stay."""

    def close(self) -> None:
        self.pool.shutdown(cancel_futures=True)
        for session in self._sessions:
            session.close()

    @property
    def session(self) -> requests.Session:
        """The session of this thread; sessions must not be shared."""
        if not hasattr(self._of_thread, "session"):
            self._of_thread.session = requests.Session()
            self._of_thread.session.headers["User-Agent"] = f"envcheck/{__version__}"
            self._of_thread.session.hooks["response"].append(_let_go)
            self._sessions.append(self._of_thread.session)
        own: requests.Session = self._of_thread.session
        return own

    def files(self, project: str) -> list[IndexFile]:
        """All files of ``project``. Raises UsageError if they cannot be listed."""
        address = f"{self._base}{canonicalize_name(project)}/"
        try:
            with self.session.get(address, headers={"Accept": _ACCEPT}, timeout=TIMEOUT, stream=True) as response:
                body = _body(response, f"the index's answer about {project}", _MOST_BYTES)
                if _JSON in response.headers.get("Content-Type", ""):
                    return [
                        IndexFile(
                            found.filename,
                            urljoin(response.url, found.url),
                            found.requires_python or "",
                            found.yanked is not False,
                            found.hashes.get("sha256", ""),
                            found.core_metadata.get("sha256", "") if isinstance(found.core_metadata, dict) else "",
                            found.upload_time and found.upload_time.date(),
                        )
                        for found in msgspec.json.decode(body, type=_JsonPage).files
                    ]
                links = _Links(response.url)
                links.feed(body.decode("utf-8"))
                return links.files
        except requests.RequestException as error:
            raise UsageError(f"the index cannot be asked for {project}: {cause(error)}") from None
        except (msgspec.DecodeError, UnicodeDecodeError, ValueError):
            raise UsageError(f"the index's answer about {project} cannot be read as a list of files") from None

    def whole(self, file: IndexFile, most: int) -> bytes:
        """All of a file, of at most so many bytes, as its sha256 says. Raises UsageError."""
        try:
            with self.session.get(file.url, timeout=TIMEOUT, stream=True) as response:
                content = bytes(_body(response, file.name, most))
        except requests.RequestException as error:
            raise UsageError(f"{file.name} cannot be read: {cause(error)}") from None
        if file.sha256 and hashlib.sha256(content).hexdigest() != file.sha256:
            raise UsageError(
                f"{file.name} was refused: its sha256 is not what the index says: it was changed or cut short"
            )
        return content


def _body(response: requests.Response, what: str, most: int) -> bytearray:
    response.raise_for_status()
    body = bytearray()
    for chunk in response.iter_content(1 << 16):
        body += chunk
        if len(body) > most:
            raise UsageError(f"{what} is longer than {most >> 20} MiB")
    return body


def _let_go(response: requests.Response, *_: object, **__: object) -> None:
    """Close a response without reading it: an error, or a whole file where a range was requested."""
    if not response.ok or ("Range" in response.request.headers and "Content-Range" not in response.headers):
        response.close()


def index_address(option: str | None, variables: Mapping[str, str]) -> str:
    """The address from ``--index-url``, or the one that pip or uv would use; raises UsageError if there is none."""
    address = option or next((variables[name] for name in VARIABLES if variables.get(name)), None)
    if not address:
        names = " or ".join(VARIABLES)
        raise UsageError(f"no index is configured: name it with --index-url URL (or in {names})")
    return address


def cause(error: Exception) -> str:
    """Why a request failed, without the address, which may contain a password."""
    if isinstance(error, requests.HTTPError) and error.response is not None:
        return f"HTTP status {error.response.status_code}"
    if isinstance(error, requests.Timeout):
        return "no answer in time"
    if isinstance(error, requests.exceptions.SSLError):
        return "its TLS certificate is not trusted here"
    if isinstance(error, requests.ConnectionError):
        return "no connection"
    return type(error).__name__


class _Links(HTMLParser):
    """Collects the links of an HTML page of the index."""

    def __init__(self, base: str) -> None:
        super().__init__()
        self.files: list[IndexFile] = []
        self._base = base
        self._open: dict[str, str | None] | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "a":
            self._open = dict(attrs)

    def handle_data(self, data: str) -> None:
        name = data.strip()
        if self._open and name and self._open.get("href"):
            url = urljoin(self._base, self._open["href"] or "")
            python = self._open.get("data-requires-python") or ""
            address, _, sha256 = url.partition("#sha256=")
            self.files.append(IndexFile(name, address, python, "data-yanked" in self._open, sha256))
        self._open = None


_BROKEN = (RemoteZipError, zipfile.BadZipFile, zlib.error, EOFError, urllib3.exceptions.HTTPError, NotImplementedError)
_TAIL = 1 << 17  # Bytes at the end of a wheel that are requested first; most lists of members fit
_MOST_LIST = 1 << 26  # Largest list of members, in bytes


class _BoundedFetcher(RemoteFetcher):  # type: ignore[misc]  # remotezip has no types
    """Limits what is read into memory at once, so that neither the wheel nor the server can choose the amount."""

    def fetch(self, data_range: tuple[int, int | None], stream: bool = False) -> Any:  # noqa: FBT001, FBT002
        first, last = data_range
        most = -first if last is None else last - first + 1
        if not stream and most > _MOST_LIST:
            raise RemoteZipError("the list of members is too long")
        part = super().fetch((first, last), stream=stream)
        if len(part) > most:
            part.close()
            raise RemoteZipError("more than what was asked for")
        return part


def in_parallel(pool: ThreadPoolExecutor, read: Callable[[T], R], things: Iterable[T]) -> list[R]:
    """What ``read`` makes of each, as many at once as the pool has threads; an error, or Ctrl-C, starts no other."""
    futures = [pool.submit(read, thing) for thing in things]
    try:
        return [future.result() for future in futures]
    finally:
        for future in futures:
            future.cancel()


class RemoteWheel:
    """A wheel on an index that is not downloaded."""

    def __init__(self, file: IndexFile, session: requests.Session) -> None:
        self._file = file
        self._session = session
        self._zip: RemoteZip | None = None

    def close(self) -> None:
        if self._zip is not None:
            self._zip.close()

    def read(self, wanted: Callable[[str], bool], most: int) -> bytes | None:
        """The first member with the name ``wanted``, or None; raises UsageError if it cannot be read.

        ``most`` is the largest accepted size, unpacked, in bytes.
        """
        try:
            if self._zip is None:
                self._zip = RemoteZip(
                    self._file.url,
                    initial_buffer_size=_TAIL,
                    session=self._session,
                    fetcher=_BoundedFetcher,
                    timeout=TIMEOUT,
                )
            archive = self._zip
            found = next((info for info in archive.infolist() if wanted(info.filename)), None)
            if found is None:
                return None
            with archive.open(found) as member:
                content: bytes = member.read(most + 1)
        except requests.RequestException as error:
            raise UsageError(f"{self._file.name} cannot be read: {cause(error)}") from None
        except _BROKEN as error:
            refuses = "range requests" in str(error)
            why = "the server does not offer it" if refuses else type(error).__name__  # no address
            raise UsageError(f"{self._file.name} cannot be read by ranges: {why}") from None
        if len(content) > most:
            raise UsageError(f"{self._file.name}: {found.filename} is longer than {most} bytes")
        return content
