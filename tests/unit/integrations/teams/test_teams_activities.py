"""Which message an activity of Teams brings, and who may send it."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime
from typing import Any

import pytest

from gateway_sessions.adapters import AttachmentKind, InboundMessage, MessageKind, ReplyTarget
from gateway_sessions.adapters.group_talk import GroupRules, GroupTalk, as_group_rules
from gateway_sessions.adapters.webhooks import PassedOver, PlatformAnswer, Request, Verdict
from gateway_sessions.errors import InvalidInputError
from gateway_sessions.integrations.teams.activities import (
    TeamsReadingRules,
    UnreadableActivityError,
    is_press,
    read_activity,
    read_head,
)
from gateway_sessions.integrations.teams.platform import TeamsPlatform
from gateway_sessions.integrations.teams.settings import (
    PUBLIC_CLOUD,
    US_GOVERNMENT,
    TeamsCloud,
    TeamsSettings,
    origin_of,
)
from gateway_sessions.testing.fakes.token_issuer import FakeIssuer
from tests.unit.adapters.webhooks.fuzz import NOW, assert_survives

SERVICE = "https://smba.trafficmanager.net/amer/"
BOT = {"id": "28:app", "name": "Helper"}
MENTION = {"type": "mention", "mentioned": BOT, "text": "<at>Helper</at>"}
JANE = {"type": "mention", "mentioned": {"id": "29:jane", "name": "Jane Doe"}, "text": "<at>Jane</at>"}
FILE = "application/vnd.microsoft.teams.file.download.info"
QUOTE = (
    '<blockquote itemscope itemtype="http://schema.skype.com/Reply" itemid="1700">'
    '<strong itemprop="mri" itemid="{author}">Ann &amp; Bob</strong><span itemprop="time"></span>'
    '<p itemprop="preview">less &lt; <b>more</b></p></blockquote><p>yes</p>'
)


def activity(**changes: Any) -> dict[str, Any]:
    return {
        "type": "message",
        "id": "1764",
        "timestamp": "2026-11-20T12:00:00.1234567Z",
        "channelId": "msteams",
        "serviceUrl": SERVICE,
        "from": {"id": "29:ann", "name": "Ann", "aadObjectId": "0000-ann"},
        "recipient": BOT,
        "conversation": {"id": "a:1", "conversationType": "personal", "tenantId": "t"},
        "text": "hello",
        "textFormat": "plain",
        "entities": [{"type": "clientInfo", "locale": "en-US", "country": "US"}],
        "attachments": [{"contentType": "text/html", "content": "<p>hello</p>"}],
        "channelData": {"tenant": {"id": "t"}},
        **changes,
    }


def in_channel(**changes: Any) -> dict[str, Any]:
    place = {"id": "19:c@thread.tacv2;messageid=1700", "conversationType": "channel", "isGroup": True}
    data = {"channel": {"id": "19:c@thread.tacv2", "name": "General"}, "team": {"id": "19:team"}}
    return activity(**{"conversation": place, "channelData": data, "entities": [MENTION], **changes})


def read(update: dict[str, Any], groups: Any = "mention", **rules: Any) -> InboundMessage | None:
    return read_activity(
        json.dumps(update).encode(), TeamsReadingRules(groups=as_group_rules(groups), **rules)
    )


def message_of(update: dict[str, Any], **rules: Any) -> InboundMessage:
    message = read(update, **rules)
    assert message is not None
    return message


# Where and who


def test_a_private_message_tells_who_where_and_when():
    message = message_of(activity(), account="sales")
    source = message.source
    assert (message.text, message.message_id, message.account) == ("hello", "1764", "sales")
    assert (source.platform, source.chat_id, source.chat_type) == ("teams", "a:1", "dm")
    assert (source.user_id, source.participant_id, source.user_name) == ("29:ann", "0000-ann", "Ann")
    assert message.sent_at == datetime(2026, 11, 20, 12, 0, 0, 123457, UTC)
    assert message.metadata == {"service_url": SERVICE}
    assert not source.is_bot


def test_a_thread_of_a_channel_is_a_place_of_its_own():
    source = message_of(in_channel(text="<at>Helper</at>&nbsp;hi")).source
    assert (source.chat_id, source.thread_id, source.chat_type) == ("19:c@thread.tacv2", "1700", "channel")
    assert (source.guild_id, source.chat_name) == ("19:team", "General")


@pytest.mark.parametrize(
    ("conversation", "kind"),
    [
        ({"id": "1", "conversationType": "groupChat"}, "group"),
        ({"id": "1", "conversationType": "something new"}, "group"),
        ({"id": "1", "isGroup": True}, "group"),
        ({"id": "1"}, "dm"),
    ],
)
def test_kinds_of_chats(conversation: dict[str, Any], kind: str):
    message = message_of(activity(conversation=conversation), groups=GroupTalk.ALL)
    assert message.source.chat_type == kind


@pytest.mark.parametrize("sender", [{"id": "28:other"}, {"id": "29:x", "role": "bot"}])
def test_another_bot_is_one(sender: dict[str, Any]):
    assert message_of(activity(**{"from": sender})).source.is_bot


# For whom


def test_in_a_group_only_what_addresses_the_bot_is_for_it():
    group = {"id": "19:g@thread.v2", "conversationType": "groupChat"}
    mine = {"contentType": "text/html", "content": QUOTE.format(author="28:app")}
    theirs = {"contentType": "text/html", "content": QUOTE.format(author="8:orgid:bob")}
    talk = activity(conversation=group, text="talk")
    assert read(talk) is None
    assert read({**talk, "entities": [JANE]}) is None
    assert read({**talk, "attachments": [theirs]}) is None
    assert read({**talk, "attachments": [mine]}) is not None
    assert read({**talk, "entities": [MENTION]}) is not None
    assert read({**talk, "text": None, "value": {"action": "go"}}) is not None
    assert read({**talk, "type": "messageUpdate"}) is not None
    assert read(talk, groups=GroupTalk.ALL) is not None


def test_what_people_say_to_each_other_is_observed_if_that_is_wanted():
    observing = GroupRules("mention", observe=True)
    group = {"id": "19:g@thread.v2", "conversationType": "groupChat"}
    talk = activity(conversation=group, text="talk")
    assert message_of(talk, groups=observing).observed
    assert read(talk) is None
    assert not message_of({**talk, "entities": [MENTION]}, groups=observing).observed
    assert not message_of({**talk, "type": "messageUpdate"}, groups=observing).observed
    assert not message_of(activity(text="talk"), groups=observing).observed


def test_what_the_bot_says_itself_is_not_for_it():
    assert read(activity(**{"from": BOT})) is None


# What


@pytest.mark.parametrize(
    ("text", "read_as"),
    [
        ("<at>Helper</at> hello", "hello"),
        ("<at>Helper</at>\xa0hello", "hello"),
        ("<at>Helper</at>, hello", "hello"),
        ("hello <at>Helper</at>", "hello"),
        ("hello <at>Helper</at> you", "hello @Helper you"),
        ("ask <at>Jane</at> <at>Helper</at>", "ask @Jane Doe"),
        ("<at>Nobody</at> hello", "<at>Nobody</at> hello"),
        ("a <b>&amp;</b> b", "a <b>&amp;</b> b"),
    ],
)
def test_mentions_are_read_as_people_read_them(text: str, read_as: str):
    assert message_of(activity(text=text, entities=[MENTION, JANE])).text == read_as


def test_xml_is_read_as_its_words():
    assert message_of(activity(text="<b>a</b> &lt; b", textFormat="xml")).text == "a < b"


def test_a_mention_without_a_name_is_read_as_its_text():
    nameless = {**JANE, "mentioned": {"id": "29:jane"}}
    assert message_of(activity(text="<at>Jane</at>?", entities=[nameless])).text == "@Jane?"


def test_edits_are_numbered_by_their_time_and_deletions_name_their_message():
    first = message_of(activity(type="messageUpdate", text="one"))
    second = message_of(activity(type="messageUpdate", text="two", timestamp="2026-11-20T12:00:00.124"))
    assert (first.kind, first.message_id) == (MessageKind.EDIT, "1764")
    assert (first.revision, second.revision) == (1795176000123, 1795176000124)
    deletion = message_of(activity(type="messageDelete", text=None, attachments=None))
    assert (deletion.kind, deletion.message_id, deletion.text) == (MessageKind.DELETE, "1764", "")


def test_an_edit_without_a_time_is_not_counted():
    assert message_of(activity(type="messageUpdate", timestamp=None)).revision == 0


def test_pictures_and_files_come_by_their_addresses():
    picture = {"contentType": "image/*", "contentUrl": f"{SERVICE}v3/attachments/0/views/original"}
    photo = {"contentType": "image/png", "contentUrl": "https://x/1", "name": "p.png"}
    report = {"downloadUrl": "https://contoso.sharepoint.com/1", "fileType": "docx"}
    song = {"downloadUrl": "https://contoso.sharepoint.com/2"}
    found = [
        picture,
        photo,
        {"contentType": "video/mp4", "contentUrl": "https://x/2"},
        {"contentType": "x/y"},
    ]
    found += [{"contentType": FILE, "content": report, "name": "report.docx"}]
    found += [{"contentType": FILE, "content": song, "name": "song.MP3"}, {"contentType": "image/png"}]
    kinds = message_of(activity(text="", attachments=found)).attachments
    assert [(one.kind, one.media_type, one.name) for one in kinds] == [
        (AttachmentKind.PHOTO, None, None),
        (AttachmentKind.PHOTO, "image/png", "p.png"),
        (AttachmentKind.VIDEO, "video/mp4", None),
        (AttachmentKind.DOCUMENT, None, "report.docx"),
        (AttachmentKind.AUDIO, None, "song.MP3"),
    ]
    assert kinds[3].url == "https://contoso.sharepoint.com/1"


def test_a_sticker_comes_as_html():
    sticker = {
        "contentType": "text/html",
        "content": '<p><img alt="hi" src="https://g.com/1.gif?a=1&amp;b=2"></p>',
    }
    (found,) = message_of(activity(text="", attachments=[sticker])).attachments
    assert (found.kind, found.url) == (AttachmentKind.STICKER, "https://g.com/1.gif?a=1&b=2")


def test_an_answer_quotes_the_message_it_answers():
    quote = {"contentType": "text/html", "content": QUOTE.format(author="28:app")}
    reply = message_of(activity(attachments=[quote])).reply_to
    assert reply is not None
    assert (reply.message_id, reply.text, reply.own) == ("1700", "less < more", True)
    assert (reply.author_id, reply.author_name) == ("28:app", "Ann & Bob")


def test_an_answer_without_words_or_author_is_one_all_the_same():
    bare = '<blockquote itemtype="http://schema.skype.com/Reply" itemid="1700"></blockquote>'
    reply = message_of(activity(attachments=[{"contentType": "text/html", "content": bare}])).reply_to
    assert reply is not None
    assert (reply.message_id, reply.text, reply.author_id, reply.own) == ("1700", None, None, False)


def test_the_root_of_a_thread_is_not_what_is_answered():
    assert message_of(in_channel(replyToId="1700")).reply_to is None
    reply = message_of(in_channel(replyToId="1701")).reply_to
    assert reply is not None
    assert (reply.message_id, reply.own) == ("1701", False)


# Buttons


def execute(**action: Any) -> dict[str, Any]:
    value = {"action": {"type": "Action.Execute", **action}, "trigger": "manual"}
    return activity(type="invoke", name="adaptiveCard/action", value=value, text=None, replyToId="1700")


@pytest.mark.parametrize(
    ("update", "action", "text"),
    [
        (activity(text=None, value={"action": "go", "label": "Go!"}), "go", "Go!"),
        (activity(text="Go", value={"action": "go"}), "go", "Go"),
        (activity(text=None, value={"x": 1}), '{"x":1}', '{"x":1}'),
        (activity(text=None, value="plain"), "plain", "plain"),
        (execute(verb="save", data={"x": 1}), "save", "save"),
        (execute(verb="save", data={"action": "go", "label": "Go!"}), "go", "Go!"),
        (execute(data={"action": ""}), '{"action":""}', '{"action":""}'),
    ],
)
def test_the_press_of_a_button_is_an_action(update: dict[str, Any], action: str, text: str):
    message = message_of(update)
    assert (message.action, message.text, message.kind) == (action, text, MessageKind.NEW)


def test_a_press_answers_the_message_with_the_button():
    reply = message_of(execute(verb="go")).reply_to
    assert reply is not None
    assert (reply.message_id, reply.own) == ("1700", True)


def test_presses_and_other_questions_are_told_apart():
    assert is_press(json.dumps(execute(verb="go")).encode())
    assert is_press(json.dumps(activity(type="invoke", name="task/fetch")).encode()) is False
    assert is_press(json.dumps({"type": "invoke", "name": 7}).encode()) is False
    assert is_press(json.dumps(activity()).encode()) is None


@pytest.mark.parametrize(
    "update",
    [
        activity(type="typing"),
        activity(type="conversationUpdate", membersAdded=[BOT], text=None),
        activity(type="messageReaction", reactionsAdded=[{"type": "like"}]),
        activity(type="invoke", name="task/fetch"),
        activity(
            text="", attachments=[{"contentType": "application/vnd.microsoft.card.hero", "content": {}}]
        ),
        execute(),
    ],
)
def test_what_brings_no_message_is_passed_over(update: dict[str, Any]):
    assert read(update) is None


@pytest.mark.parametrize(
    "raw",
    [
        *(b"", b"\xff", b"[", b"[]", b"{}", b'{"type": 7}', b"[" * 100_000, b'{"type": "message"}'),
        json.dumps(activity(text=7)).encode(),
        json.dumps(activity(id=None)).encode(),
        json.dumps(activity(id="\x00")).encode(),
        json.dumps(activity(attachments=[{"contentType": FILE, "content": 7}])).encode(),
        json.dumps(activity(timestamp="yesterday")).encode(),
    ],
)
def test_what_cannot_be_read_is_told(raw: bytes):
    with pytest.raises(UnreadableActivityError, match="an activity of Teams cannot be read"):
        read_activity(raw, TeamsReadingRules())


# Who may send it


class SignedTeams:
    """The part of a bot, with the keys of an issuer that signs for Teams."""

    def __init__(self, issuer: FakeIssuer | None = None, cloud: TeamsCloud = PUBLIC_CLOUD) -> None:
        self.issuer = issuer or FakeIssuer(PUBLIC_CLOUD.issuer, endorsements=["msteams"])
        settings = TeamsSettings(app_id="app", app_secret="secret", cloud=cloud)
        self.platform = TeamsPlatform(settings, TeamsReadingRules())
        self.verdict(activity())  # so that it knows the keys

    def request(self, update: object, **claims: Any) -> Request:
        body = update if isinstance(update, bytes) else json.dumps(update).encode()
        now = NOW.timestamp()
        given = {"aud": "app", "exp": now + 60, "nbf": now, "serviceurl": SERVICE, **claims}
        return Request("POST", "/teams", {"authorization": f"Bearer {self.issuer.sign(given)}"}, body)

    def verdict(self, update: object, **claims: Any) -> object:
        request = self.request(update, **claims)
        for _ in range(3):
            verification = self.platform.verify(request, NOW)
            if isinstance(verification, Verdict):
                return verification
            meta = {"jwks_uri": "https://login.botframework.com/v1/keys"}
            told = self.issuer.key_set() if verification.call.url.endswith("keys") else meta
            self.platform.learn(verification.call, PlatformAnswer(200, {}, json.dumps(told).encode()), NOW)
        return None


def test_a_genuine_activity_is_one():
    teams = SignedTeams()
    assert teams.verdict(activity()) is Verdict.GENUINE
    assert teams.verdict(activity(serviceUrl=SERVICE.rstrip("/"))) is Verdict.GENUINE
    assert teams.verdict(b"\xff") is Verdict.GENUINE  # it is put aside where it is read


@pytest.mark.parametrize(
    ("update", "claims", "problem"),
    [
        (activity(), {"aud": "other"}, "the token is for somebody else"),
        (activity(), {"iss": "https://sts.windows.net/x/"}, "of another issuer"),
        (activity(), {"exp": NOW.timestamp() - 400}, "expired"),
        (activity(), {"serviceurl": None}, "names another service than its token"),
        (activity(), {"serviceurl": 7}, "names another service than its token"),
        (activity(serviceUrl="https://evil.example/"), {}, "names another service than its token"),
        (activity(channelId="webchat"), {}, "of another channel"),
        (
            activity(serviceUrl="https://evil.example/"),
            {"serviceurl": "https://evil.example/"},
            "a service that is none of Teams'",
        ),
    ],
)
def test_a_forged_activity_is_refused_for_a_reason(
    update: dict[str, Any], claims: dict[str, Any], problem: str
):
    teams = SignedTeams()
    assert teams.verdict(update, **claims) is Verdict.FORGED
    assert problem in teams.platform.why_forged(teams.request(update, **claims), NOW)


def test_a_key_must_be_allowed_to_sign_for_teams():
    teams = SignedTeams(FakeIssuer(PUBLIC_CLOUD.issuer, endorsements=["webchat"]))
    assert teams.verdict(activity()) is Verdict.FORGED
    told = teams.platform.why_forged(teams.request(activity()), NOW)
    assert "a key that may not sign for Teams" in told


def test_an_activity_without_a_token_is_refused():
    request = Request("POST", "/teams", {}, json.dumps(activity()).encode())
    assert SignedTeams().platform.verify(request, NOW) is Verdict.FORGED


# Services


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("https://smba.trafficmanager.net/amer/", "https://smba.trafficmanager.net"),
        ("https://SMBA.trafficmanager.net:443/amer/", "https://smba.trafficmanager.net"),
        ("http://127.0.0.1:80/x", "http://127.0.0.1"),
        ("http://127.0.0.1:8080", "http://127.0.0.1:8080"),
        ("https://smba.trafficmanager.net.evil.example/", "https://smba.trafficmanager.net.evil.example"),
        *((odd, "") for odd in ("", "ftp://x/", "https://", "https:///x", "//x/", "x", "https://x:99999/")),
        *(
            (odd, "")
            for odd in ("https://a@b/", "https://a\\b/", "https://a b/", "https://é/", "https://[x/")
        ),
        ("https://smba.trafficmanager.net/../x", ""),
        ("https://a\n/", ""),
    ],
)
def test_the_origin_of_an_address(url: str, origin: str):
    assert origin_of(url) == origin


def test_only_services_of_the_cloud_may_be_called():
    public = TeamsSettings(app_id="a", app_secret="b")
    government = TeamsSettings(app_id="a", app_secret="b", cloud=US_GOVERNMENT)
    assert public.may_call("https://smba.trafficmanager.net/emea/")
    assert not public.may_call("http://smba.trafficmanager.net/emea/")
    assert not public.may_call("https://smba.trafficmanager.net:8443/")
    assert not public.may_call("https://169.254.169.254/latest/meta-data")
    assert not government.may_call("https://smba.trafficmanager.net/emea/")
    assert government.may_call(US_GOVERNMENT.service_url)
    assert public.may_call(PUBLIC_CLOUD.service_url)


def test_only_files_of_the_cloud_may_be_fetched():
    settings = TeamsSettings(app_id="a", app_secret="b")
    assert settings.may_fetch("https://contoso-my.sharepoint.com/personal/x?token=y")
    assert not settings.may_fetch("http://contoso.sharepoint.com/x")
    assert not settings.may_fetch("https://sharepoint.com.evil.example/x")
    assert not settings.may_fetch("https://contoso.sharepoint.com:8443/x")
    assert not settings.may_fetch("https://evilsharepoint.com/x")


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"app_id": ""}, "app_id is missing"),
        ({"app_secret": " x"}, "app_secret is missing, or has blanks"),
        ({"tenant_id": ""}, "tenant_id is missing"),
        ({"tenant_id": "a/../b"}, "tenant_id must be the tenant's id or its domain"),
    ],
)
def test_settings_that_cannot_work_are_told_at_once(changes: dict[str, str], problem: str):
    with pytest.raises(InvalidInputError, match=problem):
        TeamsSettings(**{"app_id": "a", "app_secret": "b", **changes})


def test_a_secret_is_not_shown():
    assert "hidden" not in repr(TeamsSettings(app_id="a", app_secret="hidden"))


# Fuzzing


class AnyService(TeamsPlatform):
    """Accepts what was made for another service: the fuzzing changes that as well."""

    def verify(self, request: Request, now: datetime) -> Any:
        verdict = super().verify(request, now)
        if verdict is not Verdict.FORGED:
            return verdict
        head = read_head(request.body)
        is_same = (head.service_url, head.channel_id) == (SERVICE, "msteams")
        return verdict if is_same else Verdict.GENUINE


def test_ten_thousand_broken_activities_lose_nothing():
    teams = SignedTeams()
    token = teams.request(activity()).headers
    teams.platform.__class__ = AnyService
    quote = {"contentType": "text/html", "content": QUOTE.format(author="28:app")}
    file = {"contentType": FILE, "content": {"downloadUrl": "https://x/1"}, "name": "a.docx"}
    updates = [
        activity(),
        in_channel(text="<at>Helper</at> hi", attachments=[quote, file]),
        activity(type="messageUpdate"),
        activity(type="messageDelete"),
        activity(text=None, value={"action": "go", "label": "Go"}),
        execute(verb="go", data={"action": "x"}),
        activity(type="conversationUpdate", membersAdded=[BOT]),
    ]
    recorded = [Request("POST", "/teams", {}, json.dumps(one).encode()) for one in updates]

    def sign(request: Request) -> Request:
        return Request(request.method, request.target, {**request.headers, **token}, request.body)

    seen = assert_survives(teams.platform, recorded, sign)
    assert min(seen[kind] for kind in ("InboundMessage", "PassedOver", "unreadable body")) > 300, Counter(
        seen
    )


def test_an_answer_goes_to_the_service_that_the_message_came_from():
    teams = SignedTeams()
    (message,) = teams.platform.parse(
        teams.request(activity(serviceUrl="https://smba.trafficmanager.net/in/"))
    )
    assert isinstance(message, InboundMessage)
    target = ReplyTarget.at(message.source)
    call = teams.platform.render_typing(target)
    assert call.url.startswith("https://smba.trafficmanager.net/in/v3/conversations/a%3A1/")
    other = teams.platform.render_typing(ReplyTarget(platform="teams", chat_id="a:2"))
    assert other.url.startswith(PUBLIC_CLOUD.service_url)
    (passed,) = teams.platform.parse(teams.request(activity(type="typing")))
    assert passed == PassedOver("typing")
