"""Shared libraries and programs, linked for a test: what the real loader maps, and what is predicted for the same."""

import atexit
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

from probes.common.tree import Tree
from probes.files.elf.info import elf_info
from probes.files.loader.process import LoadedImage, LoaderProcess, failed
from probes.files.loader.setup import system_of
from tests.known import known

HOST = r"""
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
int main(int count, char **words) {
    static char line[65536];
    for (int i = 1; i < count; i++) {
        void *handle = dlopen(words[i], RTLD_LAZY | RTLD_GLOBAL);
        printf("%s\n", handle ? "loaded" : dlerror());
    }
    puts("--");
    FILE *maps = fopen("/proc/self/maps", "r");
    while (fgets(line, sizeof line, maps)) {
        char *path = strchr(line, '/');
        if (path) fputs(path, stdout);
    }
    return 0;
}
"""
"""Opens its arguments one after the other, says how that went, and prints the paths in its memory map."""

GCC = shutil.which("gcc")
REASON = "gcc is not here to build libraries with"


class Seen(NamedTuple):
    loaded: tuple[bool, ...]  # For each name asked for
    mapped: frozenset[str]  # Real paths of the files below the test's folder, the program left out


@dataclass
class Workshop:
    """A folder in which libraries are built."""

    folder: Path

    def at(self, path: str) -> Path:
        place = self.folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        return place

    def library(self, path: str, needed: Sequence[str] = (), *flags: str, soname: str | None = "") -> Path:
        """Link a library that needs the files ``needed`` (paths here). ``soname``: empty is its file's name."""
        place = self.at(path)
        name = place.name if soname == "" else soname
        self._link(place, "-shared", "-nostdlib", *([f"-Wl,-soname,{name}"] if name else []), *flags, needed=needed)
        return place

    def program(self, path: str = "host", needed: Sequence[str] = (), *flags: str) -> Path:
        place = self.at(path)
        self._link(place, _compiled(HOST), *flags, needed=needed)
        return place

    def truth(self, program: Path, names: Sequence[str], variables: Mapping[str, str] | None = None) -> Seen:
        """What the loader of this machine does."""
        return known(self.attempt(program, names, variables))

    def attempt(self, program: Path, names: Sequence[str], variables: Mapping[str, str] | None = None) -> Seen | None:
        """The same; None where the program cannot start."""
        done = subprocess.run(
            [program, *names], cwd=self.folder, env=dict(variables or {}), capture_output=True, text=True, check=False
        )
        words, _, maps = done.stdout.partition("--\n")
        if done.returncode != 0:
            assert "error while loading shared libraries" in done.stderr
            return None
        return Seen(tuple(word == "loaded" for word in words.splitlines()), self._own(program, maps.splitlines()))

    def process(self, program: Path, variables: Mapping[str, str] | None = None) -> LoaderProcess:
        """The process of the program as it is predicted to start."""
        tree = Tree({"cwd": str(self.folder), "variables": dict(variables or {})})
        inside = str(program.resolve())
        head = known(elf_info(inside))
        return LoaderProcess(system_of(tree, head, head.interpreter), LoadedImage(inside, head, None, "absolute"))

    def predicted(self, program: Path, names: Sequence[str], variables: Mapping[str, str] | None = None) -> Seen:
        process = self.process(program, variables)
        loaded = tuple(not failed(process.open(name, process.images[0])) for name in names)
        assert process.complete
        return Seen(loaded, self._own(program, [image.path for image in process.images]))

    def _own(self, program: Path, paths: Sequence[str]) -> frozenset[str]:
        real = {Path(path).resolve() for path in paths} - {program.resolve()}
        return frozenset(str(path) for path in real if path.is_relative_to(self.folder.resolve()))

    def _link(self, place: Path, *flags: str, needed: Sequence[str]) -> None:
        asked = [part for path in needed for part in (f"-L{(self.folder / path).parent}", f"-l:{Path(path).name}")]
        self._run("-Wl,--no-as-needed", "-Wl,--allow-shlib-undefined", "-o", place, *flags, *asked)

    def _run(self, *words: object) -> None:
        _gcc(*words, *(["-x", "none", _compiled("")] if "-shared" in words else []))


def _gcc(*words: object, text: str | None = None) -> None:
    done = subprocess.run([GCC or "gcc", *map(str, words)], input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@cache
def _compiled(text: str) -> str:
    """The object file of a C text: to compile takes twice as long as to link, and all libraries are of the same."""
    folder = tempfile.mkdtemp(prefix="envcheck-object-")
    atexit.register(shutil.rmtree, folder)
    place = f"{folder}/compiled.o"
    _gcc("-c", "-fPIC", "-x", "c", "-", "-o", place, text=text)
    return place


def rpath(*folders: object) -> tuple[str, ...]:
    return ("-Wl,--disable-new-dtags", "-Wl,-rpath," + ":".join(map(str, folders)))


def runpath(*folders: object) -> tuple[str, ...]:
    return ("-Wl,--enable-new-dtags", "-Wl,-rpath," + ":".join(map(str, folders)))
