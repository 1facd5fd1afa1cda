"""What keys do: the bindings, the page of keys, and the command palette."""

from __future__ import annotations

from textual.binding import Binding, BindingType

from envcheck.tui.tabs import TABS

BINDINGS: list[BindingType] = [
    Binding("q", "quit", "quit"),
    Binding("question_mark", "keys", "keys"),
    *(Binding(str(number), f"tab('{name}')", name, show=False) for number, name in enumerate(TABS, 1)),
    Binding("j", "move(1)", "down", show=False),
    Binding("k", "move(-1)", "up", show=False),
    Binding("c", "copy", "copy fix"),
    Binding("d", "deep", "deep"),
    Binding("b", "bench(False)", "bench"),
    Binding("B", "bench(True)", "bench all", show=False),
    Binding("r", "again", "re-run"),
    Binding("x", "cancel", "cancel", show=False),
    Binding("ctrl+c", "cancel", "cancel", show=False, system=True),
    Binding("e", "export", "export"),
    Binding("g", "gpus", "GPUs", show=False),
    Binding("p", "environments", "environments", show=False),
    Binding("o", "open", "open", show=False),
    Binding("equals_sign", "compare", "compare", show=False),
    Binding("f", "fleet", "fleet", show=False),
    Binding("t", "toggle_theme", "dark or light", show=False),
    Binding("slash", "search", "search"),
    Binding("escape", "leave_field", "leave the field", show=False),
]

KEYS = """\
1 2 3 4      overview, performance, matrix, facts
j k  arrows  down and up             enter  details of a finding
c            copy the fix command
r            run all checks again; in the facts: the selected probe
d            deep: import each framework and run it on the GPU
b  B         measure the main figures; measure everything
x            cancel the running task
g  p         list the GPUs; list environments to check another one
e            export: JSON, Markdown, HTML, a picture ...
o  =         open a saved report; compare with a saved report
f            open a fleet report, and from it the report of a node
/            search the facts; in the matrix: edit the question
t            dark or light           ctrl+p  all commands
q            quit

envcheck changes nothing on this machine.
It shows fixes and never runs them."""

COMMANDS = (
    ("Run all checks again", "Run all probes (r)", "again"),
    ("Test frameworks", "Import each framework and run it on the GPU (d)", "deep"),
    ("Measure", "The main figures (b)", "bench(False)"),
    ("Measure everything", "Takes some minutes (B)", "bench(True)"),
    ("Cancel", "Cancel the running task (x)", "cancel"),
    ("Copy the fix", "Copy the fix command of the selected finding (c)", "copy"),
    ("Search", "Search the facts (/)", "search"),
    ("Export", "JSON, Markdown, HTML, a picture (e)", "export"),
    ("Open a saved report", "(o)", "open"),
    ("Compare with a saved report", "(=)", "compare"),
    ("Fleet", "Open a fleet report (f)", "fleet"),
    ("GPUs", "Details of each GPU (g)", "gpus"),
    ("Environments", "Check another environment (p)", "environments"),
    ("Dark or light", "(t)", "toggle_theme"),
)
"""Title, description, action."""
