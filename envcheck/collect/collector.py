"""The program that ``envcheck collect --script`` prints: run the file and driver probes where nothing can be installed.

    ssh node python3 -I - < collect.py | envcheck check --from -

``envcheck/collect/script.py`` puts the probes, and the files of envcheck that run them, in place of ``PARTS``. They are
unpacked to memory (``/dev/shm``, else a temporary folder), which is deleted at the end. Each probe runs as in a check:
the same runner, the same groups, the same limits of time. What the probes send is passed on as it is: judging it, and
putting it together, is left to envcheck. Standard library only, Python 3.8 or newer; Python 3.6 and 3.7 read it far
enough to say so, hence the annotations in quotes.
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
import json
import os
import selectors
import shutil
import signal
import tempfile
import time
import types
import zlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

PARTS = ""
"""JSON, compressed, as base64: ``version``, ``files`` (texts by path), ``probes`` (their headers)."""


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
        runs = collect(parts["probes"], folder, asked)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    collected = {
        "collected": parts["version"],
        "created": created,
        "duration_s": round(time.monotonic() - started, 3),
        "host": os.uname().nodename,
        "python": sys.version.split()[0],
        "runs": runs,
    }
    sys.stdout.write(json.dumps(collected) + "\n")
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


def collect(headers: "list[dict[str, Any]]", folder: str, asked: "dict[str, Any]") -> "list[dict[str, Any]]":
    """What the probes sent, and how each ended; ``folder`` holds them, and what runs them."""
    sys.dont_write_bytecode = True
    sys.path.insert(0, folder)
    from envcheck.collect import child, runner, starting

    request = starting.probe_request(cwd=starting.working_folder(), variables=os.environ, python=asked["python"])
    request["own_prefix"] = ""  # the Python that runs this is none of envcheck's
    specs: list[Any] = [types.SimpleNamespace(**header) for header in headers]
    specs = [spec for spec in specs if set(spec.scopes) & set(asked["scope"].split(","))]
    early = {spec.name for spec in specs if spec.early}
    runs: dict[str, dict[str, Any]] = {}

    def allowed(spec: "Any") -> float:
        """Its limit of time in seconds, by the GPUs that the early probes saw."""
        gpus = runner.GPUS_OF_A_LARGE_SERVER
        for run in runs.values() if early <= set(runs) else ():
            for message in run["messages"]:
                listing = (message.get("fact") or {}).get("gpus")
                if run["probe"] in early and isinstance(listing, dict) and isinstance(listing.get("items"), list):
                    gpus = len(listing["items"])
        return float(spec.seconds + spec.seconds_per_gpu * gpus)

    def decode(line: "bytes | None") -> "Any":
        """A message, whose fields are judged later."""
        try:
            message = json.loads(line or b"")
        except ValueError:
            message = None
        if not isinstance(message, dict):
            raise runner.WrongMessageError("a message that is not JSON")
        return types.SimpleNamespace(**{"begin": False, "seconds": None, "done": None, **message}, whole=message)

    def heard(attempt: "Any", message: "Any") -> None:
        attempt.facts.append(message.whole)

    def finished(ended: "Any") -> None:
        attempt, end = ended.attempt, ended.verdict
        runs[attempt.spec.name] = {
            "probe": attempt.spec.name,
            "messages": attempt.facts,
            "end": end and {"status": end.status, "detail": end.detail},
            "seconds": round(time.monotonic() - attempt.started, 4),
            "noise": ended.noise,
            "remark": ended.remark,
        }

    setting = runner.Setting(
        folder=os.path.join(folder, "probes"),
        selector=selectors.PollSelector(),
        older=child.running_processes(),
        waiting=lambda _group: None,
        allowed=allowed,
        decode=decode,
        started=lambda _attempt: None,
        heard=heard,
        finished=finished,
    )
    launch = starting.Launch(sys.executable, request, [os.path.join(folder, "lib")])
    loop = runner.Loop(setting, asked["timeout"], lambda: False)
    try:
        loop.run(runner.reading_groups(specs, launch, lambda: early <= set(runs)))
    finally:
        loop.abort()
    return [runs[spec.name] for spec in specs]


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
