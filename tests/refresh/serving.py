"""A package index on loopback: tiny wheels with the members of real ones, served with and without range requests."""

import hashlib
import io
import json
import re
import threading
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

_RANGE = re.compile(r"bytes=(?:([0-9]+)-([0-9]*)|-([0-9]+))")


class Index:
    """What the server has, and what it was asked for."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.yanked: set[str] = set()
        self.requires_python: dict[str, str] = {}
        self.format = "json"
        self.hashes: dict[str, str] = {}
        """What it says of the sha256 of a file where that is not the truth; empty: nothing."""
        self.metadata: dict[str, bytes] = {}
        """METADATA that it has as files of their own, by the name of the wheel."""
        self.ranges = True
        self.range_end: int | None = None
        """Last byte that answers to range requests claim to hold, where that is a lie."""
        self.padding: dict[str, int] = {}
        """Bytes that a file claims to have before its own, by file name."""
        self.broken: dict[str, int] = {}
        """HTTP status by file name, or by project with a slash behind it."""
        self.unknown = 200
        """Its HTTP status for projects of which it has no file."""
        self.sent = 0
        self.asked: list[str] = []
        self.address = ""

    def add(self, name: str, members: Mapping[str, bytes], *, requires_python: str = "") -> None:
        """Put a wheel there."""
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            for member, content in members.items():
                archive.writestr(member, content)
        self.files[name] = packed.getvalue()
        self.requires_python[name] = requires_python

    def names(self, project: str) -> list[str]:
        """Its files of a project."""
        return [name for name in self.files if re.sub("[-_.]+", "-", name.split("-")[0]).lower() == project]

    def page(self, project: str) -> tuple[str, bytes]:
        """Content type and body of the list of a project's files."""
        names = self.names(project)
        if self.format == "html":
            links = "".join(self._link(name) for name in names)
            return "text/html", f"<!DOCTYPE html><html><body>{links}</body></html>".encode()
        files: list[dict[str, Any]] = [
            {
                "filename": name,
                "url": f"../../files/{name}",
                "hashes": {"sha256": self.sha256(name)} if self.sha256(name) else {},
                "core-metadata": {"sha256": hashlib.sha256(self.metadata[name]).hexdigest()}
                if name in self.metadata
                else False,
                "requires-python": self.requires_python[name] or None,
                "yanked": "broken build" if name in self.yanked else False,
            }
            for name in names
        ]
        body = {"meta": {"api-version": "1.1"}, "name": project, "files": files}
        return "application/vnd.pypi.simple.v1+json", json.dumps(body).encode()

    def sha256(self, name: str) -> str:
        """What it says of a file."""
        return self.hashes.get(name, hashlib.sha256(self.files[name]).hexdigest())

    def _link(self, name: str) -> str:
        yanked = ' data-yanked="broken build"' if name in self.yanked else ""
        python = self.requires_python[name].replace("<", "&lt;").replace(">", "&gt;")
        address = f"../../files/{name}#sha256={self.sha256(name)}".removesuffix("#sha256=")
        return f'<a href="{address}" data-requires-python="{python}"{yanked}>{name}</a><br/>\n'


@contextmanager
def serve(index: Index) -> Iterator[Index]:
    """Serve ``index`` on loopback; sets its address."""

    class Handler(_Handler):
        served = index

    server = _Server(("127.0.0.1", 0), Handler)
    index.address = f"http://127.0.0.1:{server.server_port}/simple"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield index
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Server(ThreadingHTTPServer):
    def handle_error(self, *_: Any) -> None:
        """A client may hang up when it has read enough."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    served: Index

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        index, parts = self.served, self.path.strip("/").split("/")
        index.asked.append(self.path)
        if parts[0] == "simple":
            self._project(parts[1])
        elif parts[-1] in index.files:
            self._file(parts[-1])
        elif parts[-1].removesuffix(".metadata") in index.metadata:
            self._answer(200, index.metadata[parts[-1].removesuffix(".metadata")])
        else:
            self._answer(404)

    def _project(self, project: str) -> None:
        index = self.served
        if f"{project}/" in index.broken:
            self._answer(index.broken[f"{project}/"])
            return
        kind, body = index.page(project)
        self._answer(200 if index.names(project) else index.unknown, body, {"Content-Type": kind})

    def _file(self, name: str) -> None:
        index, content = self.served, self.served.files[name]
        if name in index.broken:
            self._answer(index.broken[name])
            return
        asked = _RANGE.fullmatch(self.headers.get("Range", ""))
        if asked is None or not index.ranges:
            self._answer(200, content)
            return
        before = index.padding.get(name, 0)
        size = before + len(content)
        first = int(asked[1]) if asked[1] else max(before, size - int(asked[3]))
        last = min(int(asked[2]) if asked[2] else size - 1, size - 1)
        part = content[max(0, first - before) : max(0, last + 1 - before)]
        index.sent += len(part)
        self._answer(206, part, {"Content-Range": f"bytes {first}-{index.range_end or last}/{size}"})

    def _answer(self, status: int, body: bytes = b"", headers: Mapping[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Say nothing on stderr."""


def metadata(name: str, version: str, *requires: str, python: str = "") -> bytes:
    """METADATA as it is in a wheel."""
    lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
    lines += [f"Requires-Python: {python}"] if python else []
    lines += [f"Requires-Dist: {each}" for each in requires]
    return "\n".join((*lines, "", "Text.\n")).encode()


def torch_members(version: str, cuda: str | None, flags: str, *requires: str, ballast: int = 0) -> dict[str, bytes]:
    """The members that tell, as PyTorch's wheels have them, beside one that does not."""
    stated = repr(cuda) if cuda else "None"
    library = b"\x7fELF" + b"\x00" * 64 + b"sm_90\x00" + flags.encode() + b"\x00CUDA_VERSION\x00"
    return {
        "torch/lib/libtorch_cuda.so": _noise(ballast),
        "torch/version.py": f"__version__ = '{version}'\ndebug = False\ncuda: Optional[str] = {stated}\n".encode(),
        "torch/lib/libtorch_python.so": library if cuda else b"\x7fELF",
        f"torch-{version}.dist-info/METADATA": metadata("torch", version, *requires),
    }


def _noise(size: int) -> bytes:
    """Bytes that do not shrink."""
    state, made = 1, bytearray()
    while len(made) < size:
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        made += state.to_bytes(8, "little")
    return bytes(made[:size])
