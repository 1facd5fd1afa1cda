"""``envcheck serve``, beside pages of another site, and the page about a fleet, in a browser: Debian's Chromium."""

import http.server
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import urlsplit

import msgspec
import pytest

from envcheck.fleet.pages import html
from envcheck.report import Options, render
from tests.fleet.made import healthy
from tests.fleet.test_fleet import fleet_of
from tests.known import known
from tests.tui.showing import judged, recorded

Browser: TypeAlias = Any  # Playwright's, which only the lab has
Page: TypeAlias = Any

CHROMIUM = shutil.which("chromium")
ROOT = Path(__file__).resolve().parents[2]
_SWITCHES = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--disable-default-apps"),
)

pytestmark = [
    pytest.mark.lab,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium (Debian: apt-get install chromium)"),
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    api = pytest.importorskip("playwright.sync_api", reason="the extra 'lab' is not installed")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(_SWITCHES))
        yield browser
        browser.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1200, "height": 800})
    yield context.new_page()
    context.close()


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Of a server that shows a saved report."""
    folder = tmp_path_factory.mktemp("serve")
    (folder / "report.json").write_text(render(judged(recorded("h200")), "json"))
    process = subprocess.Popen(
        [sys.executable, "-m", "envcheck", "serve", "--port", "0", "--from", "report.json"],
        cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    found = re.search(r"http://\S+/", process.stdout.readline())
    assert found
    yield found[0]
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 0
    process.stdout.close()


@pytest.fixture
def elsewhere() -> Iterator[Callable[[str], str]]:
    """Makes a page on another port, and returns its address."""
    pages: dict[str, bytes] = {}

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(pages.get(self.path, b""))

        def log_message(self, *_: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()

    def publish(body: str) -> str:
        pages["/page"] = f"<!DOCTYPE html><body>{body}</body>".encode()
        return f"http://127.0.0.1:{server.server_port}/page"

    yield publish
    server.shutdown()
    server.server_close()


def test_the_page_shows_the_application_and_sends_nothing(page: Page, address: str) -> None:
    asked: list[str] = []
    complaints: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("websocket", lambda socket: asked.append(socket.url))
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    drawn: list[bytes] = []
    page.on("websocket", lambda socket: socket.on("framereceived", lambda data: drawn.append(_bytes(data))))

    answer = page.goto(address)
    assert known(answer).status == 200
    page.wait_for_selector("body.-first-byte", state="attached", timeout=60_000)
    page.wait_for_function("document.fonts.check('16px \"Roboto Mono\"')")
    for _ in range(100):
        if b"PASS" in b"".join(drawn):
            break
        page.wait_for_timeout(100)
    assert b"PASS" in b"".join(drawn)
    assert complaints == []
    assert {urlsplit(url).hostname for url in asked if not url.startswith("data:")} == {"127.0.0.1"}
    assert any(url.startswith("ws://") for url in asked)

    page.keyboard.press("q")
    page.wait_for_selector("#ended", timeout=30_000)
    page.click("#again")
    page.wait_for_selector("body.-first-byte", state="attached", timeout=60_000)


def _bytes(data: str | bytes) -> bytes:
    return data if isinstance(data, bytes) else data.encode()


def test_a_request_that_the_address_asks_for_is_not_sent_elsewhere(
    page: Page, address: str, elsewhere: Callable[[str], str]
) -> None:
    """textual.js fetches what ``?ping=`` names."""
    reached: list[str] = []
    target = elsewhere("reached")
    page.on("response", lambda response: reached.append(response.url) if response.url == target else None)
    page.goto(f"{address}?ping={target}")
    page.wait_for_timeout(1000)
    assert reached == []


def test_no_token_or_a_wrong_one(page: Page, address: str) -> None:
    root, _, token = address.rstrip("/").rpartition("/")
    for path in ("/", f"/{token[:-1]}/", f"/{token}x/"):
        answer = page.goto(f"{root}{path}")
        assert known(answer).status == 403
        assert "token" in page.inner_text("body")


def test_a_page_of_another_site_can_neither_frame_nor_read_nor_connect(
    page: Page, address: str, elsewhere: Callable[[str], str]
) -> None:
    """Even one that knows the token."""
    statuses: dict[str, int] = {}
    page.on("response", lambda response: statuses.setdefault(response.url, response.status))
    page.goto(elsewhere(f'<iframe src="{address}"></iframe><script src="{address}js/textual.js"></script>'))
    page.wait_for_timeout(1000)
    assert statuses[address] == 403
    assert statuses.get(f"{address}js/textual.js", 403) == 403  # or its answer was kept from the page
    inner = [frame for frame in page.frames if frame is not page.main_frame]
    assert all(frame.locator(".xterm").count() == 0 for frame in inner)

    socket = address.replace("http", "ws") + "ws"
    connected = page.evaluate(
        """url => new Promise(done => {
            const socket = new WebSocket(url);
            socket.onopen = () => done("open");
            socket.onclose = () => done("refused");
        })""",
        socket,
    )
    assert connected == "refused"
    assert page.evaluate("url => fetch(url).then(answer => answer.text()).catch(() => 'refused')", address) == "refused"


def test_the_policy_forbids_a_frame_by_itself(page: Page, address: str, elsewhere: Callable[[str], str]) -> None:
    """Where a browser sends no Sec-Fetch-Site, the answer itself says that it may not be framed."""
    page.route(f"{address}**", lambda route: route.fulfill(response=route.fetch(headers={})))
    page.goto(elsewhere(f'<iframe src="{address}"></iframe>'))
    page.wait_for_timeout(1500)
    inner = [frame for frame in page.frames if frame is not page.main_frame]
    assert inner
    assert all(frame.url != address and frame.locator("#terminal").count() == 0 for frame in inner)


def column(page: Page, heading: str, number: int) -> list[str]:
    """The cells of a column of the section's table."""
    return list(
        page.locator(f"section:has(h2:text-is('{heading}')) tbody tr:visible td:nth-child({number})").all_inner_texts()
    )


def test_the_page_about_a_fleet_is_sorted_and_searched(page: Page, tmp_path: Path) -> None:
    made = healthy(12)
    made[4]["host"] = "<script>document.title = 'run'</script>"
    made[7]["snapshot"]["driver"]["release"] = "570.1"
    for number, report in enumerate(made):
        (tmp_path / f"{number}.json").write_text(json.dumps(report))
    (tmp_path / "broken.json").write_text("{")
    fleet = fleet_of(tmp_path)
    counts = (10_000, 900, 1_200)
    spreads = tuple(
        msgspec.structs.replace(each, count=count) for each, count in zip(fleet.spreads, counts, strict=False)
    )
    (tmp_path / "fleet.html").write_text(html.render(msgspec.structs.replace(fleet, spreads=spreads), Options()))
    page.goto((tmp_path / "fleet.html").as_uri())
    assert page.title() != "run"
    assert column(page, "No report", 2) == ["broken"]
    page.click("section:has(h2:text-is('Distributions')) th:text-is('Figures')")
    assert column(page, "Distributions", 3) == ["900", "1,200", "10,000"]
    page.click(".nodes th:text-is('Differences')")
    page.click(".nodes th:text-is('Differences')")
    assert column(page, "Nodes", 1)[0] == "node00007"
    page.fill("#find", "00009")
    assert column(page, "Nodes", 1) == ["node00009"]
