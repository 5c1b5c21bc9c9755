"""What the pages say exists, what exists is on the pages, and their code runs."""

import ast
import enum
import inspect
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

import gateway_sessions
from gateway_sessions import (
    EndReason,
    GatewaySessionsError,
    SessionEntry,
    SessionFinalized,
    SessionSource,
    SessionState,
    SessionStore,
    errors,
)
from gateway_sessions.config import parse_config
from gateway_sessions.core.queue.state_machine import (
    Cause,
    ItemEvent,
    ItemState,
    ReplyEvent,
    ReplyState,
    TurnOutcome,
)
from gateway_sessions.core.sessions.state_machine import Event
from gateway_sessions.core.sessions_json.entries import entry_to_dict
from gateway_sessions.core.sessions_json.file_format import SnapshotEncoder
from gateway_sessions.sessions import ResumeReason
from gateway_sessions.storage.api.sessions import SessionRowMethods
from gateway_sessions.storage.api.transcripts import TranscriptMethods
from gateway_sessions.testing import clock as testing_clock
from tests.architecture.sources import PUBLIC_MODULES, modules
from tests.programs import WarmPython
from tests.raw_sql import migrated_in_memory

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted(DOCS.rglob("*.md"))]
RUNNING = [
    ROOT / "README.md",
    *sorted((DOCS / "tutorial").glob("*.md")),
    *sorted((DOCS / "how-to").glob("*.md")),
]
ELSEWHERE = {"talk-to-a-model"}
"""Pages whose programs need somebody at the other end: see tests/integration/documentation."""
PATIENCE = 60
"""Seconds for a process of its own, on a machine that is busy elsewhere."""

BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
FIRST_CELL = re.compile(r"^\| `([^`]+)`", re.MULTILINE)


