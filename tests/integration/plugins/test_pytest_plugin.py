"""The pytest plugin from outside: in a test run of its own, as another project would meet it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gateway_sessions.cli.fakes.platforms import FAKES as RUNNABLE
from gateway_sessions.pytest_plugin import FAKES
from tests.programs import STRANGERS

pytest_plugins = ["pytester"]

FIXTURES = """
    import pytest
    from gateway_sessions import EndReason, SessionSource

    ADA = SessionSource(platform="telegram", chat_id="5", user_id="5")

    async def test_a_day(session_store, fake_clock):
        first = await session_store.get_or_create_session(ADA)
        await fake_clock.advance(days=1)
        second = await session_store.get_or_create_session(ADA)
        assert second.auto_reset_reason is EndReason.DAILY
        assert second.previous_session_id == first.session_id

    async def test_each_test_has_a_store_of_its_own(session_store):
        assert not await session_store.has_any_sessions()

    def test_a_clock_needs_no_event_loop(fake_clock):
        assert fake_clock.now().isoformat() == "2026-01-01T00:00:00+00:00"
        fake_clock.step(days=1)
        assert fake_clock.now().day == 2
"""
PLATFORMS = """
    import pytest
    from gateway_sessions.pytest_plugin import FAKES

    @pytest.mark.parametrize("platform", FAKES)
    async def test_a_fake_listens_in_an_async_test(platform, request):
        fake = request.getfixturevalue(f"fake_{platform}")
        assert type(fake).__name__ == FAKES[platform]
        assert fake.url.startswith("http://127.0.0.1:")
        assert list(fake.bot_messages()) == []

    def test_two_platforms_run_beside_each_other(fake_telegram, fake_line):
        assert fake_telegram.url != fake_line.url

    def test_each_test_has_a_fake_of_its_own(fake_telegram):
        assert fake_telegram.pending == 0
        fake_telegram.says("ann", "hello")
        assert fake_telegram.pending == 1

    def test_what_was_said_in_another_test_is_gone(fake_telegram):
        assert fake_telegram.pending == 0
"""
PLAIN = """
    def test_nothing_of_ours():
        assert True

    def test_a_clock(fake_clock):
        assert fake_clock.sleepers == 0
"""
# A project without the extra `test`: what is not to be there is not found.
WITHOUT = """
import sys

class Without:
    def __init__(self, finder):
        self.finder = finder

    def find_spec(self, name, path=None, target=None):
        hidden = name.partition(".")[0] in {blocked!r}
        return None if hidden else self.finder.find_spec(name, path, target)

    def __getattr__(self, name):
        return getattr(self.finder, name)

sys.meta_path[:] = [Without(finder) for finder in sys.meta_path]
import pytest
raise SystemExit(pytest.main(sys.argv[1:]))
"""


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run pytest in a process of its own, with the plugins that are installed."""
    return finish([sys.executable, "-m", "pytest", *STRANGERS, *arguments], folder)


