"""The look of an HTML export: one sheet for light, dark and paper."""

from __future__ import annotations

from typing import Final

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
