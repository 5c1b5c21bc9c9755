"""The HTML of an export: complete, inert, and nothing but itself."""

import re
from html.parser import HTMLParser

import pytest

from gateway_sessions.core.export.html import MAX_CONTENTS, Html
from tests.unit.core.export.export_sample import MESSAGES, SESSION, T, render_sessions

HOSTILE = "</pre></details></article><script>alert(1)</script><img src=x onerror=alert(1)>&\"'"
VOID = {"meta"}


class Elements(HTMLParser):
    """Checks that elements nest, and collects what was opened and said."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.seen.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def page_of(*sessions: dict) -> str:
    return render_sessions(sessions, "html").decode()


def said(**message: object) -> str:
    return page_of({**SESSION, "messages": [{"role": "user", "timestamp": T, **message}]})


def test_every_element_is_closed_where_it_was_opened():
    assert Elements(page_of(SESSION, SESSION)).open == []


def test_everything_that_was_said_is_on_the_page():
    text = Elements(page_of(SESSION)).text
    for words in (
        "Fix the build",
        "ERROR: <none>",
        "I'll look.",
        "A typo, perhaps.",
        "grep FROM",
        "1:FROM ```x",
    ):
        assert words in text
    for words in (
        "wait",
        "taken back",
        "See:",
        "[image]",
        "overheard",
        "Don.",
        "2026-03-05 15:00:00 UTC",
        "m-1",
    ):
        assert words in text


@pytest.mark.parametrize(
    "field", ["content", "role", "tool_name", "reasoning", "finish_reason", "hidden_because"]
)
def test_no_text_becomes_markup(field: str):
    page = said(**{"content": "x", "role": "tool", field: HOSTILE})
    elements = Elements(page)
    assert elements.open == []
    assert {"script", "img"} & set(elements.seen) == set()


@pytest.mark.parametrize(
    "field", ["id", "title", "source", "user_id", "model", "system_prompt", "end_reason"]
)
def test_no_fact_becomes_markup(field: str):
    elements = Elements(page_of({**SESSION, field: HOSTILE}))
    assert elements.open == []
    assert {"script", "img"} & set(elements.seen) == set()


def test_names_of_calls_and_their_arguments_are_text():
    calls = [
        {"function": {"name": HOSTILE, "arguments": HOSTILE}},
        {"name": HOSTILE, "input": {HOSTILE: HOSTILE}},
    ]
    elements = Elements(said(tool_calls=calls, content=[{"type": HOSTILE, "url": HOSTILE}, HOSTILE, 7]))
    assert elements.open == []
    assert {"script", "img"} & set(elements.seen) == set()


def test_the_page_loads_nothing_and_forbids_to_load_anything():
    page = page_of(SESSION)
    assert "default-src 'none'" in page
    names = {name for name, _ in Elements(page).attributes}
    assert not names & {"src", "srcset", "background", "poster", "action"}
    targets = [value for name, value in Elements(page).attributes if name == "href"]
    assert all(target and target.startswith("#") for target in targets)
    assert "url(" not in page


def test_a_block_of_code_is_set_apart_even_if_it_was_left_open():
    assert "<pre>left open</pre>" in said(content="look:\n```python\nleft open")
    assert "<pre>one\n\ntwo</pre>" in said(content="```\none\n\ntwo\n```\nafter")


def test_tool_results_and_calls_are_folded():
    page = page_of(SESSION)
    assert re.search(r"<details><summary>1:FROM ```x</summary><pre>", page)
    assert re.search(r"<details><summary>Calls <b>terminal</b> command: grep FROM</summary><pre>", page)


def test_one_session_needs_no_table_of_contents_and_several_have_one():
    assert "<nav>" not in page_of(SESSION)
    page = page_of(SESSION, SESSION)
    assert page.count('href="#s') == page.count('<section id="s') == 2


def test_a_long_table_of_contents_ends():
    page = page_of(*[{"id": f"s{number}"} for number in range(MAX_CONTENTS + 2)])
    assert page.count('href="#s') == MAX_CONTENTS
    assert "and 2 more" in page


def test_an_empty_export_says_so():
    assert "No sessions" in page_of()
    assert Elements(page_of()).text


def test_a_direction_or_control_character_stays_within_its_message():
    page = said(content="\u202eevil\x00\ud800")
    assert 'dir="auto"' in page
    assert "\x00" not in page
    assert "\ufffd" in page


def test_a_role_nobody_knows_is_shown_by_its_name():
    assert '<article class="other">' in said(role="narrator", content="Once")
    assert "narrator" in Elements(said(role="narrator", content="Once")).text


@pytest.mark.parametrize("at", [None, "yesterday", True, 1e300])
def test_a_time_nobody_can_read_is_left_out(at: object):
    page = page_of({"id": "s", "messages": [{"role": "user", "content": "x", "timestamp": at}]})
    assert "<time" not in page


def test_messages_may_come_in_pages():
    whole = page_of(SESSION)
    one = Html()
    header = {name: value for name, value in SESSION.items() if name != "messages"}
    pages = [one.begin_file(), one.begin_session(header), *(one.messages([message]) for message in MESSAGES)]
    assert b"".join([*pages, one.end_session(), one.end_file()]).decode() == whole
