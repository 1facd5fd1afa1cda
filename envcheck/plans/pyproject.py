"""pyproject.toml: the project's dependencies. Optional ones count where ``FILE[extra]`` names them."""

from __future__ import annotations

from envcheck.plans.kit.requirement import planned
from envcheck.plans.kit.sheet import Sheet
from envcheck.plans.kit.tables import lines_of_texts, table_of, texts_of
from envcheck.snapshot import Planned

NAME = "pyproject.toml"


def recognise(name: str) -> bool:
    return name == "pyproject.toml"


def read(sheet: Sheet) -> list[Planned]:
    project = table_of(sheet.toml(), "project")
    if not project:
        raise sheet.error(None, "it has no [project] table")
    lines = lines_of_texts(sheet)
    if "dependencies" in texts_of(project, "dynamic"):
        raise sheet.error(
            lines.get("dependencies"), "the dependencies are dynamic; check the lock or requirements file"
        )
    optional = table_of(project, "optional-dependencies")
    unknown = [name for name in sheet.extras if name not in optional]
    if unknown:
        raise sheet.error(None, f"it has no extra {unknown[0]!r}")
    asked = [*texts_of(project, "dependencies"), *(text for name in sheet.extras for text in texts_of(optional, name))]
    found = (planned(sheet, text, lines.get(text)) for text in asked)
    return sheet.bounded(each for each in found if each is not None)
