"""The program that ``envcheck collect --script`` prints: run the file and driver probes where nothing can be installed.

    ssh node python3 -I - < collect.py | envcheck check --from -

``envcheck/collect/script.py`` puts the probes and the text of ``bootstrap.py`` in place of ``PARTS``. Both are unpacked
to memory (``/dev/shm``, else a temporary folder), which is deleted at the end. Each probe runs as in a check: the same
bootstrap, the same groups, the same limits of time. What the probes send is passed on as it is: judging it, and putting
it together, is left to envcheck. Standard library only, Python 3.8 or newer; Python 3.6 and 3.7 read it far enough to
say so, hence the annotations in quotes.
"""

import sys
from posix import getcwd

# Without -I, Python imports from the working folder or from this file's first, and others may have filled them. Both
# modules above are part of the interpreter.
try:
    HERE = getcwd()
except OSError:
    HERE = ""
sys.path[:] = [place for place in sys.path[0 if sys.flags.isolated else 1 :] if place not in ("", ".", HERE)]

import base64
import contextlib
import errno
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time
import zlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

PARTS = ""
"""JSON, compressed, as base64: ``version``, ``bootstrap``, ``files`` (texts by path), ``probes`` (their headers)."""

START_GRACE = 15.0
EXIT_GRACE = 2.0
ALARM_GRACE = 60.0
MOST_BYTES = 64 << 20
TAIL = 4096
GPUS = 8
TICK = 0.05
LATE = {"status": "timed-out", "detail": "--timeout was reached"}
"""The limits are those of envcheck/collect: attempt.py, job.py, protocol.py, deaths.py and gather.py."""


def main() -> int:
    """Collect, and print one JSON object."""
    if sys.version_info < (3, 8):  # noqa: UP036  it runs in the Python of the machine
        sys.exit("envcheck's collector needs Python 3.8 or newer; this is " + sys.version.split()[0])
    asked = arguments(sys.argv[1:])
    if not PARTS:
        sys.exit("this is not the collector itself: print it with envcheck collect --script")
    parts = json.loads(zlib.decompress(base64.b64decode(PARTS)))
    signal.signal(signal.SIGTERM, ended)
    started, created = time.monotonic(), time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    folder = unpack(parts["files"])
    try:
        runs = Collection(parts, folder, asked).run()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    told = {
        "collected": parts["version"],
        "created": created,
        "duration_s": round(time.monotonic() - started, 3),
        "host": os.uname().nodename,
        "python": sys.version.split()[0],
        "runs": runs,
    }
    sys.stdout.write(json.dumps(told) + "\n")
    return 0


def ended(_number: int, _frame: object) -> None:
    """End as after Ctrl-C: the folder is deleted."""
    raise KeyboardInterrupt


def arguments(given: "list[str]") -> "dict[str, Any]":
    """``--python PATH`` (repeatable), ``--scope`` and ``--timeout``, as ``envcheck check`` has them."""
    asked: dict[str, Any] = {"python": [], "scope": "node,container,env", "timeout": None}
    left = list(given)
    while left:
        name, _, value = left.pop(0).partition("=")
        if name not in ("--python", "--scope", "--timeout") or not (value or left):
            sys.exit("usage: python3 -I - [--python PATH] [--scope node,container,env] [--timeout S] < collect.py")
        value = value or left.pop(0)
        if name == "--python":
            asked["python"].append(value)
        else:
            asked[name[2:]] = value
    try:
        asked["timeout"] = float(asked["timeout"]) if asked["timeout"] else None
    except ValueError:
        sys.exit("--timeout needs a number of seconds")
    return asked


def unpack(files: "dict[str, str]") -> str:
    """Write ``files`` below a new folder, in memory if that is possible."""
    reasons = []
    for place in ("/dev/shm", None):
        try:
            folder = tempfile.mkdtemp(prefix="envcheck-", dir=place)
        except OSError as error:
            reasons.append("%s: %s" % (place or "temporary folder", error.strerror))
            continue
        try:
            for name, text in files.items():
                path = os.path.join(folder, name)
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text)
        except OSError as error:
            shutil.rmtree(folder, ignore_errors=True)
            reasons.append("%s: %s" % (folder, error.strerror))
            continue
        return folder
    sys.exit("envcheck's collector cannot write its probes anywhere (%s)" % "; ".join(reasons))


