"""The site of the documentation: its list of pages is complete, and its check finds broken links."""

import re
import sys
import tomllib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from tests.architecture.sources import modules, package_root

ROOT = Path(__file__).parents[3]
SITE = ROOT / "docs" / "site"
PINNED = re.compile(r"^([a-z0-9-]+)==(\S+)", re.MULTILINE)


@pytest.fixture(scope="module")
def site() -> Iterator[dict[str, ModuleType]]:
    """The modules that need no MkDocs."""
    names = ("navigation", "links", "check", "make_llms")
    sys.path.insert(0, str(SITE))
    try:
        yield {name: import_module(name) for name in names}
    finally:
        sys.path.remove(str(SITE))
        for name in names:
            sys.modules.pop(name, None)


# The index


def test_the_index_says_of_each_page_what_it_is_for(site: dict[str, ModuleType]):
    pages = [page for section in site["navigation"].sections() for page in section.all_pages()]
    assert len(pages) > 50
    assert [page.path for page in pages if not (ROOT / "docs" / page.path).is_file()] == []
    assert [page.title for page in pages if not page.sentence.endswith(".")] == []
    assert len({page.path for page in pages}) == len(pages)


def test_the_sections_of_the_index_are_the_four_kinds_of_page(site: dict[str, ModuleType]):
    folders = {
        section.title: {page.path.split("/")[0] for page in section.all_pages()}
        for section in site["navigation"].sections()
    }
    assert folders == {
        "Learn": {"tutorial"},
        "Do": {"how-to"},
        "Look up": {"reference"},
        "Understand": {"explanation"},
    }


@pytest.mark.parametrize("line", ["- [A page](a.md)", "- a.md: A sentence.", "* [A page](a.md): A sentence."])
def test_a_line_of_the_index_that_the_navigation_would_lose_is_refused(
    site: dict[str, ModuleType], line: str
):
    with pytest.raises(site["navigation"].IndexFormatError):
        site["navigation"].read_index(f"## Learn\n\n{line}\n")


def test_each_decision_is_in_the_navigation(site: dict[str, ModuleType]):
    listed = {page.path for page in site["navigation"].decisions()}
    there = {
        path.relative_to(ROOT / "docs").as_posix()
        for path in (ROOT / "docs" / "explanation" / "decisions").glob("[0-9]*.md")
    }
    assert listed == there


def test_llms_txt_is_up_to_date_and_its_links_lead_somewhere(site: dict[str, ModuleType]):
    text = (ROOT / "llms.txt").read_text(encoding="utf-8")
    assert text == site["make_llms"].llms(), "run: python docs/site/make_llms.py"
    assert [link for link in re.findall(r"\]\(([^)]+)\)", text) if not (ROOT / link).is_file()] == []


# Links


@pytest.mark.parametrize(
    ("origin", "place", "link", "expected"),
    [
        ("README.md", "index.md", "docs/how-to/search.md#forms", "how-to/search.md#forms"),
        ("README.md", "index.md", "config.example.yaml", "source/config.example.yaml.md"),
        ("README.md", "index.md", "CHANGELOG.md", "project/changelog.md"),
        ("README.md", "index.md", "#promises", "#promises"),
        ("README.md", "index.md", "https://example.org/a.md", "https://example.org/a.md"),
        ("CHANGELOG.md", "project/changelog.md", "README.md", "../index.md"),
        ("docs/how-to/a.md", "how-to/a.md", "../reference/b.md", "../reference/b.md"),
        ("docs/how-to/a.md", "how-to/a.md", "../../examples/demo.py", "../source/examples/demo.py.md"),
        ("docs/how-to/a.md", "how-to/a.md", "../pictures/top.svg", "../pictures/top.svg"),
        (
            "docs/how-to/a.md",
            "how-to/a.md",
            "../../gateway_sessions/core/",
            "../source/gateway_sessions/core.md",
        ),
        ("docs/README.md", "README.md", "../llms.txt", "llms.txt"),
        ("docs/a.md", "a.md", "reference/make_cli.py", "source/docs/reference/make_cli.py.md"),
    ],
)
def test_a_link_leads_to_where_the_site_shows_the_same(
    site: dict[str, ModuleType], origin: str, place: str, link: str, expected: str
):
    assert site["links"].rewritten(f"see [it]({link}).", origin, place) == f"see [it]({expected})."


@pytest.mark.parametrize(
    "text",
    ["`[a](b.md)`", "``a`[a](b.md)``", "```\n[a](b.md)\n```", "~~~~text\n```\n[a](b.md)\n~~~~\n"],
)
def test_what_stands_in_code_is_no_link(site: dict[str, ModuleType], text: str):
    assert site["links"].rewritten(text, "docs/README.md", "somewhere/else.md") == text
    assert list(site["links"].links_in(text, "docs/README.md")) == []


def test_pictures_and_references_are_links_as_well(site: dict[str, ModuleType]):
    text = '![a](docs/a.svg)\n<img src="docs/b.svg">\n\n[c]: docs/c.md\n'
    assert list(site["links"].links_in(text, "README.md")) == ["docs/a.svg", "docs/b.svg", "docs/c.md"]


