"""envcheck as a wheel installs it: the rows and the sources of pages compiled, everything else linked to the checkout.

For tests that start the command: in a checkout it spends more than half of its time on the TOML of the rows.
"""

import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

from envcheck.bundle import COMPILED
from envcheck.knowledge.compiling import write_compiled
from envcheck.rules.documentation import FOLDER, write_compiled_pages

ROOT = Path(__file__).parents[1]
INSTALLED = ROOT / ".pytest_cache" / "installed"
"""The folder to put on PYTHONPATH; it is renewed where a session starts."""
ROWS = INSTALLED / "envcheck" / "matrix"


def renew(document: dict[str, Any]) -> None:
    """Let the folder hold what the checkout holds now, with these rows. Another session may use it meanwhile."""
    package, rows, pages = ROWS.parent, ROWS, ROWS.parent / FOLDER
    for folder in (rows, pages):
        folder.mkdir(parents=True, exist_ok=True)
    copied = "bundle.py"  # it looks beside itself for the rows, where links have been followed
    modules = {file.name: file for file in (ROOT / "envcheck").iterdir() if file.name not in (copied, "__pycache__")}
    links = {package / name: file for name, file in {**modules, "probes": ROOT / "probes"}.items()}
    links.update({rows / file.name: file for file in (ROOT / "matrix").iterdir()})
    links.update({pages / file.name: file for file in (ROOT / FOLDER).iterdir()})
    for path in (*package.iterdir(), *rows.iterdir(), *pages.iterdir()):
        if path.is_symlink() and path not in links:
            path.unlink()
    for path, file in links.items():
        with suppress(FileExistsError):
            path.symlink_to(file)
    new = INSTALLED / f"new-{os.getpid()}"
    shutil.copy2(ROOT / "envcheck" / copied, new)
    new.replace(package / copied)
    write_compiled(document, new)
    new.replace(rows / COMPILED)
    new_pages = INSTALLED / f"pages-{os.getpid()}"
    new_pages.mkdir(exist_ok=True)
    write_compiled_pages(ROOT / FOLDER, ROOT / "matrix", new_pages)
    for file in new_pages.iterdir():
        file.replace(pages / file.name)
    new_pages.rmdir()
