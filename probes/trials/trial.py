"""Try a framework: import it, let it compute on the GPU, and report after each stage how far it came."""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
import sys
import time
import traceback
from contextlib import contextmanager
from typing import Any, Callable, Iterator, NamedTuple

from ..common.harmless import give_up_making_devices
from ..common.out import Out, clean
from ..common.tree import Tree
from .driver import IN_DEVICE_MEMORY, first_gpu, is_device_memory
from .failure import cut_off, damaged, files_named, text_of
from .libraries import loaded_libraries

# The one line that says what was raised.

LONGEST = 600

_RAISED = re.compile(r"^\s*(?:[\w.]*(?:Error|Exception|Warning|Interrupt|Exit))\s*:")


def error_line(error: BaseException) -> str:
    """``ImportError: libcudnn.so.9: cannot open shared object file``: the type and the line that tells the cause.

    Of an exception that was raised from another, the other's line; of a message that quotes a traceback, the line that
    the traceback ends with; else the first line, behind which frameworks put advice.
    """
    for _ in range(8):
        if error.__cause__ is None:
            break
        error = error.__cause__
    lines = [line.strip() for line in text_of(error).splitlines() if re.search(r"\w", line)]
    quoted = [line for line in lines if _RAISED.match(line)] if any("Traceback (most" in line for line in lines) else []
    if quoted:
        return quoted[-1][:LONGEST]
    name = type(error).__name__
    opened = lines[:1] and lines[0].endswith(":")  # as in "Error at driver init:", with the reason below
    return f"{name}: {' '.join(lines[: 2 if opened else 1])}"[:LONGEST] if lines else name


def print_traceback(error: BaseException) -> None:
    """Print the whole traceback, for the lines that the one line leaves out."""
    try:
        text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
        sys.stderr.write(text[-8000:])
        sys.stderr.flush()
    except Exception:
        pass


# What an import asks for: which library it is about to load, and which packages it wants.
#
# The former is the last word of a process that the loading kills.


Tell = Callable[[str], None]

_listeners: list[Tell] = []
_wanted: dict[str, None] = {}  # Top-level packages, in the order in which they were first asked for
_hooked: list[bool] = []


@contextmanager
def watch_loading(tell: Tell) -> Iterator[None]:
    """Call ``tell`` with the path of every library of a package before it is loaded."""
    if not _hooked:
        sys.addaudithook(_hear)  # it cannot be taken back: it stays, and is silent while nobody listens
        _hooked.append(True)
    _listeners.append(tell)
    try:
        yield
    finally:
        _listeners.remove(tell)


def packages_not_loaded() -> list[str]:
    """Packages that were asked for and are not loaded: absent, or their own import failed."""
    return [name for name in _wanted if name not in sys.modules]


def _hear(event: str, arguments: Any) -> None:
    if not _listeners or event not in ("import", "ctypes.dlopen"):
        return
    path = arguments[1] if event == "import" else arguments[0]
    if event == "import" and isinstance(arguments[0], str):
        _wanted[arguments[0].partition(".")[0]] = None
    if isinstance(path, str) and path.startswith("/") and ".so" in path and "/lib-dynload/" not in path:
        try:
            _listeners[-1](path)
        except Exception:
            pass


# Try a framework: import it, let it compute on the GPU, and tell after each stage how far it came.
#
# What a trial is made of is a ``TrialSubject``; everything else is the same for all. What was sent stays, should a
# later stage crash or hang.


SOURCE = "trial"
_LONGEST_ANSWER = 500

Ask = Callable[[Any], Any]


class OnCpuError(Exception):
    """It computed, or would compute, and not on the GPU; the text says how that is known."""


class NotTriedError(Exception):
    """There is something to be computed that cannot be tried here, which is nobody's fault; the text says why."""


class Where(NamedTuple):
    """Where an operation ran."""

    device: str  # As the framework names it
    proof: str


class Step(NamedTuple):
    """An operation, small, whose result is compared with a known one."""

    name: str
    run: Callable[[Any], Where | None]
    """Given the imported module; the first step of a subject says where it ran. Raises what went wrong."""