def page(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


def without_code(text: str) -> str:
    return BLOCK.sub("", text)


def words_in_code_style(text: str) -> set[str]:
    return {
        word for code in re.findall(r"`([^`\n]+)`", without_code(text)) for word in re.findall(r"\w+", code)
    }


def section(text: str, heading: str) -> str:
    return text.split(f"\n## {heading}\n")[1].split("\n## ", maxsplit=1)[0]


# Names


def test_every_public_name_is_in_the_reference_of_the_api():
    known = words_in_code_style(page("reference/api.md")) | set(
        FIRST_CELL.findall(page("reference/errors.md"))
    )
    pages_of_their_own = {"gateway_sessions.config", "gateway_sessions.providers"}
    listed = [one for one in PUBLIC_MODULES if one.__name__ not in pages_of_their_own]
    missing = {*gateway_sessions.__all__, *(name for one in listed for name in one.__all__)} - known
    assert missing - {"ConfigProblem", "SessionCandidate"} == set()


def test_the_reference_says_where_each_name_is_imported_from():
    table = section(page("reference/api.md"), "Where names are")
    rows = dict(re.findall(r"^\| `(gateway_sessions[\w.]*)` \| (.+) \|$", table, re.MULTILINE))
    told = {name: set(re.findall(r"`(\w+)`", names)) for name, names in rows.items()}
    assert told == {one.__name__: set(one.__all__) for one in told_of()}


def told_of() -> list[ModuleType]:
    """Return the package and the modules that exist only to hand out names."""
    of_lists = {"budgets", "events", "operator", "queue", "search", "sessions", "transcripts", "usage"}
    modules_of_lists = [one for one in PUBLIC_MODULES if one.__name__.partition(".")[2] in of_lists]
    return [gateway_sessions, *modules_of_lists]


def test_every_method_of_a_store_is_in_the_reference_with_its_parameters():
    text = section(page("reference/api.md"), "`SessionStore`")
    rows = dict(re.findall(r"`(\w+)\(([^`]*)\)`", text))
    for name, member in vars(SessionStore).items():
        if name.startswith("_") or name == "open":
            continue
        if isinstance(member, property):
            assert f"`{name}`" in text
        else:
            parameters = [one for one in inspect.signature(member).parameters if one != "self"]
            documented = [one.split("=")[0].strip() for one in rows[name].split(",")]
            assert [one for one in documented if one not in ("*", "")] == parameters, name


def test_every_method_for_sessions_and_messages_is_in_the_reference():
    known = words_in_code_style(section(page("reference/api.md"), "`SessionDB`"))
    names = {
        name for methods in (SessionRowMethods, TranscriptMethods) for name in vars(methods) if name[0] != "_"
    }
    assert names - known == set()


def test_every_option_of_open_is_in_the_reference():
    text = section(page("reference/api.md"), "`SessionStore`")
    for name in inspect.signature(SessionStore.open).parameters:
        assert re.search(rf"^    {name}[,=]", text, re.MULTILINE), name


def test_every_field_of_an_entry_is_in_the_reference():
    properties = {name for name, member in vars(SessionEntry).items() if isinstance(member, property)}
    known = words_in_code_style(section(page("reference/api.md"), "`SessionEntry`"))
    assert {*SessionEntry.__struct_fields__, *properties} - known == set()


def test_every_field_that_a_hook_is_given_is_in_the_reference():
    known = words_in_code_style(section(page("reference/api.md"), "Values"))
    assert set(SessionFinalized.__dataclass_fields__) - known == set()


# Errors, states, log records


def test_the_reference_lists_exactly_the_errors_there_are():
    classes = {
        name
        for name, value in {**vars(errors), **vars(errors), **vars(errors)}.items()
        if isinstance(value, type) and issubclass(value, GatewaySessionsError)
    }
    assert sorted(FIRST_CELL.findall(page("reference/errors.md"))) == sorted(classes)


def test_the_errors_of_the_test_clock_are_in_the_reference():
    classes = [
        name for name in vars(testing_clock) if name.endswith("Error") and name != "GatewaySessionsError"
    ]
    assert [name for name in classes if f"`{name}`" not in page("reference/errors.md")] == []


@pytest.mark.parametrize(
    ("words", "heading"),
    [
        (SessionState, None),
        (Event, "Events"),
        (EndReason, "End reasons"),
        ([*ItemState, *ItemEvent], "Messages in a queue"),
        (TurnOutcome, "Ends of turns"),
        ([*ReplyState, *ReplyEvent], "Replies"),
        (Cause, "Who causes events"),
    ],
    ids=["states", "events", "end reasons", "messages", "ends of turns", "replies", "causes"],
)
def test_the_reference_lists_exactly_the_words_there_are(words: Iterable[enum.Enum], heading: str | None):
    text = page("reference/states.md")
    part = section(text, heading) if heading else text.split("<!--")[0]
    assert FIRST_CELL.findall(part) == [word.value for word in words]


def test_the_reference_says_truly_which_end_reasons_are_automatic():
    rows = re.findall(r"^\| `(\w+)` \| .+ \| (yes|no) \|$", page("reference/states.md"), re.MULTILINE)
    assert {reason: answer == "yes" for reason, answer in rows} == {
        reason.value: reason.is_automatic for reason in EndReason
    }


def test_every_resume_reason_is_in_the_reference():
    assert (
        set(ResumeReason) - words_in_code_style(section(page("reference/states.md"), "Resume reasons"))
        == set()
    )


def test_the_drawings_of_the_states_are_up_to_date():
    spec = spec_from_file_location("make_state_diagram", DOCS / "reference" / "make_state_diagram.py")
    assert spec is not None
    assert spec.loader is not None
    script = module_from_spec(spec)
    spec.loader.exec_module(script)
    text = page("reference/states.md")
    assert script.drawn(text) == text, "run docs/reference/make_state_diagram.py"


def actions_in_code() -> set[str]:
    """What stands in `extra={"action": ...}`, and the words that incidents are reported with."""
    found: set[str] = set()
    for module in modules():
        for node in ast.walk(module.tree):
            values: list[ast.expr] = []
            if isinstance(node, ast.Dict):
                keys = [key.value if isinstance(key, ast.Constant) else None for key in node.keys]
                values = [value for key, value in zip(keys, node.values, strict=True) if key == "action"]
            elif (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr in {"report", "log_facts"}
            ):
                values = node.args[:1]
            found |= {
                one.value
                for value in values
                for one in ast.walk(value)
                if isinstance(one, ast.Constant) and isinstance(one.value, str)
            }
    return found


def test_the_reference_lists_exactly_the_log_actions_there_are():
    assert sorted(FIRST_CELL.findall(page("reference/logging.md"))[1:]) == sorted(actions_in_code())


# Files and formats


def test_the_reference_lists_exactly_the_tables_and_columns_there_are():
    database = migrated_in_memory()
    tables = [row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    documented = dict(
        re.findall(r"^\| `(\w+)` \| [^|]+ \| (.+) \|$", page("reference/schema.md"), re.MULTILINE)
    )
    assert sorted(documented) == sorted(tables)
    for table in tables:
        columns = [row[1] for row in database.execute(f"PRAGMA table_info({table})")]
        shown = documented[table].split(":")[0]
        assert re.findall(r"`(\w+)`", shown) == columns, table
    database.close()


async def test_every_file_that_a_store_makes_is_in_the_reference(tmp_path: Path):
    source = SessionSource(platform="local", chat_id="desk")
    seen: set[str] = set()
    for torn in (True, False):
        async with SessionStore.open(tmp_path / "store") as store:
            entry = await store.get_or_create_session(source)
            await store.db.append_message(entry.session_id, "user", "hello")
            await store.db.catch_up_search_index()
            await store.flush()
            await store.suspend_recently_active()
            await store.flush()
            seen |= {path.name for path in store.home.iterdir()}
        seen |= {path.name for path in store.home.iterdir()}
        if torn:
            (store.home / "sessions.json").write_bytes(b"{")
            (store.home / "search.db").write_bytes(b"{" * 4096)
    documented = {name.rstrip("/") for name in FIRST_CELL.findall(page("reference/files.md"))}
    assert seen - documented == set()
    assert documented - seen == {
        "backups",
        "sessions.config.path",
        "sessions.db.rebuilt",
        "sessions.db.v2.bak",
        ".sessions.json.*.tmp",
        "sessions.sock.path",
    }


def test_the_members_of_an_entry_are_in_the_reference_in_their_order():
    now = datetime(2026, 1, 1, tzinfo=UTC)
    entry = SessionEntry(
        session_key="k", session_id="s", created_at=now, updated_at=now, last_interaction_at=now
    )
    text = section(page("reference/sessions-json.md"), "Members of an entry")
    always, sometimes = text.split("These are there only")
    assert re.findall(r"`(\w+)`", always) == [*entry_to_dict(entry)]
    full = entry.altered(
        version=1,
        owner="o",
        zone="UTC",
        previous_session_id="p",
        state=SessionState.SUSPENDED,
        state_reason="r",
        state_since=now,
        opened_by=EndReason.SESSION_SWITCH,
        last_interaction_at=now.replace(year=2025),
        deferred_boundary=now,
        model_override={"model": "m"},
        origin=SessionSource(platform="local", chat_id="desk"),
    )
    assert {*entry_to_dict(full)} - {*entry_to_dict(entry)} - words_in_code_style(sometimes) == set()


def test_the_members_of_meta_are_in_the_reference():
    encoder = SnapshotEncoder()
    encoder.encode_header()
    tail = encoder.encode_tail(7, datetime(2026, 1, 1, tzinfo=UTC)).decode()
    written = re.findall(r'"(\w+)":', tail)[1:]
    shown = section(page("reference/sessions-json.md"), "`_meta`")
    assert [
        word
        for row in re.findall(r"^\| (`.+?) \|", shown, re.MULTILINE)
        for word in re.findall(r"`(\w+)`", row)
    ] == written


# Links


def anchors(path: Path) -> set[str]:
    headings = HEADING.findall(without_code(path.read_text(encoding="utf-8")))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_leads_somewhere(path: Path):
    broken = []
    for link in LINK.findall(without_code(path.read_text(encoding="utf-8"))):
        if "://" in link:
            continue
        name, _, anchor = link.partition("#")
        target = (path.parent / name).resolve() if name else path
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(link)
    assert broken == []


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_file_that_a_page_names_exists(path: Path):
    named = re.findall(r"`((?:docs|examples|gateway_sessions)/[\w./-]+)`", path.read_text(encoding="utf-8"))
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_every_page_is_in_the_index():
    linked = {(DOCS / link).resolve() for link in LINK.findall(page("README.md"))}
    decisions = DOCS / "explanation" / "decisions"
    linked |= {(decisions / link).resolve() for link in LINK.findall(page("explanation/decisions/README.md"))}
    assert [path for path in PAGES[2:] if path.resolve() not in linked and path != DOCS / "README.md"] == []


def test_the_readme_opens_with_commands_that_exist():
    first = BLOCK.findall((ROOT / "README.md").read_text(encoding="utf-8"))[0][1]
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = re.findall(r"^make (\w+)", first, re.MULTILINE)
    assert targets == ["demo", "test"]
    assert [one for one in targets if f"\n{one}: " not in makefile] == []


# Code


def blocks_in(language: str) -> list[tuple[str, str]]:
    """Every block of a language with the name of its page."""
    return [
        (path.name, code)
        for path in PAGES
        for found, code in BLOCK.findall(path.read_text(encoding="utf-8"))
        if found == language
    ]


def test_code_that_does_not_run_is_code_all_the_same():
    for name, code in blocks_in("python"):
        compile(code, name, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


def test_every_configuration_on_a_page_is_one():
    shown = blocks_in("yaml")
    assert len(shown) > 5
    for name, text in shown:
        provider = dict(re.findall(r"(provider): (\w+)", text)).get("provider", "no")
        variables = dict.fromkeys(re.findall(r"\$\{(\w+)\}", text), f"{provider}://user@host/name")
        parse_config(text, origin=name, environ=variables)


def test_every_json_on_a_page_is_json():
    shown = blocks_in("json")
    assert len(shown) > 2
    for _, text in shown:
        for one in [text] if text.startswith("{\n") else text.splitlines():
            json.loads(one)


@pytest.mark.timeout(PATIENCE)
@pytest.mark.parametrize(
    "path", [one for one in RUNNING if one.stem not in ELSEWHERE], ids=lambda path: path.stem
)
def test_the_code_of_a_page_runs_and_prints_what_the_page_says(
    path: Path, tmp_path: Path, warm_python: WarmPython
):
    blocks = BLOCK.findall(path.read_text(encoding="utf-8"))
    script = tmp_path / "test_page.py"
    script.write_text("\n".join(code for language, code in blocks if language == "python"), encoding="utf-8")
    is_test = re.search(r"^(async )?def test_", script.read_text(encoding="utf-8"), re.MULTILINE)
    options = {"folder": str(tmp_path), "variables": {"TZ": "UTC"}}
    if is_test:
        finished = warm_python.run_pytest("-o", "asyncio_mode=auto", script.name, **options)
    elif path.name == "README.md":
        finished = subprocess.run(
            [sys.executable, "-W", "error", script.name],
            cwd=tmp_path,
            env={**os.environ, "TZ": "UTC"},
            input="Hello there\n",
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
    else:
        finished = warm_python.run(None, script.name, strict=True, **options)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    if path.name == "README.md":
        assert "You have said 1 things, and first: Hello there\n" in finished.stdout
    elif not is_test:
        assert finished.stdout == "".join(output for language, output in blocks if language == "text")
