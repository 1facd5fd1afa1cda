"""What PyTorch warns of: rows know its lines, and here is the list of its code, of which each line has one."""

from __future__ import annotations

import re

from envcheck.importers.importer import Rank, environment, importer, with_environment
from envcheck.importers.paste import SOURCE, Paste
from envcheck.importers.readings import read_lines
from envcheck.model.merge import merge
from envcheck.model.snapshot import Framework, Snapshot

_BUILT_FOR_CODE = re.compile(r"- ([0-9]{1,2})\.([0-9]) which supports hardware CC\b")
"""A line of the list in which PyTorch 2.10 and newer tell the code of the build."""
_MOST_CODE = 40


@importer("PyTorch's messages", Rank.MESSAGE)
def read_torch_messages(paste: Paste) -> Snapshot:
    found = read_lines("PyTorch's messages", paste)
    listed = (_BUILT_FOR_CODE.search(line) for line in paste.statements if "supports hardware CC" in line)
    code = tuple(f"sm_{match[1]}{match[2]}" for match in listed if match)[:_MOST_CODE]
    torch = Framework(source=SOURCE, name="torch", gpu_code=code)
    return merge((found, with_environment(environment(frameworks=(torch,))))) if code else found