def test_every_link_of_the_pages_in_the_root_leads_somewhere(site: dict[str, ModuleType]):
    pages = [name for name in site["links"].PROJECT_PAGES if (ROOT / name).exists()]
    assert {"CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"} <= set(pages)
    broken = [
        f"{name}: {target}"
        for name in pages
        for target in site["links"].links_in((ROOT / name).read_text(encoding="utf-8"), name)
        if not (ROOT / target).exists()
    ]
    assert broken == []


def test_every_command_of_make_that_contributors_are_told_of_exists():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    told = set(re.findall(r"(?:^|`)make ([a-z]+)", text, re.MULTILINE))
    assert told >= {"check", "test", "docs", "lock"}
    assert [one for one in sorted(told) if f"\n{one}: " not in makefile] == []


# The check of what was built


def built(folder: Path, **pages: str) -> Path:
    (folder / "below").mkdir()
    for name, text in {"index": "", "below/page": '<h1 id="top">A page</h1>', **pages}.items():
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
    (folder / "style.css").write_text("a { color: red }", encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    "text",
    [
        '<a href="below/page.html#top">',
        '<a href="/below/page.html">',
        '<a href="#here"><a id="here">',
        '<a href="https://example.org">',
        '<link rel="stylesheet" href="style.css">',
        '<a href="mailto:somebody@example.org">',
    ],
)
def test_the_check_lets_a_sound_site_pass(site: dict[str, ModuleType], tmp_path: Path, text: str):
    assert list(site["check"].problems(built(tmp_path, index=text))) == []
    assert site["check"].main(str(tmp_path)) == 0


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('<a href="gone.html">', "no such page"),
        ('<a href="below/">', "no such page"),
        ('<a href="below/page.html#bottom">', "no such anchor"),
        ('<a href="#bottom">', "no such anchor"),
        ('<a href="../outside.html">', "leads out of the site"),
        ('<img src="gone.svg">', "no such page"),
        ('<img src="https://example.org/a.svg">', "loaded from elsewhere"),
        ('<script src="//example.org/a.js"></script>', "loaded from elsewhere"),
        ('<link rel="preconnect" href="https://example.org">', "loaded from elsewhere"),
        ('<pre class="mermaid">', "loaded from elsewhere"),
    ],
)
def test_the_check_finds_what_a_visitor_would_stumble_over(
    site: dict[str, ModuleType], tmp_path: Path, text: str, problem: str
):
    found = list(site["check"].problems(built(tmp_path, index=text)))
    assert len(found) == 1
    assert found[0].endswith(problem)
    assert site["check"].main(str(tmp_path)) == 1


def test_the_check_finds_what_a_style_sheet_loads(site: dict[str, ModuleType], tmp_path: Path):
    folder = built(tmp_path)
    (folder / "style.css").write_text(
        "@font-face { src: url(https://example.org/a.woff2) }", encoding="utf-8"
    )
    assert list(site["check"].problems(folder)) == [
        "style.css: https://example.org/a.woff2: loaded from elsewhere"
    ]


def test_an_empty_site_does_not_pass(site: dict[str, ModuleType], tmp_path: Path):
    assert site["check"].main(str(tmp_path)) == 1


# The code, and the tools


def test_each_public_module_has_a_page(site: dict[str, ModuleType]):
    shown = set(site["navigation"].MODULES)
    listing = {
        "gateway_sessions." + module.name.removesuffix("/__init__.py").removesuffix(".py")
        for module in modules()
        if re.fullmatch(r"\w+/__init__\.py|\w+\.py", module.name)
        and re.search(r"^__all__ = ", module.text, re.MULTILINE)
    }
    assert listing - {"gateway_sessions.__init__", "gateway_sessions._public"} - shown == set()
    paths = [package_root().joinpath(*name.split(".")[1:]) for name in shown]
    assert [path for path in paths if not (path.is_dir() or path.with_suffix(".py").is_file())] == []


def test_the_tools_of_the_site_are_locked_with_hashes_and_agree_with_the_others():
    lock = (ROOT / "requirements-docs.lock").read_text(encoding="utf-8")
    others = dict(PINNED.findall((ROOT / "requirements.lock").read_text(encoding="utf-8")))
    pinned = dict(PINNED.findall(lock))
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["dependency-groups"]
    wanted = {re.split(r"[\[<>=]", one)[0] for one in groups["docs"]}
    assert wanted - pinned.keys() == set()
    assert {name for name, version in pinned.items() if others.get(name, version) != version} == set()
    assert [one for one in lock.split("\n\n") if "==" in one and "--hash=sha256:" not in one] == []
    assert "://" not in lock


def test_the_pages_about_the_code_take_the_public_names_from_a_module_that_is_there():
    named = re.findall(r'package\["(\w+)"\]', (ROOT / "docs" / "site" / "api_pages.py").read_text("utf-8"))
    assert named
    assert [name for name in named if not (ROOT / "gateway_sessions" / f"{name}.py").is_file()] == []
