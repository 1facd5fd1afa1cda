"""Where the documentation is hosted: a rule's page has an address below it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, metadata

from envcheck.config.find import find
from envcheck.config.model import ADDRESS
from envcheck.errors import UsageError

VARIABLE = "ENVCHECK_DOCS_URL"


def documentation_address(variables: Mapping[str, str], folder: str) -> str | None:
    """The address of the documentation's index, with a slash at its end; None where nobody says.

    The variable ``ENVCHECK_DOCS_URL`` outranks ``documentation`` of the configuration that is found from ``folder`` up,
    and that the address that this release names (``Documentation`` among the project's URLs). Raises UsageError for a
    variable that holds no address; a wrong configuration is for the verbs that judge by it.
    """
    given = variables.get(VARIABLE, "")
    if given and not re.fullmatch(ADDRESS, given):
        raise UsageError(f"{VARIABLE}: write an address, as in https://docs.example.org/envcheck/")
    found = given or _of_configuration(folder) or _of_release()
    return f"{found.rstrip('/')}/" if found else None


def _of_configuration(folder: str) -> str | None:
    try:
        configuration = find(folder)
    except UsageError:
        return None
    return configuration.config.documentation if configuration else None


def _of_release() -> str | None:
    try:
        entries = metadata("gpu-envcheck").get_all("Project-URL") or []
    except PackageNotFoundError:
        return None
    urls = {label.strip().lower(): url.strip() for label, _, url in (entry.partition(",") for entry in entries)}
    address = urls.get("documentation", "")
    return address if re.fullmatch(ADDRESS, address) else None
