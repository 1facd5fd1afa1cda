"""Run the probes of environments and libraries in this process, as one child runs them."""

import json
from collections.abc import Mapping
from typing import Any

import msgspec

from envcheck.model.merge import merge
from envcheck.model.snapshot import Snapshot
from probes import environments, libraries
from probes.common.out import Out
from probes.common.tree import Tree


def inventory(request: Mapping[str, Any]) -> Snapshot:
    """The environments and libraries of a request; keys that are left out have harmless values."""
    variables = {"HOME": "/nowhere", "PATH": "", "PYTHONNOUSERSITE": "1", **request.get("variables", {})}
    tree = Tree({"root": "/", "cwd": "/", "python": [], "own_prefix": None, **request, "variables": variables})
    lines: list[bytes] = []
    environments.collect(tree, Out("environments", lines.append))
    libraries.collect(tree, Out("libraries", lines.append))
    facts = [message["fact"] for message in map(json.loads, lines) if "fact" in message]
    return merge(msgspec.convert(fact, Snapshot) for fact in facts)