class Collection:
    """All probes of one run."""

    def __init__(self, parts: "dict[str, Any]", folder: str, asked: "dict[str, Any]") -> None:
        self.folder = folder
        self.bootstrap = parts["bootstrap"]
        scopes = asked["scope"].split(",")
        self.probes = [probe for probe in parts["probes"] if set(probe["scopes"]) & set(scopes)]
        self.runs: dict[str, dict[str, Any]] = {}
        self.end_by = time.monotonic() + asked["timeout"] if asked["timeout"] else float("inf")
        self.gpus = GPUS
        try:
            cwd = os.getcwd()
        except OSError:
            cwd = "/"
        self.request = {
            "root": "/",
            "cwd": cwd,
            "python": asked["python"],
            "all_envs": False,
            "own_prefix": "",
            "variables": dict(os.environ),
        }

    def run(self) -> "list[dict[str, Any]]":
        """Run them: files first, the driver's after all that must come before it."""
        files = sorted(
            (probe for probe in self.probes if probe["kind"] == "file"), key=lambda probe: not probe["early"]
        )
        machine = [probe for probe in files if probe["early"] or "node" in probe["scopes"]]
        software = [probe for probe in files if probe not in machine]
        self.together([group for group in (machine, software) if group])
        self.gpus = self.count_gpus()
        self.together([[probe] for probe in self.probes if probe["kind"] == "driver"])
        return [self.runs[probe["name"]] for probe in self.probes]

    def count_gpus(self) -> int:
        """The GPUs that the early probes saw."""
        for run in self.runs.values():
            for message in run["messages"]:
                listing = (message.get("fact") or {}).get("gpus")
                if isinstance(listing, dict) and isinstance(listing.get("items"), list):
                    return len(listing["items"])
        return GPUS

    def together(self, groups: "list[list[dict[str, Any]]]") -> None:
        """Run each group in a child, all at the same time; probes that a child did not reach get one each."""
        children = [ProbeChild(self, group) for group in groups]
        while children:
            ready = [pipe for child in children for pipe in child.open_pipes()]
            readable = select.select(ready, [], [], TICK)[0]
            for child in list(children):
                child.read(readable)
                left = child.settle()
                if left is not None:
                    children.remove(child)
                    children += [ProbeChild(self, [probe]) for probe in left]

    def allowed(self, probe: "dict[str, Any]") -> float:
        """Its limit of time in seconds."""
        return float(probe["seconds"] + probe["seconds_per_gpu"] * self.gpus)


