"""Records, where each fact of them was read, and lists that say whether they are complete.

The modules of this package do without ``from __future__ import annotations``: what a field may hold is needed as the
object that it is when a Snapshot is decoded, and to make those of texts would take as long as to judge a machine.
"""

from typing import Generic, TypeVar

import msgspec

PASTED = "pasted text"
"""The source of what was read in a text, and the name of the runs that say which part of one was not read."""


def inferred(why: str) -> str:
    """The source of what was not read anywhere, but follows from the matrix or from other facts."""
    return f"inferred {why}"


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """A group of facts read together."""

    source: str = ""  # Where it was read, in a short word
    read: dict[str, str] = {}  # Where single fields were read, by name, if elsewhere than the record

    def source_of(self, field: str) -> str:
        return self.read.get(field, self.source)

    def is_inferred(self, field: str) -> bool:
        """Whether ``field`` follows from the matrix or from other facts, so that nothing here shows it."""
        return self.source_of(field).startswith(inferred(""))


class Identified(Record, frozen=True, kw_only=True):
    """A record that several sources may describe; two with a common identity are the same thing."""

    def identities(self) -> tuple[str, ...]:
        """Everything that identifies the thing, most lasting first; never an index."""
        raise NotImplementedError


Item = TypeVar("Item", bound=Identified)


class Listing(msgspec.Struct, Generic[Item], frozen=True, kw_only=True):
    """A list of things. Absence may be concluded only from a ``complete`` one."""

    items: tuple[Item, ...] = ()  # The things that were found
    complete: bool = False  # Whether there are no others


def items_in(listing: Listing[Item] | None) -> tuple[Item, ...]:
    """The things that were found; none where it was not checked."""
    return listing.items if listing else ()


class ApiResult(Record, frozen=True, kw_only=True):
    """What a call into a driver library returned: ``nvmlInit`` 9 DRIVER_NOT_LOADED."""

    call: str  # Name of the function
    code: int  # The library's own status number; 0 is success, -1 is "the library could not be loaded"
    name: str = ""
    """The status by name, as in ``CUDA_ERROR_SYSTEM_NOT_READY``."""
    text: str = ""  # What the library, or the loader, says about it
    library: str | None = None  # Real path of the library file that answered
    seconds: float | None = None  # How long it took, in seconds
