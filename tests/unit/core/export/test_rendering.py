"""Sessions as lines of JSON, and the formats by name."""

import json

import pytest

from gateway_sessions import InvalidInputError
from gateway_sessions.core.export.formats import JsonLines
from tests.unit.core.export.export_sample import MESSAGES, SESSION, render_sessions


def test_each_session_is_one_line_with_its_messages():
    lines = render_sessions([SESSION, {"id": "empty", "messages": []}], "jsonl").splitlines()
    assert [json.loads(line) for line in lines] == [SESSION, {"id": "empty", "messages": []}]


def test_messages_may_come_in_pages_of_any_size():
    one = JsonLines()
    parts = [one.begin_session({"id": "s"}), one.messages([]), *(one.messages([each]) for each in MESSAGES)]
    assert json.loads(b"".join([*parts, one.messages([]), one.end_session()]))["messages"] == MESSAGES


def test_a_format_nobody_knows_is_refused_with_those_there_are():
    with pytest.raises(InvalidInputError, match="jsonl, markdown, html"):
        render_sessions([], "pdf")