class ProbeChild:
    """A child and the probes that it runs one after the other."""

    def __init__(self, collection: Collection, probes: "list[dict[str, Any]]") -> None:
        self.collection = collection
        self.waiting = list(probes)
        self.current: dict[str, Any] | None = None
        self.total, self.line, self.noise = 0, b"", b""
        self.facts, theirs = os.pipe()
        order, self.order = os.pipe()
        self.noises, noise = os.pipe()
        command = [sys.executable, "-I", "-S", "-B", "-c", collection.bootstrap, str(theirs), str(order)]
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=noise,
            stderr=noise,
            pass_fds=(theirs, order),
            start_new_session=True,
            cwd="/",
            env=own_variables(),
        )
        for descriptor in (theirs, order, noise):
            os.close(descriptor)
        self.pipes = {self.facts: True, self.noises: True}
        for descriptor in self.pipes:
            os.set_blocking(descriptor, False)
        seconds = sum(map(collection.allowed, probes)) + START_GRACE + ALARM_GRACE
        self.send(
            {
                "request": collection.request,
                "folder": os.path.join(collection.folder, "probes"),
                "path": [os.path.join(collection.folder, "lib")],
                "trial": False,
                "alarm": int(seconds) + 1,
                "prepare": [],
            }
        )
        self.proceed()

    def send(self, order: "dict[str, Any]") -> None:
        self.write(json.dumps(order).encode() + b"\n")

    def write(self, data: bytes) -> None:
        try:
            while data:
                data = data[os.write(self.order, data) :]
        except OSError as error:
            if error.errno != errno.EPIPE:
                raise

    def proceed(self) -> None:
        """Start the next probe; without one, let the child end."""
        if not self.waiting:
            self.current = None
            os.close(self.order)
            self.order = -1
            self.limit = time.monotonic() + EXIT_GRACE
            return
        probe = self.waiting.pop(0)
        self.current = {"probe": probe["name"], "messages": [], "end": None, "seconds": 0.0, "noise": ""}
        self.begun, self.started = False, time.monotonic()
        self.limit = self.started + self.collection.allowed(probe) + START_GRACE
        self.allowed = self.collection.allowed(probe)
        self.write(probe["name"].encode() + b"\n")

    def open_pipes(self) -> "list[int]":
        return [pipe for pipe, is_open in self.pipes.items() if is_open]

    def read(self, ready: "list[int]") -> None:
        if self.noises in ready or self.facts in ready:
            self.noise = (self.noise + self.drain(self.noises))[-TAIL:]
        if self.facts in ready:
            data = self.drain(self.facts)
            self.total += len(data)
            *lines, self.line = (self.line + data).split(b"\n")
            for line in lines:
                self.take(line)

    def drain(self, pipe: int) -> bytes:
        """What is in the pipe now."""
        data = b""
        while self.pipes[pipe] and len(data) < MOST_BYTES:
            try:
                part = os.read(pipe, 1 << 18)
            except BlockingIOError:
                break
            if not part:
                self.pipes[pipe] = False
            data += part
        return data

    def take(self, line: bytes) -> None:
        if not line or self.current is None:
            return
        try:
            message = json.loads(line)
        except ValueError:
            message = None
        if not isinstance(message, dict) or message.get("probe") != self.current["probe"]:
            return
        if message.get("begin") and not self.begun:
            self.begun, self.started = True, time.monotonic()
            self.limit = self.started + self.allowed
        self.current["messages"].append(message)
        if "done" in message:
            self.finish(None)
            self.proceed()

    def finish(self, end: "dict[str, str] | None") -> None:
        run = self.current
        if run is not None:
            self.noise = (self.noise + self.drain(self.noises))[-TAIL:]
            run["end"], run["seconds"] = end, round(time.monotonic() - self.started, 4)
            run["noise"], self.noise = self.noise.decode("utf-8", "replace"), b""
            self.collection.runs[run["probe"]] = run
            self.current = None

    def settle(self) -> "list[dict[str, Any]] | None":
        """None while it runs; else the probes that it did not start."""
        reason = self.reason_to_end()
        if reason is None and self.process.poll() is None:
            return None
        with contextlib.suppress(OSError):
            os.killpg(self.process.pid, signal.SIGKILL)
        code = self.process.wait()
        self.read([self.facts, self.noises])
        self.finish(reason or death(code))
        for pipe in (self.facts, self.noises, self.order):
            if pipe >= 0:
                os.close(pipe)
        if time.monotonic() < self.collection.end_by:
            return self.waiting
        for probe in self.waiting:
            run = {"probe": probe["name"], "messages": [], "end": LATE, "seconds": 0.0, "noise": ""}
            self.collection.runs[probe["name"]] = run
        return []

    def reason_to_end(self) -> "dict[str, str] | None":
        """Why it must be ended; None where it may go on."""
        now = time.monotonic()
        if now >= self.collection.end_by:
            return LATE
        if self.total > MOST_BYTES:
            return {"status": "failed", "detail": "it sent more than %d MiB" % (MOST_BYTES >> 20)}
        if now >= self.limit:
            return {"status": "timed-out", "detail": "timed out after %g s" % (self.limit - self.started)}
        return None


def own_variables() -> "dict[str, str]":
    """The variables without relative folders of the loader's path, since children work in another folder."""
    variables = dict(os.environ)
    entries = variables.pop("LD_LIBRARY_PATH", "").replace(";", ":").split(":")
    kept = ":".join(entry for entry in entries if entry.startswith(("/", "$ORIGIN", "${ORIGIN}")))
    return dict(variables, LD_LIBRARY_PATH=kept) if kept else variables


def death(code: int) -> "dict[str, str]":
    """How a child ended that did not say so."""
    if code >= 0:
        return {"status": "failed", "detail": "exited with status %d" % code}
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = "signal %d" % -code
    return {"status": "crashed", "detail": "crashed: " + name}


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
