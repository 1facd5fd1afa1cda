"""Write ``docs/man/envcheck.1`` and ``docs/completions``, or build the documentation as a site.

    python scripts/documentation.py              # the man page, and completions for shells
    python scripts/documentation.py FOLDER       # the site, in FOLDER

Both are made from the texts of ``--help``; the site also from the pages of the rules, from the matrix, and from the
pages in ``docs/``. A rule's page is ``rules/NAME.html`` and stays there. Needs the extra ``docs``. To host the site,
run the workflow ``pages`` in your repository or put the folder on any server; ``envcheck rule NAME`` prints the
address of a page below ``ENVCHECK_DOCS_URL``, else ``documentation`` of the configuration, else ``Documentation`` in
``[project.urls]``.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from docutils.core import publish_string

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from envcheck import __version__  # noqa: E402 - of the checkout that this file belongs to
from envcheck.cli.completion import bash, fish, zsh  # noqa: E402
from envcheck.cli.parser import Parser, grammar  # noqa: E402
from envcheck.knowledge.load import load_matrix  # noqa: E402
from envcheck.knowledge.matrix import TABLES, Matrix  # noqa: E402
from envcheck.knowledge.tables import Row  # noqa: E402
from envcheck.report.answers.rule import rule_markdown  # noqa: E402
from envcheck.report.document import code, prose  # noqa: E402
from envcheck.rules.catalog import all_rules  # noqa: E402

MAN_PAGE = ROOT / "docs" / "man" / "envcheck.1"
COMPLETIONS = ROOT / "docs" / "completions"
DOCS = ROOT / "docs"
LISTS = {
    "tables": ("The matrix", "matrix", "Every row has its source and the day on which it was read."),
    "choices": ("Decisions", "decisions", "Why things are as they are, a note each."),
    "measurements": ("Measurements", "benchmarks/results", "What was measured, and how."),
}
"""Pages that list those of a folder, which stand in no menu, as the pages of rules do not: a menu of hundreds of lines
on each page helps nobody, and costs the theme minutes."""
RESULTS = ROOT / "benchmarks" / "results"
_LINK = re.compile(r"(?P<head>\]\(|^\[[^\]]{1,80}\]: )(?P<target>\.\./[^)\s#]+)", re.MULTILINE)
_VARIES = re.compile(r"^\.\\\" .*\n", re.MULTILINE)  # Comments in which docutils names its own release
_LONGEST_CELL = 600
_LEFT_OUT = {
    'role="heading">': 'role="heading" aria-level="2">', "<pre>": '<pre tabindex="0">',
    '<aside class="sidebar-drawer">': '<aside class="sidebar-drawer" aria-label="pages">',
}  # fmt: skip
"""What the theme leaves out, as axe finds: a heading's level, keys that scroll long lines, a landmark's name."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, help="where the site is built")
    options = parser.parse_args()
    if options.folder is None:
        for file in (write_man_page(), *write_completions()):
            print(file.relative_to(ROOT))
    elif status := build(options.folder):
        sys.exit(status)


# The command line, as reStructuredText: the one text behind the man page and the site's page.


def write_man_page() -> Path:
    """Write the man page; return its path."""
    MAN_PAGE.write_text(man_page(), encoding="utf-8")
    return MAN_PAGE


def write_completions() -> list[Path]:
    """Write what ``envcheck completion`` prints for each shell, under the names that packages give it."""
    for name, text in completions().items():
        (COMPLETIONS / name).write_text(text, encoding="utf-8")
    return [COMPLETIONS / name for name in completions()]


def completions() -> dict[str, str]:
    """The scripts by file name."""
    rules = {rule.name: rule.title for rule in sorted(all_rules(), key=lambda rule: rule.name)}
    return {name: write(rules) for name, write in (("envcheck", bash), ("_envcheck", zsh), ("envcheck.fish", fish))}


def man_page() -> str:
    """The page in roff."""
    head = f"""\
========
envcheck
========
------------------------------
check NVIDIA GPU environments
------------------------------

:Manual section: 1
:Manual group: User Commands
:Version: {__version__}

"""
    settings = {"output_encoding": "unicode", "input_encoding": "unicode", "halt_level": 2, "_disable_config": True}
    page: str = publish_string(
        head + "\n".join(_commands(grammar(), "=")), writer="manpage", settings_overrides=settings
    )
    return _VARIES.sub("", page)


def command_page() -> str:
    """The same text as a page of the site."""
    return "\n".join(["Command line", "============", "", *_commands(grammar(), "-")])


def _commands(parser: Parser, mark: str) -> Iterator[str]:
    """A section for the program and one for each verb."""
    yield from _heading(parser.prog if " " in parser.prog else "SYNOPSIS", mark)
    yield from _literal(_synopsis(parser))
    if parser.description:
        yield from (_escaped(parser.description), "")
    below: list[Parser] = []
    for group in parser._action_groups:  # noqa: SLF001 - argparse has no public list of them
        actions = [action for action in group._group_actions if action.help != argparse.SUPPRESS]  # noqa: SLF001
        for action in actions:
            if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
                below += action.choices.values()
                for choice in action._get_subactions():  # noqa: SLF001
                    if heading := getattr(choice, "heading", None):
                        yield from (f"*{heading}*", "")
                    yield from _entry(f"**{_escaped(choice.dest)}**", choice.help or "")
            else:
                yield from _entry(_spelling(action), _help(parser, action))
    if parser.epilog:
        yield from (_escaped(parser.epilog), "")
    yield from ("Examples:", "")
    yield from _literal("\n".join(parser.examples))
    for verb in below:
        yield from _commands(verb, mark)


