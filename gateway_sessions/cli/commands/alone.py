"""The commands that belong to no group."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gateway_sessions.cli.declare import DEMO_AGENT, Agent, Limit, Source, number, offered

app = typer.Typer()


@offered(app, "demo", "demo:demo")
class Demo:
    """Show lanes, resets and crashes in a few seconds. The stores are real, and gone afterwards."""


@offered(app, "chat", "chat:chat")
class Chat:
    """Talk to an agent at this terminal. Ctrl-C ends its turn, Ctrl-D the talk."""

    title: Annotated[
        list[str] | None,
        typer.Argument(
            help="With -c: the title of the conversation; several words are joined.", metavar="TITLE…"
        ),
    ] = None
    go_on: Annotated[bool, typer.Option("--continue", "-c", help="Go on with the last conversation.")] = False
    resume: Annotated[
        str | None, typer.Option("--resume", "-r", help="Go on with this session.", metavar="SESSION")
    ] = None
    agent: Agent = DEMO_AGENT
    recap: Annotated[
        str | None,
        typer.Option(
            help="What is shown of a resumed one: full, minimal or off. Else as display.resume_display says.",
            metavar="FORM",
        ),
    ] = None
    move: Annotated[bool, typer.Option("--move", help="Take the session from the lane it is on.")] = False
    fork: Annotated[bool, typer.Option("--fork", help="Go on in a copy of it.")] = False


@offered(app, "serve", "serve:serve")
class Serve:
    """Run a gateway as `serve` in the configuration says. A signal or Ctrl-C ends it, after what runs."""

    agent: Agent = DEMO_AGENT
    wait: Annotated[
        float,
        typer.Option(
            parser=number(0),
            help="Ask another process that has the store to end, and wait so long for it and its ports.",
            metavar="SECONDS",
        ),
    ] = 0


@offered(app, "insights", "looking:insights")
class Insights:
    """Report what happened in the last days. Platforms, models, tools, costs, times of day."""

    days: Annotated[float, typer.Option(parser=number(0.01), help="So far back.", metavar="N")] = 30
    source: Source = None
    zone: Annotated[
        str | None, typer.Option(help="The zone of dates and hours; else the configured one.", metavar="ZONE")
    ] = None


@offered(app, "explain", "looking:explain")
class Explain:
    """Say why a lane is as it is. Its session, when that resets, and what the next message will do."""

    key: Annotated[str, typer.Argument(help="A session key, or a session on that lane.", metavar="KEY")]


@offered(app, "simulate", "looking:simulate")
class Simulate:
    """Try reset policies on what was recorded. How many sessions would reset, when, for whom."""

    policy: Annotated[Path, typer.Option(help="A configuration with the policies to try.", metavar="FILE")]
    since: Annotated[str, typer.Option("--from", help="So far back: 30d.", metavar="TIME")] = "30d"


@offered(app, "doctor", "doctor:doctor")
class Doctor:
    """Look at everything around a store. What is not well is told with what to do about it."""

    quick: Annotated[bool, typer.Option("--quick", help="Do not read the whole database.")] = False


@offered(app, "top", "top:top")
class Top:
    """Watch turns that run and wait. Their leases and ages, and the next resets; Ctrl-C ends it."""

    once: Annotated[bool, typer.Option("--once", help="Look once, as it is done into a pipe.")] = False
    every: Annotated[
        float, typer.Option(parser=number(0.2), help="Seconds between two looks.", metavar="N")
    ] = 2
    limit: Limit = 10