def run_without(folder: Path, blocked: tuple[str, ...], *arguments: str) -> subprocess.CompletedProcess[str]:
    """The same where some modules are not installed. Only our plugin is loaded: others may need them."""
    arguments = ("-p", "gateway_sessions.pytest_plugin", *arguments)
    command = [sys.executable, "-c", WITHOUT.format(blocked=blocked), *arguments]
    return finish(command, folder, PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")


def finish(command: list[str], folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    environment |= variables
    return subprocess.run(
        [*command, "-q", "-p", "no:cacheprovider"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makeini("[pytest]\nfilterwarnings = error\nasyncio_default_fixture_loop_scope = function\n")
    return pytester


@pytest.mark.parametrize(("mode", "mark"), [("auto", ""), ("strict", "@pytest.mark.asyncio\n    ")])
def test_the_fixtures_work_in_every_mode_of_pytest_asyncio(project: pytest.Pytester, mode: str, mark: str):
    project.makepyfile(FIXTURES.replace("async def", f"{mark}async def"))
    finished = run(project.path, "-o", f"asyncio_mode={mode}")
    assert "3 passed" in finished.stdout, finished.stdout + finished.stderr


def test_the_fixtures_are_listed_with_what_they_are(project: pytest.Pytester):
    listed = run(project.path, "--fixtures").stdout
    assert "fake_clock" in listed
    assert "Return a clock that stands still until the test advances it." in listed
    assert "session_store" in listed
    assert "Open a store in a directory of its own" in listed


def test_there_is_a_fixture_for_each_fake_platform(project: pytest.Pytester):
    assert sorted(FAKES) == sorted(RUNNABLE)
    project.makepyfile(PLATFORMS)
    finished = run(project.path, "-o", "asyncio_mode=auto")
    assert f"{len(FAKES) + 3} passed" in finished.stdout, finished.stdout + finished.stderr
    listed = run(project.path, "--fixtures").stdout
    for platform, name in FAKES.items():
        assert f"fake_{platform} " in listed
        assert f"Run a `{name}` on loopback until the test ends." in listed


def test_nothing_is_loaded_before_somebody_asks_and_then_with_asserts_that_explain_themselves(
    project: pytest.Pytester,
):
    """Without rewriting, a broken contract says only `AssertionError`."""
    project.makepyfile(
        """
        import sys

        def ours():
            return {name for name in sys.modules if name.startswith("gateway_sessions.")}

        def test_nothing_was_loaded_that_no_fixture_asked_for():
            log = {f"gateway_sessions.{name}" for name in ("log_lines", "core", "core.display_text")}
            log |= {"gateway_sessions._process", "gateway_sessions._process.moved_names"}
            assert ours() == {"gateway_sessions.pytest_plugin", *log}

        def test_it_is_loaded_by_the_rewriting_loader(fake_clock):
            loaded = [name for name in ours() if name.startswith("gateway_sessions.testing")]
            assert "gateway_sessions.testing.clock" in loaded
            loaders = {type(sys.modules[name].__loader__).__name__ for name in loaded}
            assert loaders == {"AssertionRewritingHook"}
        """
    )
    finished = run(project.path)
    assert "2 passed" in finished.stdout, finished.stdout + finished.stderr


def test_a_failing_test_leaves_a_closed_store(project: pytest.Pytester):
    project.makepyfile(
        """
        from gateway_sessions import SessionStore

        homes = []

        async def test_fails(session_store):
            homes.append(session_store.home)
            assert False

        async def test_can_open_its_home(fake_clock):
            async with SessionStore.open(homes[0], clock=fake_clock) as store:
                assert store.started.clean
        """
    )
    finished = run(project.path, "-o", "asyncio_mode=auto")
    assert "1 failed, 1 passed" in finished.stdout, finished.stdout + finished.stderr


def test_with_pytest_asyncio_switched_off_other_tests_run(project: pytest.Pytester):
    project.makepyfile(PLAIN)
    project.makeini("[pytest]\nfilterwarnings = error\n")
    finished = run(project.path, "-p", "no:asyncio")
    assert "2 passed" in finished.stdout, finished.stdout + finished.stderr


def test_without_pytest_asyncio_other_tests_run_and_the_store_is_not_offered(project: pytest.Pytester):
    project.makeini("[pytest]\nfilterwarnings = error\n")
    project.makepyfile(PLAIN + "\n    def test_a_store(session_store):\n        pass\n")
    finished = run_without(project.path, ("pytest_asyncio",))
    assert "2 passed, 1 error" in finished.stdout, finished.stdout + finished.stderr
    assert "fixture 'session_store' not found" in finished.stdout


def test_the_plugin_can_be_switched_off(project: pytest.Pytester):
    project.makepyfile("def test_no_clock(fake_clock):\n    pass\n")
    finished = run(project.path, "-p", "no:gateway_sessions")
    assert "fixture 'fake_clock' not found" in finished.stdout
