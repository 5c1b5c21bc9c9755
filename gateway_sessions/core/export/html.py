"""Sessions as one HTML page with its style sheet, without scripts and external addresses.

Every text is escaped, and a policy in the head forbids scripts and requests in case an escape is missed. The
style sheet serves light screens, dark screens and paper.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import escape
from typing import Final

from gateway_sessions.core.export.page_texts import (
    MAX_GLIMPSE,
    ROLES,
    Exported,
    Piece,
    PieceKind,
    content_pieces,
    iso_time,
    message_remarks,
    on_one_line,
    readable_time,
    readable_tool_calls,
    reasoning_text,
    session_facts,
    session_heading,
    speaker_name,
)

STYLE: Final = """\
:root{color-scheme:light dark;--ground:#f7f6f3;--page:#fff;--ink:#1d1c1a;--soft:#6b6862;--line:#e3e0da;
--user:#eaf1fb;--user-line:#c9daf3;--tool:#f4f2ee;--mark:#8a5a00;--link:#1f5fae}
@media(prefers-color-scheme:dark){:root{--ground:#171614;--page:#1f1e1b;--ink:#e9e6df;--soft:#a09b91;
--line:#35332e;--user:#20303f;--user-line:#31485e;--tool:#262420;--mark:#e0ae5a;--link:#8ab8ee}}
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%}
body{margin:0 auto;padding:2.5rem 1.25rem 5rem;max-width:52rem;display:flex;flex-direction:column;
background:var(--ground);color:var(--ink);font:16px/1.6 system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans",
sans-serif;overflow-wrap:anywhere}
h1{font-size:1.55rem;line-height:1.25;margin:0 0 .75rem;font-weight:650;letter-spacing:-.01em}
nav{order:-1;margin:0 0 2.5rem;padding:1rem 1.25rem;background:var(--page);border:1px solid var(--line);
border-radius:12px}
nav h2{font-size:.8rem;margin:0 0 .5rem;color:var(--soft);font-weight:600}
nav ol{margin:0;padding:0;list-style:none}
nav li{display:flex;gap:1rem;justify-content:space-between;padding:.15rem 0}
nav time{color:var(--soft);font-size:.85rem;white-space:nowrap;font-variant-numeric:tabular-nums}
a{color:var(--link);text-decoration:none}
a:hover{text-decoration:underline}
section{margin:0 0 4rem}
section>header{margin:0 0 1.75rem;padding:0 0 1.25rem;border-bottom:1px solid var(--line)}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.1rem 1rem;margin:0;font-size:.875rem}
dl+details{margin-top:.6rem}
dt{color:var(--soft)}
dd{margin:0;font-variant-numeric:tabular-nums}
article{margin:0 0 1.1rem;padding:.75rem 1.1rem .85rem;background:var(--page);border:1px solid var(--line);
border-radius:12px}
article.user{background:var(--user);border-color:var(--user-line);margin-left:clamp(0rem,8vw,5rem)}
article.assistant{margin-right:clamp(0rem,3vw,2rem)}
article.tool,article.system,article.session_meta,article.other{background:none;border-style:dashed;
padding:.4rem 1.1rem .5rem;margin-right:clamp(0rem,3vw,2rem)}
article.hidden>:not(header){opacity:.6}
article.hidden .text{text-decoration:line-through;text-decoration-color:var(--soft)}
article.compacted .text{text-decoration:none}
article>header{display:flex;flex-wrap:wrap;gap:.15rem .75rem;align-items:baseline;font-size:.8rem;
color:var(--soft);margin:0 0 .3rem}
article>header b{color:var(--ink);font-weight:600}
article>header time{margin-left:auto;font-variant-numeric:tabular-nums}
.mark{color:var(--mark)}
.text{white-space:pre-wrap;unicode-bidi:plaintext}
.text+.text,.text+details,details+.text,details+details,.media,pre+.text,.text+pre{margin-top:.55rem}
.media{color:var(--soft);font-style:italic}
code,pre{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;font-size:.85em}
code{background:var(--tool);padding:.1em .3em;border-radius:4px}
pre{margin:.5rem 0 0;padding:.7rem .9rem;background:var(--tool);border-radius:8px;white-space:pre-wrap;
line-height:1.5;max-height:32rem;overflow:auto}
details>summary{cursor:pointer;color:var(--soft);font-size:.875rem;overflow:hidden;text-overflow:ellipsis;
white-space:nowrap}
details>summary b{color:var(--ink);font-weight:600}
details>summary:hover{color:var(--ink)}
details>.text{margin-top:.4rem;padding-left:.9rem;border-left:2px solid var(--line);color:var(--soft);
font-size:.925rem}
@media print{:root{--ground:#fff;--page:#fff;--ink:#000;--soft:#444;--line:#bbb;--user:#fff;--user-line:#777;
--tool:#fff;--mark:#000;--link:#000}
body{max-width:none;padding:0;font-size:10.5pt}article{break-inside:avoid-page;margin-left:0!important}
section{break-before:page}section:first-of-type{break-before:auto}
pre{max-height:none;border:1px solid #ccc}nav{break-after:page}}
"""


MAX_CONTENTS: Final = 500
"""The sessions in the table of contents: a longer table would help nobody to find a session."""

_HEAD: Final = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<meta name="robots" content="noindex">
"""
_CODE_BLOCK = re.compile(r"^(`{3,}|~{3,})[^\n`]*\n(.*?)(?:^\1[`~]*[ \t]*$\n?|\Z)", re.DOTALL | re.MULTILINE)
_CODE = re.compile(r"`([^`\n]+)`")


class Html:
    """Writes sessions as sections of one page."""

    def __init__(self) -> None:
        self._contents: list[str] = []
        self._count = 0

    def begin_file(self) -> bytes:
        """Return the head of the page; the page's title is that of the first session."""
        return _HEAD.encode()

    def begin_session(self, session: Exported) -> bytes:
        """Return a heading and the facts of the session."""
        name = escape(session_heading(session))
        head = (
            f"<title>{name}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n" if not self._count else ""
        )
        self._count += 1
        began = session.get("started_at")
        if self._count <= MAX_CONTENTS:
            self._contents.append(f'<li><a href="#s{self._count}">{name}</a>{_time_tag(began)}</li>')
        rows = "".join(
            f"<dt>{escape(key)}</dt><dd>{escape(value)}</dd>" for key, value in session_facts(session)
        )
        prompt = session.get("system_prompt")
        prompt_block = (
            _folded_html("System prompt", _text_html(prompt)) if isinstance(prompt, str) and prompt else ""
        )
        title = f"<h1>{name}</h1>\n<dl>{rows}</dl>\n{prompt_block}"
        return f'{head}<section id="s{self._count}">\n<header>\n{title}</header>\n'.encode()

    def messages(self, page: Sequence[Exported]) -> bytes:
        """Return some of the session's messages."""
        return "".join(map(_message_html, page)).encode()

    def end_session(self) -> bytes:
        """Return the end of the session's section."""
        return b"</section>\n"

    def end_file(self) -> bytes:
        """Return the table of contents, which the style sheet shows on top, and the end of the page."""
        if not self._count:
            return b"<title>No sessions</title></head><body><p>No sessions.</p></body></html>\n"
        contents = ""
        if self._count > 1:
            more = self._count - len(self._contents)
            last = f"<li>and {more} more</li>" if more else ""
            listed = "\n".join([*self._contents, last])
            contents = f"<nav><h2>{self._count} sessions</h2><ol>\n{listed}</ol></nav>\n"
        return f"{contents}</body>\n</html>\n".encode()


def _message_html(message: Exported) -> str:
    role = str(message.get("role"))
    hidden = message.get("hidden_because")
    classes = [role if role in ROLES else "other"]
    if hidden:
        classes += ["hidden", "compacted"] if hidden == "compacted" else ["hidden"]
    noted = "".join(f'<span class="mark">{escape(mark)}</span>' for mark in message_remarks(message))
    head = (
        f"<header><b>{escape(speaker_name(message))}</b>{noted}{_time_tag(message.get('timestamp'))}</header>"
    )
    body = "\n".join(_message_blocks(message))
    return f'<article class="{" ".join(classes)}">\n{head}\n{body}\n</article>\n'


def _message_blocks(message: Exported) -> Iterator[str]:
    if reasoning := reasoning_text(message):
        yield _folded_html("Reasoning", _text_html(reasoning))
    for piece in content_pieces(message.get("content")):
        yield (
            _folded_tool_result(piece)
            if message.get("role") in ("tool", "session_meta")
            else _piece_html(piece)
        )
    for call in readable_tool_calls(message.get("tool_calls")):
        summary = f"Calls <b>{escape(call.name)}</b> {escape(call.brief_arguments)}"
        yield f"<details><summary>{summary}</summary><pre>{escape(call.arguments)}</pre></details>"
    for number, version in enumerate(message.get("versions") or (), 1):
        before = "\n".join(_piece_html(piece) for piece in content_pieces(version.get("content")))
        yield _folded_html(f"Version {number}, until {readable_time(version.get('replaced_at'))}", before)


def _piece_html(piece: Piece) -> str:
    if piece.kind is PieceKind.MEDIA:
        return f'<div class="media">[{escape(piece.text)}]</div>'
    if piece.kind is PieceKind.DATA:
        return f"<pre>{escape(piece.text)}</pre>"
    return _text_html(piece.text)


def _folded_tool_result(piece: Piece) -> str:
    """Return the result of a tool, folded: it is long, and rarely what a reader looks for."""
    glimpse = escape(on_one_line(piece.text, MAX_GLIMPSE))
    return f"<details><summary>{glimpse}</summary><pre>{escape(piece.text)}</pre></details>"


def _text_html(text: str) -> str:
    """Return the text with its code blocks set apart; no other markup is followed."""
    parts: list[str] = []
    at = 0
    for block in _CODE_BLOCK.finditer(text):
        parts += [_prose_html(text[at : block.start()]), f"<pre>{escape(block[2].rstrip())}</pre>"]
        at = block.end()
    return "".join(filter(None, [*parts, _prose_html(text[at:])]))


def _prose_html(text: str) -> str:
    shown = text.strip("\n")
    if not shown.strip():
        return ""
    marked = _CODE.sub(r"<code>\1</code>", escape(shown))
    return f'<div class="text" dir="auto">{marked}</div>'


def _folded_html(title: str, inner: str) -> str:
    return f"<details><summary>{escape(title)}</summary>{inner}</details>"


def _time_tag(seconds: object) -> str:
    stamp = iso_time(seconds)
    return f'<time datetime="{stamp}">{escape(readable_time(seconds))}</time>' if stamp else ""
