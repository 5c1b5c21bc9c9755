"""A sample of every notice, and our words made anew from its code and its arguments alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from zoneinfo import ZoneInfo

from gateway_sessions import EndReason, SessionEntry, SessionSource
from gateway_sessions.core.delivery.outbound_messages import OutboundMessage
from gateway_sessions.core.identity.keys import key_at_account
from gateway_sessions.core.notices import command_replies as commands
from gateway_sessions.core.notices import notice_texts as texts
from gateway_sessions.core.notices import session_replies as sessions
from gateway_sessions.core.notices.error_replies import error_reply
from gateway_sessions.core.notices.human_units import ago_in_words, counted, duration_in_words
from gateway_sessions.core.notices.notice import Notice
from gateway_sessions.core.queue.busy_modes import Demotion
from gateway_sessions.core.queue.inbound import (
    Attachment,
    AttachmentKind,
    Disposition,
    InboundMessage,
    RejectReason,
)
from gateway_sessions.core.queue.items import QueuedMessage
from gateway_sessions.core.sessions.record import SessionSummary
from gateway_sessions.core.usage.budgets import BudgetOf, BudgetUnit, BudgetUse, Stop
from gateway_sessions.errors import (
    AmbiguousSessionError,
    GatewaySessionsError,
    InvalidInputError,
    InvalidTitleError,
    NothingToUndoError,
    SessionBusyError,
    SessionCandidate,
    SessionEndedError,
    SessionNotFoundError,
    StorageError,
    TitleTakenError,
)

NOW: Final = datetime(2026, 6, 10, 17, 0, tzinfo=UTC)
VIENNA: Final = ZoneInfo("Europe/Vienna")
NONE_ENDED: Final = sessions.StoppedWork(stopped=False, cancelled=0)
BOTH_ENDED: Final = sessions.StoppedWork(stopped=True, cancelled=2)
ROME: Final = sessions.ShownSession("s1", "Rome", 3)
NAMELESS: Final = sessions.ShownSession("s2", None, 1)


def every_notice() -> list[Notice]:
    """Each notice that the gateway can tell, with arguments of all kinds."""
    return [
        *of_receipts(),
        *of_turns(),
        *of_budgets(),
        *of_resets(),
        *of_commands(),
        *of_the_queue(),
        *of_the_status(),
        *of_sessions(),
        *of_errors(),
    ]


def of_receipts() -> list[Notice]:
    demotions = [None, *Demotion]
    acknowledged = [
        texts.acknowledgement_notice(how, depth, demotion)
        for how in Disposition
        for depth in (0, 1, 2, 5)
        for demotion in demotions
    ]
    return [
        *(one for one in acknowledged if one is not None),
        *map(texts.refusal_notice, RejectReason),
        texts.dropped_notice(),
        texts.dropped_notice(3),
    ]


def of_turns() -> list[Notice]:
    return [
        texts.FAILED,
        texts.TOOK_TOO_LONG,
        texts.NO_SIGN_OF_LIFE,
        texts.GIVEN_UP,
        texts.UNFINISHED,
        texts.MAYBE_REPEAT,
        texts.not_carried_out_notice("new"),
        texts.cut_off_notice(NOW - timedelta(hours=3, minutes=2), NOW),
    ]


def use(budget: BudgetOf, percent: float, unknown: int = 0, ends: timedelta | None = None) -> BudgetUse:
    return BudgetUse(
        budget=budget,
        unit=BudgetUnit.USD,
        limit=100,
        spent=percent,
        percent=percent,
        unknown=unknown,
        frees_up_at=None if ends is None else NOW + ends,
    )


def of_budgets() -> list[Notice]:
    day, person = use(BudgetOf.DAY, 100, ends=timedelta(hours=5)), use(BudgetOf.PERSON, 83.7, 2)
    stops = [
        (day,),
        (use(BudgetOf.SESSION, 120),),
        (use(BudgetOf.SESSION, 100), day),
        (use(BudgetOf.PERSON, 40, 1, timedelta(seconds=30)),),
        (use(BudgetOf.PERSON, 100, ends=timedelta(minutes=59)),),
    ]
    warnings = [(person,), (use(BudgetOf.SESSION, 99.9), person)]
    return [
        *map(texts.budget_warning, warnings),
        *(texts.budget_stop(Stop(reached=one, uses=one), NOW, VIENNA) for one in stops),
    ]


def of_resets() -> list[Notice]:
    reasons = [None, *EndReason]
    keys = ["agent:main:telegram:dm:7", key_at_account("agent:main:telegram:dm:7", "support")]
    return [texts.reset_notice(_entry(reason, key)) for reason in reasons for key in keys]


def _entry(reason: EndReason | None, key: str) -> SessionEntry:
    return SessionEntry(
        session_key=key,
        session_id="s2",
        created_at=NOW,
        updated_at=NOW,
        last_interaction_at=NOW,
        opened_by=reason,
        previous_session_id="s1",
    )


def of_commands() -> list[Notice]:
    new = commands.CommandHelp(name="new", summary="Begin.", usage="[title]", aliases=("reset", "fresh"))
    stop = commands.CommandHelp(name="stop", summary="Stop.")
    return [
        commands.not_allowed("model"),
        commands.went_wrong("ping"),
        commands.took_too_long("ping"),
        commands.stop_answer(running=False, cancelled=0),
        commands.stop_answer(running=True, cancelled=0),
        commands.stop_answer(running=True, cancelled=1),
        commands.NOTHING_TO_RETRY,
        commands.RETRIED_LATER,
        commands.invalid_turn_count(100),
        commands.undone_answer(1, "who are you?"),
        commands.undone_answer(2, "two\nlines " + "x" * 500),
        commands.NO_COMPRESSOR,
        commands.COMPRESSING,
        commands.NOTHING_TO_COMPRESS,
        commands.NOT_COMPRESSED,
        commands.compressed_answer(messages=1, before=1200, original_id="s1"),
        commands.GREETING,
        commands.help_list([new, stop]),
        commands.help_for_command(new),
        commands.help_for_command(stop),
        commands.unknown_command_answer("/nonsense"),
    ]


def of_the_queue() -> list[Notice]:
    items = [
        _waiting(1, "runs", running=True),
        _waiting(2, "one", chat_type="group"),
        _waiting(3, "joined", merged_into=2),
        _waiting(4, ""),
    ]
    return [
        commands.queue_list(()),
        commands.queue_list(items),
        commands.queue_list([_waiting(seq, f"message {seq}") for seq in range(25)]),
        commands.taken_out_answer(1),
        commands.queue_cleared_answer(2),
        commands.unknown_number_answer(9),
    ]


def _waiting(seq: int, text: str, *, chat_type: str = "dm", **more: Any) -> QueuedMessage:
    source = SessionSource(
        platform="telegram", chat_id="7", chat_type=chat_type, user_id="ann", user_name="Ann"
    )
    photo = Attachment(kind=AttachmentKind.PHOTO, url="file:a.jpg")
    message = InboundMessage(source=source, text=text, attachments=() if text else (photo,))
    return QueuedMessage(seq=seq, session_key="k", message=message, admitted_at=NOW, **more)


def of_the_status() -> list[Notice]:
    busy = commands.Situation(
        session_id="s1",
        title="Rome",
        messages=1003,
        model="gpt",
        running_for=timedelta(seconds=125),
        doing="searching",
        waiting=2,
        next_reset=NOW.astimezone(VIENNA),
    )
    stopping = commands.Situation(session_id="s1", running_for=timedelta(), stopping=True, waiting=1)
    return [
        commands.status_answer(commands.Situation(session_id=None)),
        commands.status_answer(commands.Situation(session_id="s1")),
        commands.status_answer(busy),
        commands.status_answer(stopping),
    ]


def of_sessions() -> list[Notice]:
    def summary(session_id: str, title: str | None = None, preview: str = "") -> SessionSummary:
        ago = NOW - timedelta(hours=2)
        return SessionSummary(
            session_id, "telegram", title, preview, ago, ago, session_id, message_count=1200
        )

    listed = [summary("s1", "Rome"), summary("s2", preview="hello"), summary("s3")]
    return [
        commands.NO_CONVERSATION,
        sessions.conversation_begins(None),
        sessions.conversation_begins("Rome"),
        sessions.new_conversation(None, NONE_ENDED),
        sessions.new_conversation("Rome", BOTH_ENDED),
        sessions.reset_undone(ROME, BOTH_ENDED),
        sessions.branched(ROME, NONE_ENDED, "s0"),
        sessions.branched(NAMELESS, BOTH_ENDED, None),
        sessions.resumed(NAMELESS, NONE_ENDED),
        sessions.already_here(ROME),
        sessions.session_list([], None, NOW),
        sessions.session_list(listed, "s2", NOW),
        sessions.title_set("Rome"),
        sessions.title_shown("Rome", "s1"),
        sessions.title_shown(None, "s1"),
        sessions.model_shown("gpt"),
        sessions.model_shown(None),
        sessions.model_set("gpt"),
        sessions.model_set(None),
        sessions.invalid_model(200),
    ]


def of_errors() -> list[Notice]:
    two = [SessionCandidate("s1", "Rome", "telegram"), SessionCandidate("s2", None, "telegram")]
    errors: list[GatewaySessionsError] = [
        AmbiguousSessionError("s", two),
        SessionNotFoundError("Oslo"),
        TitleTakenError("Rome", "s1"),
        InvalidTitleError(101, 100),
        InvalidInputError("an hour has 60 minutes"),
        SessionBusyError("agent:main", "s1"),
        NothingToUndoError("agent:main", "why"),
        SessionEndedError("s1", "idle"),
        StorageError("/state.db", "is locked"),
        GatewaySessionsError("nobody knows you yet"),
    ]
    return [error_reply(error) for error in errors]


# Our words, from the arguments alone

Given = Mapping[str, Any]
WHOSE: Final = {
    "session": "the budget of this conversation",
    "person": "your budget for today",
    "day": "today's budget for everybody",
}
WHY: Final = {
    "idle": "there was nothing new for a while",
    "daily": "a new day has begun",
    "cron": "it was time for it",
    "suspended": "the one before was stopped",
    "resume_pending_expired": "the one before was cut off too long ago to go on with",
    "moved": "the one before goes on somewhere else",
}
DEMOTED: Final = {
    None: "",
    "sub_work": " Work is under way that must not be cut off; /stop ends it all the same.",
    "cannot_steer": " It cannot be passed on to what I am working on.",
}


def words_of(notice: Notice) -> str:
    """Our words for a notice, made from its code and its arguments, as another program has to make them."""
    make = WORDS.get(notice.code)
    return CONSTANT[notice.code] if make is None else make(notice.arguments)


def plain(code: str, notice: Notice) -> str:
    """Return the text of a notice that has no arguments."""
    assert not notice.arguments, code
    return OutboundMessage(text=notice).text


def after(given: Given) -> str:
    others = given["others"]
    return f"after {others} other{'s' if others > 1 else ''}" if others else ""


def queued(given: Given) -> str:
    before = f", {after(given)}" if given["others"] else ""
    return f"Queued: I will answer this when I am done{before}.{DEMOTED[given['demotion']]}"


def stopping(begin: str, otherwise: str) -> Callable[[Given], str]:
    def words(given: Given) -> str:
        return f"{begin}. I will answer this {after(given)}." if given["others"] else f"{begin}{otherwise}"

    return words


def dropped(given: Given) -> str:
    messages = given["messages"]
    what = "a message of yours" if messages == 1 else f"{messages} messages of yours"
    return f"Too many messages wait here: {what} had to make room, and will not be answered."


def cut_off(given: Given) -> str:
    ago = duration_in_words(timedelta(seconds=given["seconds_ago"]))
    assert datetime.fromisoformat(given["since"]) == NOW - timedelta(seconds=given["seconds_ago"])
    return (
        f"I was cut off while I worked on your last message, {ago} ago, and I did not begin again by myself. "
        "It is kept; /retry tries it again."
    )


def nearly_used_up(given: Given) -> str:
    said: list[str] = []
    for one in given["budgets"]:
        used = f"{one['percent']} % of {WHOSE[one['budget']]} is used"
        doubt = "; of some of it nobody knows the price." if one["has_unknown_prices"] else "."
        said.append(f"{'At least ' if one['has_unknown_prices'] else ''}{used}{doubt}")
    return " ".join(said)


def used_up(given: Given) -> str:
    why = [
        f"{WHOSE[one['budget']]} is used up"
        if one["used_up"]
        else f"nobody knows how much of {WHOSE[one['budget']]} is used"
        for one in given["budgets"]
    ]
    return (
        f"I did not work on that: {' and '.join(why)}. {goes_on(given)} Please send your message again then."
    )


def goes_on(given: Given) -> str:
    if given["goes_on_at"] is None:
        assert given["needs_new_conversation"]
        return "/new begins a conversation with a budget of its own."
    at, seconds = datetime.fromisoformat(given["goes_on_at"]), given["seconds_left"]
    unit, name = (3600, "hour") if seconds >= 7200 else (60, "minute")
    left = "in less than a minute" if seconds < 60 else f"in {round(seconds / unit)} {name}s"
    where = ", in a conversation that /new begins" if given["needs_new_conversation"] else ""
    return f"It goes on at {at:%H:%M} ({given['zone']}), {left}{where}."


def reset(given: Given) -> str:
    back = "/undo-reset brings the one before back."
    if given["reason"] == "moved":
        if_here = "" if given["previous_is_here"] else " if it is here"
        back = f"/resume {given['previous_session_id']} brings it back{if_here}."
    return f"This is a new conversation, because {WHY.get(given['reason'], 'of a rule')}. {back}"


def quoted(text: str) -> str:
    return f"“{text}”"


def dropped_too(cancelled: int) -> str:
    were = "was" if cancelled == 1 else "were"
    what = counted(cancelled, "waiting message")
    return f" {what} {were} dropped, and will not be answered." if cancelled else ""


def ended(given: Given) -> str:
    return f"{' I stopped what I was doing.' if given['stopped'] else ''}{dropped_too(given['cancelled'])}"


def compressed(given: Given) -> str:
    messages = counted(given["messages"], "message")
    return (
        f"Compressed: this conversation goes on with {messages} in the place of {given['before']}. "
        f"The original stays readable, as {given['original_id']}."
    )


def queue(given: Given) -> str:
    lines = ["These wait, the next one first:"]
    for one in given["waiting"]:
        what = quoted(one["text"]) if one["text"] else counted(one["attachments"], "attachment")
        who = f"{one['user_name']}: " if one["user_name"] else ""
        joined = f" and {one['joined']} more" if one["joined"] else ""
        lines.append(f"#{one['number']} {who}{what}{joined}")
    if given["more"]:
        lines.append(f"and {counted(given['more'], 'more message')}")
    return "\n".join(lines)


def status(given: Given) -> str:
    now = "idle"
    if given["running_seconds"] is not None:
        doing = f", {quoted(given['doing'])}" if given["doing"] else ""
        length = duration_in_words(timedelta(seconds=given["running_seconds"]))
        now = f"{'stopping' if given['stopping'] else 'working'}, for {length}{doing}"
    waiting = counted(given["waiting"], "message") if given["waiting"] else "nothing"
    lines = [f"Now: {now}", f"Waiting: {waiting}"]
    if given["session_id"] is None:
        return "\n".join([*lines, CONSTANT["no_conversation"]])
    called = f"{quoted(given['title'])}, " if given["title"] else ""
    reset_at = "none"
    if given["next_reset"] is not None:
        reset_at = f"{datetime.fromisoformat(given['next_reset']):%Y-%m-%d %H:%M} {given['zone']}"
    lines += [
        f"Conversation: {called}{given['session_id']}, {counted(given['messages'], 'message')}",
        f"Model: {given['model'] or 'default'}",
        f"Next reset: {reset_at}",
    ]
    return "\n".join(lines)


def help_line(given: Given) -> str:
    call = f"/{given['name']} {given['usage']}".rstrip()
    return f"{call}: {given['summary']}"


def help_one(given: Given) -> str:
    others = ", ".join(f"/{name}" for name in given["aliases"])
    return f"{help_line(given)}{f' Also called {others}.' if others else ''}"


def titled(given: Given) -> str:
    return f", {quoted(given['title'])}" if given["title"] is not None else ""


def session(given: Given) -> str:
    name = quoted(given["title"]) if given["title"] else given["session_id"]
    return f"{name}, {counted(given['messages'], 'message')}"


def new_conversation(given: Given) -> str:
    return f"This is a new conversation{titled(given)}.{ended(given)} /undo-reset brings the one before back."


def branched(given: Given) -> str:
    back = f" /resume {given['original_id']} goes back to the original." if given["original_id"] else ""
    return f"From here on this is a copy: {session(given)}.{ended(given)}{back}"


def listed(given: Given) -> str:
    lines = ["/resume and a number goes on with one of these:"]
    for number, one in enumerate(given["sessions"], 1):
        shown = one["title"] or one["preview"]
        name = quoted(shown) if shown else one["session_id"]
        assert datetime.fromisoformat(one["last_active"]) == NOW - timedelta(seconds=one["seconds_ago"])
        ago = ago_in_words(datetime.fromisoformat(one["last_active"]), NOW)
        here = " (this one)" if one["is_current"] else ""
        lines.append(f"{number}. {name}, {counted(one['messages'], 'message')}, {ago}{here}")
    return "\n".join(lines)


def title(given: Given) -> str:
    called = f"is called {quoted(given['title'])}" if given["title"] else "has no title"
    return f"This conversation {called}. Its id is {given['session_id']}."


def model_set(given: Given) -> str:
    which = "the default model" if given["model"] is None else f"the model {given['model']}"
    return f"From the next turn on, this conversation has {which}."


def ambiguous(given: Given) -> str:
    lines = [f"- {one['session_id']} ({one['title'] or 'no title'})" for one in given["sessions"]]
    return "\n".join([f"{quoted(given['wanted'])} could be any of these; give the whole id:", *lines])


ERRORS: Final = {
    "InvalidInputError": "An hour has 60 minutes.",
    "GatewaySessionsError": "Nobody knows you yet.",
}
"""By the names of errors, words of a program for them."""
WORDS: Final[Mapping[str, Callable[[Given], str]]] = {
    "queued": queued,
    "stopping": stopping("Stopping what I was doing", ", and turning to this."),
    "taking_back": stopping("Taking back what I was doing", ", and starting again with this."),
    "dropped": dropped,
    "not_carried_out": lambda given: (
        f"I was restarted while I carried out /{given['command']}: nobody knows whether it was done."
    ),
    "cut_off": cut_off,
    "budget_nearly_used_up": nearly_used_up,
    "budget_used_up": used_up,
    "reset": reset,
    "command_not_allowed": lambda given: f"You may not use /{given['command']} here.",
    "command_failed": lambda given: (
        f"Something went wrong with /{given['command']}. It may not have been carried out."
    ),
    "command_took_too_long": lambda given: (
        f"/{given['command']} took too long, so I stopped it. It may not have been carried out."
    ),
    "stopped": lambda given: f"Stopped.{dropped_too(given['cancelled'])}",
    "undone": lambda given: f"Took back {counted(given['turns'], 'turn')}, from “{given['first_text']}” on.",
    "compressed": compressed,
    "queue_list": queue,
    "taken_out": lambda given: f"Took {counted(given['messages'], 'message')} out.",
    "queue_cleared": lambda given: f"Took {counted(given['messages'], 'waiting message')} out.",
    "unknown_number": lambda given: (
        f"Nothing with the number {given['number']} waits here. /queue list shows what does."
    ),
    "status": status,
    "help": lambda given: "\n".join(map(help_line, given["commands"])),
    "help_for_command": help_one,
    "unknown_command": lambda given: f"There is no command “{given['wanted']}”. /help lists them.",
    "conversation_begins": lambda given: f"A new conversation begins{titled(given)}.",
    "new_conversation": new_conversation,
    "reset_undone": lambda given: f"The conversation from before is back: {session(given)}.{ended(given)}",
    "branched": branched,
    "resumed": lambda given: f"Back in {session(given)}.{ended(given)}",
    "already_here": lambda given: f"You are in it already: {session(given)}.",
    "session_list": listed,
    "title_set": lambda given: f"This conversation is called “{given['title']}”.",
    "title": title,
    "model": lambda given: f"The model here is {given['model'] or 'the default one'}.",
    "model_set": model_set,
    "ambiguous_session": ambiguous,
    "unknown_session": lambda given: (
        f"I know no conversation of yours by “{given['wanted']}”. /resume lists them."
    ),
    "title_taken": lambda given: (
        f"Another conversation is called “{given['title']}” already; choose another title."
    ),
    "invalid_title": lambda given: (
        f"The title must have 1 to {given['most']} characters, and that one has {given['length']}."
    ),
    "invalid_turn_count": lambda given: f"Give a number of turns from 1 to {given['most']}.",
    "invalid_model": lambda given: (
        f"Give the name of a model: one word of up to {given['most']} characters, or default."
    ),
    "invalid_argument": lambda given: ERRORS[given["error"]],
    "command_error": lambda given: f"That did not work: {ERRORS[given['error']]}",
}
"""By code, our words made of arguments; all other notices have no arguments."""
CONSTANT: Final = {one.code: plain(one.code, one) for one in every_notice() if one.code not in WORDS}
"""By code, the words of the notices that have no arguments."""