class TrialSubject(NamedTuple):
    """What is imported, what it computes, and what it is asked."""

    module: str
    steps: tuple[Step, ...] = ()
    build: dict[str, Ask] = {}  # What it says of itself without looking at the GPU, by name
    answers: dict[str, Ask] = {}  # What it says after it computed
    available: Ask | None = None  # Whether it says that it can use a GPU
    why_none: str = ""  # Why nothing is computed with it, where there are no steps


def module(name: str) -> Any:
    """A module of the environment, imported only now."""
    return importlib.import_module(name)


def on_gpu(pointer: int, device: str) -> Where:
    """The proof that the result at ``pointer`` is in a GPU's memory; raise OnCpuError when it is not."""
    if not is_device_memory(pointer):
        raise OnCpuError(f"the result is on {device} and not in a GPU's memory")
    return Where(device, IN_DEVICE_MEMORY)


def whole_numbers() -> Any:
    """A square matrix of NumPy's whose products are exact in every precision that a GPU may choose."""
    return (module("numpy").arange(64 * 64) % 7).astype("float32").reshape(64, 64)


def equal(result: Any, expected: Any) -> None:
    """Raise ArithmeticError unless the result is the expected one; both are nested lists of numbers, or numbers."""
    if _flat(result) != _flat(expected):
        raise ArithmeticError("the result is wrong")


def close(result: Any, expected: Any, tolerance: float = 1e-3) -> None:
    """Raise ArithmeticError unless each number is within ``tolerance`` of the expected one, absolutely."""
    ours, theirs = _flat(result), _flat(expected)
    if len(ours) != len(theirs) or not all(abs(a - b) <= tolerance for a, b in zip(ours, theirs)):
        raise ArithmeticError("the result is wrong")


def attempt(tree: Tree, out: Out, subject: TrialSubject) -> None:
    """Try ``subject`` and send what happens as the trial of the request's framework."""
    give_up_making_devices()
    _Attempt(tree, out, subject).run()


