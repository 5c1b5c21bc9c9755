"""The Markdown of an export: readable, and no text in it can pose as a part of the page."""

import re

import pytest

from gateway_sessions.core.export.markdown import code_block, escape_headings, escape_markup
from tests.unit.core.export.export_sample import SESSION, T, render_sessions

PAGE = """\
# Fix the build

- Session: `20260305_150000_0a1b2c3d`
- Source: telegram
- User: 4711
- Began: 2026-03-05 15:00:00 UTC
- Ended: 2026-03-05 15:01:00 UTC (idle)
- Continues: `20260304_090000_ffffffff`
- Model: m-1
- Messages: 5, 1 tool call
- Tokens: 1,200 in, 34 out
- Cost: $0.0731

> **System prompt**
>
> Be brief.

### User · 2026-03-05 15:00:00 UTC

Why does `web` fail?

```
ERROR: <none>
```
\\# Not a heading

### Assistant · 2026-03-05 15:00:04 UTC

> **Reasoning**
>
> A typo, perhaps.

I'll look.

Calls **terminal**

```json
{
  "command": "grep FROM"
}
```

### Tool terminal · 2026-03-05 15:00:05 UTC

````
1:FROM ```x
````

### User · 2026-03-05 15:00:06 UTC · taken back

wait

### User · 2026-03-05 15:00:07 UTC · overheard

See:

*[image]*

### Assistant · 2026-03-05 15:00:08 UTC · edited 2026-03-05 15:00:09 UTC

Done.

> **Version 1, until 2026-03-05 15:00:09 UTC**
>
> Don.
"""


def test_a_session_reads_well():
    assert render_sessions([SESSION], "markdown").decode() == PAGE


def test_sessions_stand_one_under_another():
    page = render_sessions([SESSION, SESSION], "markdown").decode()
    assert page == f"{PAGE}\n---\n\n{PAGE}"


@pytest.mark.parametrize(
    "text", ["# User", "## x", "===", "---", "  ###", "<script>", "</details>", "<!-- x", "***", "___  "]
)
def test_no_line_can_pose_as_markup_of_the_page(text: str):
    shown = escape_headings(text)
    assert re.match(r" {0,3}(\\|&lt;)", shown)
    assert shown.replace("\\", "").replace("&lt;", "<") == text


@pytest.mark.parametrize(
    "text", ["a < b", "#tag", "- item", "1. item", "**bold**", "a = b", "```\n# code\n```"]
)
def test_what_people_write_keeps_its_markup(text: str):
    assert escape_headings(text) == text


@pytest.mark.parametrize("fence", ["```", "~~~~", "```python"])
def test_a_block_left_open_is_closed(fence: str):
    mark = fence[0] * (len(fence) if fence[0] == "~" else 3)
    assert escape_headings(f"{fence}\n# code") == f"{fence}\n# code\n{mark}"


def test_a_longer_fence_closes_and_a_shorter_one_does_not():
    assert escape_headings("```\nx\n````\n# y").endswith("\\# y")
    assert escape_headings("````\n```\n# y") == "````\n```\n# y\n````"


def test_backticks_within_a_line_open_nothing():
    assert escape_headings("``` a ` b\n# y").endswith("\\# y")


def test_nothing_in_a_block_ends_it():
    assert code_block("a\n```\nb") == "````\na\n```\nb\n````\n"


def test_names_have_no_markup():
    assert escape_markup("**a**\n# [b](c) <d>") == r"\*\*a\*\* \# \[b\](c) \<d\>"


def test_a_fact_with_backticks_is_escaped_instead():
    page = render_sessions([{"id": "a_`b", "started_at": T}], "markdown").decode()
    assert r"- Session: a\_\`b" in page


def test_data_that_is_no_text_is_shown_as_json():
    page = render_sessions(
        [{"id": "s", "messages": [{"role": "user", "content": {"a": 1}}]}], "markdown"
    ).decode()
    assert '```json\n{\n  "a": 1\n}\n```' in page
