"""Single members of a wheel on an index, read by range requests: never the whole file."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Callable
from typing import Any, Protocol

import requests
import urllib3
from remotezip import RemoteFetcher, RemoteZip, RemoteZipError

from envcheck.errors import UsageError
from envcheck.refresh.index import TIMEOUT, File, cause

_BROKEN = (RemoteZipError, zipfile.BadZipFile, zlib.error, EOFError, urllib3.exceptions.HTTPError, NotImplementedError)
_TAIL = 1 << 17
"""Bytes at the end of a wheel that are requested first; most lists of members fit."""
_MOST_LIST = 1 << 26
"""Largest list of members, in bytes."""


class Wheel(Protocol):
    """A wheel whose members can be read."""

    def close(self) -> None:
        """Release its connection."""

    def read(self, wanted: Callable[[str], bool], most: int) -> bytes | None:
        """The first member with the name ``wanted``, or None."""


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


class RemoteWheel:
    """A wheel on an index that is not downloaded."""

    def __init__(self, file: File, session: requests.Session) -> None:
        self._file = file
        self._session = session
        self._zip: RemoteZip | None = None

    def close(self) -> None:
        """Release its connection."""
        if self._zip is not None:
            self._zip.close()

    def read(self, wanted: Callable[[str], bool], most: int) -> bytes | None:
        """The first member with the name ``wanted``, or None; raises UsageError if it cannot be read.

        ``most`` is the largest accepted size, unpacked, in bytes.
        """
        try:
            archive = self._archive()
            found = next((info for info in archive.infolist() if wanted(info.filename)), None)
            if found is None:
                return None
            with archive.open(found) as member:
                content: bytes = member.read(most + 1)
        except requests.RequestException as error:
            raise UsageError(f"{self._file.name} cannot be read: {cause(error)}") from None
        except _BROKEN as error:
            raise UsageError(f"{self._file.name} cannot be read by ranges: {_reason(error)}") from None
        if len(content) > most:
            raise UsageError(f"{self._file.name}: {found.filename} is longer than {most} bytes")
        return content

    def _archive(self) -> RemoteZip:
        if self._zip is None:
            self._zip = RemoteZip(
                self._file.url,
                initial_buffer_size=_TAIL,
                session=self._session,
                fetcher=_BoundedFetcher,
                timeout=TIMEOUT,
            )
        return self._zip


def _reason(error: Exception) -> str:
    """The reason of an error, without addresses."""
    if "range requests" in str(error):
        return "the server does not offer it"
    return type(error).__name__