class _Attempt:
    def __init__(self, tree: Tree, out: Out, subject: TrialSubject) -> None:
        self._tree, self._out, self._subject = tree, out, subject

    def run(self) -> None:
        module = self._import()
        if module is not None:
            self._tell(answers=self._answers(module, self._subject.build))
            self._compute(module)
            self._tell(answers=self._answers(module, self._subject.answers))
            available = self._subject.available
            answer = None if available is None else _without_output(lambda: available(module))
            if isinstance(answer, bool):
                self._send({"gpu_available": answer, "read": {"gpu_available": SOURCE}})
        self._out.progress("reading the memory map")
        self._tell(libraries=loaded_libraries())

    def _import(self) -> Any:
        name = self._subject.module
        self._out.progress(f"importing {name}")
        started = time.perf_counter()
        try:
            with watch_loading(self._before_loading):
                module = importlib.import_module(name)
        except BaseException as error:
            print_traceback(error)
            self._tell(imported=False, error=error_line(error), import_seconds=_seconds_since(started))
            try:  # the file that the import begins with, where it was found at all
                spec = importlib.util.find_spec(name.partition(".")[0])
            except Exception:
                spec = None
            self._tell(**self._place(spec.origin if spec and spec.has_location else None, None))
            self._tell(files=self._files(error))
            return None
        # The package that was imported, its version, and whether it is the one that the files let expect.
        top = sys.modules.get(self._subject.module.partition(".")[0], module)
        self._tell(
            imported=True,
            import_seconds=_seconds_since(started),
            **self._place(getattr(top, "__file__", None), getattr(top, "__version__", None)),
        )
        return module

    def _before_loading(self, path: str) -> None:
        """Leave word of the library that may be the last one, and of what is wrong with it."""
        self._out.progress(f"importing {self._subject.module} (last library loaded: {path})")
        self._tell(files=cut_off(path))

    def _files(self, error: BaseException) -> list[dict[str, Any]]:
        """The files that a failed import names; where none is damaged, those that a package names that it asked for.

        Compiled modules import others and do not pass on why that failed.
        """
        files = files_named(error)
        lost = [name for name in packages_not_loaded() if name != self._subject.module.partition(".")[0]]
        for name in lost[:8] if not damaged(files) else ():
            self._out.progress(f"importing {name}, to see why it fails")
            try:
                importlib.import_module(name)
            except BaseException as reason:
                found = damaged(files_named(reason))
                if found:
                    return found + files
        return files

    def _place(self, path: Any, version: Any) -> dict[str, Any]:
        expected = self._tree.request["framework"].get("path")
        place: dict[str, Any] = {"version": version[:_LONGEST_ANSWER]} if isinstance(version, str) else {}
        if isinstance(path, str) and path:
            place["path"] = os.path.abspath(path)
            as_found = same_package(path, expected) if isinstance(expected, str) else None
            place.update({} if as_found is None else {"as_found": as_found})
        return place

    def _compute(self, module: Any) -> None:
        none_here = self._tree.request.get("no_gpu") or self._subject.why_none
        if none_here or not self._subject.steps:
            self._tell(skipped=none_here or "no computation is known for it")
            return
        started = time.perf_counter()
        for number, step in enumerate(self._subject.steps):
            self._out.progress(f"computing {step.name}")
            try:
                where = step.run(module)
            except NotTriedError as reason:
                if number == 0:
                    self._tell(skipped=str(reason))
                    return
            except BaseException as error:
                if not isinstance(error, OnCpuError):
                    print_traceback(error)
                files = [] if isinstance(error, OnCpuError) else files_named(error)
                # What was raised; what a framework did instead of computing on the GPU is reported without a type.
                text = str(error) if isinstance(error, OnCpuError) else error_line(error)
                self._tell(
                    error=f"{text} (in {step.name})", files=files, **({"ran_on_gpu": False} if number == 0 else {})
                )
                return
            else:
                if number == 0:
                    seconds = _seconds_since(started)
                    if where is not None:
                        gpu = _without_output(first_gpu)
                        self._tell(ran_on_gpu=True, seconds=seconds, device=where.device, proof=where.proof, gpu=gpu)

    def _answers(self, module: Any, asks: dict[str, Ask]) -> dict[str, str]:
        answers = {}
        for name, ask in asks.items():
            self._out.progress(f"asking for {name}")
            try:
                answer = ask(module)
            except BaseException as error:
                print_traceback(error)
                continue
            if answer is not None and answer != "":
                answers[name] = clean(str(answer))[:_LONGEST_ANSWER]
        return answers

    def _tell(self, **trial: Any) -> None:
        kept = {name: clean(value) if isinstance(value, str) else value for name, value in trial.items()}
        answer = {name: value for name, value in kept.items() if value not in (None, {}, "", [])}
        if answer:
            self._send({"trial": {"source": SOURCE, **answer}})

    def _send(self, part: dict[str, Any]) -> None:
        framework = {"name": self._tree.request["framework"]["name"], "source": SOURCE, **part}
        listing = {"items": [framework], "complete": False}
        environment = {"key": self._tree.request["environment"], "source": SOURCE, "frameworks": listing}
        self._out.fact({"environments": {"items": [environment], "complete": False}})


def same_package(file: str, expected: str) -> bool | None:
    """Whether the module ``file`` belongs to the package ``expected``; None where they have different names."""
    own = os.path.dirname(file) if os.path.basename(file).startswith("__init__.") else file
    names = {os.path.basename(path).partition(".")[0] for path in (own, expected)}
    return os.path.realpath(own) == os.path.realpath(expected) if len(names) == 1 else None


def _without_output(ask: Callable[[], Any]) -> Any:
    try:
        return ask()
    except BaseException as error:
        print_traceback(error)
        return None


def _seconds_since(started: float) -> float:
    return round(time.perf_counter() - started, 3)


def _flat(numbers: Any) -> list[Any]:
    try:
        return [number for part in numbers for number in _flat(part)]
    except TypeError:
        return [complex(numbers) if isinstance(numbers, complex) else float(numbers)]


def version_of(framework: Any) -> Any:
    """``__version__``, as most modules have it."""
    return getattr(framework, "__version__", None)