def _synopsis(parser: argparse.ArgumentParser) -> str:
    """Shorter than argparse's usage, which also differs by the release of Python."""
    words = [parser.prog, "[OPTION]..."]
    for action in parser._actions:  # noqa: SLF001 - as above
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            words.append("VERB ...")
        elif not action.option_strings:
            name = str(action.metavar or action.dest.upper())
            words.append({"?": f"[{name}]", "*": f"[{name}]...", "+": f"{name}..."}.get(str(action.nargs), name))
    return " ".join(words)


def _heading(title: str, mark: str) -> list[str]:
    return [title, mark * len(title), ""]


def _literal(text: str) -> list[str]:
    return ["::", "", *(f"    {line}" for line in text.rstrip("\n").split("\n")), ""]


def _entry(term: str, text: str) -> list[str]:
    return [term, f"    {_escaped(text) or 'no description'}", ""]


def _spelling(action: argparse.Action) -> str:
    value = action.metavar or (f"{{{','.join(map(str, action.choices))}}}" if action.choices else action.dest.upper())
    shown = f" *{_escaped(str(value))}*" if action.nargs != 0 or not action.option_strings else ""
    if not action.option_strings:
        return shown.strip()
    return ", ".join(f"**{_escaped(flag)}**{shown}" for flag in action.option_strings)


def _help(parser: argparse.ArgumentParser, action: argparse.Action) -> str:
    formatter = parser._get_formatter()  # noqa: SLF001 - what --help itself uses
    return " ".join(formatter._expand_help(action).split()) if action.help else ""  # noqa: SLF001


def _escaped(text: str) -> str:
    return re.sub(r"([\\*`|_<>])", r"\\\1", " ".join(text.split()))


# The site.


def build(folder: Path) -> int:
    """Build the site in ``folder``; the exit status of Sphinx."""
    from sphinx.cmd.build import build_main  # noqa: PLC0415 - the man page needs docutils alone

    with tempfile.TemporaryDirectory() as place:
        write_sources(Path(place))
        status: int = build_main(["-b", "html", "-q", "-W", "--keep-going", place, str(folder)])
    for page in folder.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        for given, whole in _LEFT_OUT.items():
            text = text.replace(given, whole)
        page.write_text(text, encoding="utf-8")
    return status


def write_sources(place: Path) -> None:
    """Write the source of every page below ``place``."""
    shutil.copy(ROOT / "docs" / "conf.py", place)
    for file in sorted(each for each in DOCS.rglob("*") if each.is_file()):
        own = file.relative_to(DOCS)
        if own.parts[0] in ("man", "completions", "rules") or file.suffix == ".py":
            continue
        (place / own).parent.mkdir(parents=True, exist_ok=True)
        if file.suffix == ".md":
            (place / own).write_text(_with_files_outside(file, place), encoding="utf-8")
        else:
            shutil.copy(file, place / own)
    shutil.copytree(RESULTS, place / "benchmarks" / "results", dirs_exist_ok=True)
    (place / "commands.rst").write_text(command_page(), encoding="utf-8")
    rules, tables = place / "rules", place / "matrix"
    rules.mkdir()
    tables.mkdir()
    for rule in all_rules():
        (rules / f"{rule.name}.md").write_text(rule_markdown(rule, _linked), encoding="utf-8")
    matrix = load_matrix()
    for name, table in TABLES.items():
        page = table_page(matrix, name, getattr(matrix, table.attribute))
        (tables / f"{name}.md").write_text(page, encoding="utf-8")
    for name, (title, folder, about) in LISTS.items():
        entries = [f"- [{_title(file)}]({folder}/{file.name})" for file in sorted((place / folder).glob("*.md"))]
        (place / f"{name}.md").write_text("\n".join([f"# {title}\n\n{about}\n", *entries]) + "\n", encoding="utf-8")
    for listed in ("rules", *(folder for _, folder, _ in LISTS.values())):
        for file in (place / listed).glob("*.md"):
            file.write_text(f"---\norphan: true\n---\n\n{file.read_text(encoding='utf-8')}", encoding="utf-8")


def _title(page: Path) -> str:
    return page.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")


def _linked(rule: str) -> str:
    """A link from the page of one rule to that of another."""
    return f"[`{rule}`]({rule}.md)"


def _with_files_outside(page: Path, place: Path) -> str:
    """The text of a page of ``docs/``; files of the checkout elsewhere that it links to are copied to the site."""

    def moved(found: re.Match[str]) -> str:
        there = (page.parent / found["target"]).resolve()
        if there.is_relative_to(DOCS) or not there.is_file():
            return found[0]
        copy = place / there.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(there, copy)
        return found["head"] + os.path.relpath(copy, (place / page.relative_to(DOCS)).parent)

    return _LINK.sub(moved, page.read_text(encoding="utf-8"))


def table_page(matrix: Matrix, table: str, rows: tuple[Row, ...]) -> str:
    """The rows of one table of the matrix, each with what it says and its sources."""
    parts = [f"# {table}", prose(" ".join((type(rows[0]).__doc__ or "").split()), _LONGEST_CELL) if rows else ""]
    for row in rows:
        known = [
            f"- {field.name}: {code(_text(value), _LONGEST_CELL)}"
            for field in msgspec.structs.fields(type(row))
            if field.name != "source" and (value := getattr(row, field.name)) != field.default and value not in ((), {})
        ]
        cited = [f"- source: [{prose(each.title)}](<{each.address}>), read {each.read}" for each in matrix.cite(row)]
        parts.append("\n".join([f"## {code(row.id)}", "", *known, *cited]))
    return "\n\n".join(filter(None, parts)) + "\n"


def _text(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


if __name__ == "__main__":
    main()
