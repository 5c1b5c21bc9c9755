"""A bot that somebody has gains at most three statements: an adapter, `async with Gateway`, `run`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest

ROOT = Path(__file__).parents[3]
BOTS = sorted((ROOT / "examples" / "bots").glob("*.py"))
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs" / "how-to").glob("put-*-behind-a-gateway.md"))]
MOST_ADDED = 3
ACCOUNT = re.compile(r"(Settings|Bot)$")
"""The classes that name an account: every bot of the platform has its own form of that."""
INDENTED = re.compile(r"(?:^ {4}.+\n(?:\n(?= {4}))?)+", re.MULTILINE)
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
"""The blocks with whole programs, which play people and the platform as well."""
BEFORE_AND_AFTER = re.compile(
    rf"^Before[^\n]*:\n\n(?P<before>{INDENTED.pattern})\nAfter[^\n]*:\n\n(?P<after>{INDENTED.pattern})",
    re.MULTILINE,
)


def heads_of(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield all statements, those in blocks as well, but for imports and the agent."""
    for one in body:
        match one:
            case ast.Import() | ast.ImportFrom():
                continue
            case ast.AsyncFunctionDef(args=ast.arguments(args=[ast.arg(annotation=ast.Name("TurnContext"))])):
                continue
            case _:
                yield one
        yield from heads_of(getattr(one, "body", []))


def own_parts(statement: ast.stmt) -> Iterator[ast.AST]:
    """Yield the nodes of a statement, without those of the block below it."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return
    below = {id(node) for one in getattr(statement, "body", []) for node in ast.walk(one)}
    yield from (node for node in ast.walk(statement) if id(node) not in below)


def names_in(statement: ast.stmt, context: type[ast.expr_context]) -> set[str]:
    return {
        node.id
        for node in own_parts(statement)
        if isinstance(node, ast.Name) and isinstance(node.ctx, context)
    }


def names_account_only(statement: ast.stmt) -> bool:
    """Return whether a statement only makes what stands for the account."""
    match statement:
        case ast.Assign(value=ast.Call(func=ast.Name(name) | ast.Attribute(value=ast.Name(name)))):
            return ACCOUNT.search(name) is not None
        case _:
            return False


def added_in(program: str) -> list[str]:
    """Return the statements of a program that use this package, or what such a statement has made."""
    tree = ast.parse(program)
    ours = {
        each.asname or each.name
        for one in tree.body
        if isinstance(one, ast.ImportFrom) and (one.module or "").startswith("gateway_sessions")
        for each in one.names
    }
    added: list[str] = []
    for one in heads_of(tree.body):
        if names_in(one, ast.Load) & ours and not names_account_only(one):
            ours |= names_in(one, ast.Store)
            added.append(ast.unparse(one).partition("\n")[0])
    return added


def key_of(statement: ast.stmt) -> str:
    """Return what tells a statement: an assignment that gives a name another value is no new one."""
    if isinstance(statement, ast.Assign):
        return ast.unparse(statement.targets[0])
    return ast.unparse(statement).partition("\n")[0]


def gained(before: str, after: str) -> list[str]:
    """Return the statements of *after* that are not in *before*."""
    had = {key_of(one) for one in heads_of(ast.parse(dedent(before)).body)}
    return [
        key_of(one)
        for one in heads_of(ast.parse(dedent(after)).body)
        if key_of(one) not in had and not names_account_only(one)
    ]


@pytest.mark.parametrize("bot", BOTS, ids=lambda bot: bot.stem)
def test_an_example_has_three_statements_of_the_gateway(bot: Path):
    added = added_in(bot.read_text("utf-8"))
    assert any("Gateway(" in one for one in added)
    assert 2 <= len(added) <= MOST_ADDED, added


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_adds_three_statements_to_a_bot(page: Path):
    text = FENCED.sub("", page.read_text("utf-8"))
    pairs = {found["after"]: found["before"] for found in BEFORE_AND_AFTER.finditer(text)}
    programs = [found[0] for found in INDENTED.finditer(text) if "Gateway(" in found[0]]
    assert programs, "the page shows no program"
    assert set(pairs) <= set(programs)
    for program in programs:
        added = gained(pairs.get(program, ""), program)
        assert any("Gateway(" in one for one in added)
        assert len(added) <= MOST_ADDED, added


@pytest.mark.parametrize("name", ["telegram-bot", "discord-bot", "matrix-bot", "slack-app"])
def test_a_page_for_a_client_library_begins_with_the_bot_that_somebody_has(name: str):
    text = (ROOT / "docs" / "how-to" / f"put-a-{name}-behind-a-gateway.md").read_text("utf-8")
    assert BEFORE_AND_AFTER.search(text)


def test_a_fourth_statement_is_counted():
    program = (
        "from gateway_sessions import Gateway\nimport os\n"
        "async def main():\n"
        "    gateway = Gateway(os.environ['X'])\n"
        "    async with gateway as running:\n"
        "        await running.run()\n"
        "        print(running)\n"
        "        print('done')\n"
    )
    assert added_in(program) == [
        "gateway = Gateway(os.environ['X'])",
        "async with gateway as running:",
        "await running.run()",
        "print(running)",
    ]
    assert gained("    app = 1\n    app.run()\n", "    app = 2\n    adapter = 1\n") == ["adapter"]
