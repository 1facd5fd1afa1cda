"""README's moving picture is what envcheck prints now about the recorded machine."""

import re
from xml.etree import ElementTree as ET

from tests import picture


def test_the_picture_is_drawn_from_what_is_printed_now() -> None:
    assert picture.picture() == picture.PICTURE.read_text(encoding="utf-8"), "draw it again: python -m tests.picture"


def test_it_shows_the_whole_page_and_stands_still_where_nothing_may_move() -> None:
    drawn = picture.picture()
    shapes = ET.fromstring(drawn)
    groups = [group for group in shapes.iter("{http://www.w3.org/2000/svg}g") if group.get("id")]
    still = [" ".join(text.text or "" for text in group) for group in groups if group.get("class") is None]
    shown = re.sub(r"\s", "", "".join(still))
    assert re.sub(r"\s", "", picture.page(color=False)) in shown
    assert "prefers-reduced-motion" in drawn
    assert "href" not in drawn  # it loads nothing


def test_every_row_appears_and_goes_once() -> None:
    rows, begins, end = picture.timeline()
    assert sorted(row.at for row in rows) == [row.at for row in rows]
    assert begins == sorted(begins)
    assert all(row.at + row.typing < end for row in rows)
    assert max(row.row for row in rows) < 24
