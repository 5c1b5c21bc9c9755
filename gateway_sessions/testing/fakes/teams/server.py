"""`FakeTeams`: a Bot Connector on loopback, with people, Teams' rules, and faults on request."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar, Final

from gateway_sessions.ports import Clock
from gateway_sessions.testing.fakes.faults import RefusedCall
from gateway_sessions.testing.fakes.http_server import FakeRequest, FakeResponse
from gateway_sessions.testing.fakes.platform_server import BotMessage
from gateway_sessions.testing.fakes.teams.chats import THREAD, TeamsChats, TeamsPerson, quotation
from gateway_sessions.testing.fakes.teams.connector import (
    BotConnector,
    TeamsRefusalError,
    attachments_of,
    buttons_of,
    shown_text,
)
from gateway_sessions.testing.fakes.token_issuer import FakeIssuer
from gateway_sessions.testing.fakes.webhook_platform import FakeWebhookPlatform, WebhookDelivery

ISSUER: Final = "https://api.botframework.com"
TOKEN_LIFE: Final = timedelta(hours=1)


class FakeTeams(FakeWebhookPlatform):
    """A fake of Teams with one bot."""

    # The Bot Connector repeats for a short while only.
    retry_schedule: ClassVar[Sequence[float]] = (1, 4, 10)

    def __init__(self, *, clock: Clock | None = None, **options: Any) -> None:
        super().__init__(clock=clock, **options)
        self.app_id: str = "0a1b2c3d-0000-4000-8000-00000000b07a"
        self.app_secret: str = "s3cr3t~Value.of-the_app"  # noqa: S105 -- this Teams is made up, too
        self.issuer: FakeIssuer = FakeIssuer(ISSUER, endorsements=["msteams", "skype"])
        self.chats: TeamsChats = TeamsChats(f"28:{self.app_id}", "Helper", self.clock)
        self.connector: BotConnector = BotConnector(self.chats)
        self.files: dict[str, bytes] = {}
        self.claims: dict[str, Any] = {}
        """The claims that a test changes in the tokens of activities; None leaves one out."""
        self.token_headers: dict[str, Any] = {}
        """The headers that a test changes in these tokens."""
        self.tokens_given: int = 0
        self._tokens: dict[str, datetime] = {}

    # Addresses

    @property
    def service_url(self) -> str:
        """The service that activities name."""
        return f"{self.url}/amer/"

    @property
    def openid_url(self) -> str:
        """The address of the metadata for the tokens of activities."""
        return f"{self.url}/v1/.well-known/openidconfiguration"

    # People

    def says(
        self,
        person: str,
        text: str,
        *,
        group: str | None = None,
        channel: str | None = None,
        thread: str | None = None,
        mentions: bool = True,
        answers: str | None = None,
        **members: Any,
    ) -> WebhookDelivery:
        """Let a person write: in private, in a group chat, or in a channel, where *thread* is a message's id.

        In groups and channels the text mentions the bot, unless told otherwise. *answers* is the id of a
        message that is quoted.
        """
        sender, chat = self.chats.person(person), self.chats.chat_of(person, group=group, channel=channel)
        message_id = self.chats.new_id()
        entities: list[Any] = []
        if chat.kind != "personal" and mentions:
            text, entities = f"<at>{self.chats.bot['name']}</at> {text}", [self.chats.mention()]
        root = (thread or message_id) if chat.kind == "channel" else ""
        if answers is not None:
            markup = quotation(answers, chat.messages[answers])
            members["attachments"] = [{"contentType": "text/html", "content": f"{markup}<p>{text}</p>"}]
        activity = self.chats.activity(
            self.service_url, sender, chat, root=root, type="message", id=message_id, text=text, **members
        )
        activity["textFormat"] = members.get("textFormat", "plain")
        activity["entities"] += entities
        chat.messages[message_id] = {**activity, "thread": root}
        return self.deliver(activity)

    def edits(self, delivery: WebhookDelivery, text: str) -> WebhookDelivery:
        """Let a person change what they wrote."""
        return self._changes(delivery, "messageUpdate", "editMessage", text=text)

    def deletes(self, delivery: WebhookDelivery) -> WebhookDelivery:
        """Let a person delete what they wrote."""
        return self._changes(delivery, "messageDelete", "softDeleteMessage", text=None)

    def sends_picture(self, person: str, content: bytes, *, text: str = "") -> WebhookDelivery:
        """Let a person paste a picture, whose content only the bot's token opens."""
        number = len(self.files)
        self.files[str(number)] = content
        address = f"{self.service_url}v3/attachments/{number}/views/original"
        picture = {"contentType": "image/*", "contentUrl": address}
        return self.says(
            person, text, attachments=[picture, {"contentType": "text/html", "content": "<img>"}]
        )

    def sends_file(self, person: str, name: str, *, url: str) -> WebhookDelivery:
        """Let a person send a file, which stands in their storage at an address."""
        content = {"downloadUrl": url, "uniqueId": "1", "fileType": name.rpartition(".")[2]}
        kind = "application/vnd.microsoft.teams.file.download.info"
        return self.says(person, "", attachments=[{"contentType": kind, "content": content, "name": name}])

    def presses(self, person: str, label: str, *, group: str | None = None) -> WebhookDelivery:
        """Let a person press the button of that label, on the last message that has one."""
        chat = self.chats.chat_of(person, group=group)
        for message_id, message in reversed(list(chat.messages.items())):
            for attachment in attachments_of(message):
                for button in buttons_of(attachment):
                    if button["title"] == label:
                        return self._press(self.chats.person(person), chat.id, message_id, button)
        problem = f"{person} sees no button {label!r}"
        raise AssertionError(problem)

    def happens(self, person: str, kind: str, **members: Any) -> WebhookDelivery:
        """Let an activity of another kind happen, such as a reaction."""
        chat = self.chats.chat_of(person)
        sender = self.chats.person(person)
        activity = self.chats.activity(self.service_url, sender, chat, root="", type=kind, **members)
        return self.deliver({"id": f"f:{self.chats.new_id()}", **activity})

    def removes_bot(self, *, group: str) -> None:
        """Let somebody remove the bot from a group chat."""
        self.chats.chat_of(group=group).has_bot = False

    def blocks(self, person: str) -> None:
        """Let a person block the bot."""
        self.chats.person(person).has_blocked_bot = True

    # What people see

    def texts(
        self,
        person: str = "",
        *,
        group: str | None = None,
        channel: str | None = None,
        thread: str | None = None,
    ) -> list[str]:
        """Return what the bot has said to a person, in a group chat, in a channel or one of its threads."""
        chat = self.chats.chat_of(person, group=group, channel=channel)
        return [
            shown_text(one)
            for one in list(chat.messages.values())
            if one["from"]["id"] == self.chats.bot["id"] and (thread is None or one["thread"] == thread)
        ]

    def shown(self, person: str = "", *, group: str | None = None) -> list[dict[str, Any]]:
        """Return the bot's messages as Teams keeps them."""
        chat = self.chats.chat_of(person, group=group)
        return [one for one in list(chat.messages.values()) if one["from"]["id"] == self.chats.bot["id"]]

    def bot_messages(self) -> Iterator[BotMessage]:
        """Yield all messages of the bot that people see, wherever they stand."""
        names = {self.chats.chat_of(name).id: name for name in list(self.chats.people)}
        for chat in list(self.chats.chats.values()):
            for message_id, message in list(chat.messages.items()):
                if message["from"]["id"] == self.chats.bot["id"]:
                    place = names.get(chat.id, f"#{chat.name}")
                    yield BotMessage(place, f"{chat.id} {message_id}", shown_text(message))

    def adapter_settings(self, folder: Path) -> dict[str, str]:
        """Return the keys of a configuration by which an adapter speaks with this fake."""
        account = {"app_id": self.app_id, "app_secret": self.app_secret, "tenant_id": self.chats.tenant}
        return {**account, "api_url": self.url}

    def withdraw_tokens(self) -> None:
        """Let all access tokens end."""
        self._tokens.clear()

    # The webhook

    def sign(self, delivery: WebhookDelivery, url: str) -> Mapping[str, str]:
        """Return the token for an activity."""
        now = int(self.clock.now().timestamp())
        try:
            service: object = json.loads(delivery.body).get("serviceUrl")
        except (ValueError, AttributeError, UnicodeDecodeError):
            service = self.service_url
        claims = {"aud": self.app_id, "nbf": now, "exp": now + 3600, "serviceurl": service, **self.claims}
        return {"authorization": f"Bearer {self.issuer.sign(claims, **self.token_headers)}"}

    def is_success(self, response: Any) -> bool:
        """Return whether the Bot Connector delivers no more: it accepts that nobody answers an invoke."""
        return bool(super().is_success(response)) or response.status == 501

    # The API

    def method_of(self, request: FakeRequest) -> str:
        """Return the name of a call."""
        if request.path.endswith("/oauth2/v2.0/token"):
            return "token"
        if "/v3/conversations/" in request.path:
            if request.method == "POST":
                typing = b'"type":"typing"' in request.body
                return "typing" if typing else "sendActivity"
            return {"PUT": "updateActivity", "DELETE": "deleteActivity"}[request.method]
        return request.path.rpartition("/")[2]

    def limited(self, retry_after: float) -> FakeResponse:
        """Return the answer that asks for a pause."""
        error = {"code": "TooManyRequests", "message": "API calls quota exceeded"}
        return FakeResponse.of_json({"error": error}, status=429, headers={"retry-after": f"{retry_after:g}"})

    def refused(self, refusal: RefusedCall) -> FakeResponse:
        """Return the answer that refuses."""
        return TeamsRefusalError(refusal.status, refusal.problem, refusal.problem).response

    async def api(self, method: str, request: FakeRequest, parameters: Mapping[str, Any]) -> FakeResponse:
        """Answer a call of the Bot Connector or the login service."""
        match method:
            case "token":
                return self._token(parameters)
            case "openidconfiguration":
                return FakeResponse.of_json({"issuer": ISSUER, "jwks_uri": f"{self.url}/v1/keys"})
            case "keys":
                return FakeResponse.of_json(self.issuer.key_set())
            case _:
                try:
                    return self._for_bot(method, request, parameters)
                except TeamsRefusalError as refusal:
                    return refusal.response

    def _for_bot(self, method: str, request: FakeRequest, activity: Mapping[str, Any]) -> FakeResponse:
        """Answer a call that only the bot may make."""
        if not self._is_authorized(request):
            raise TeamsRefusalError(401, "Unauthorized", "Authorization has been denied.")
        if method != "original":
            return self.connector.call(request, activity)
        content = self.files[request.path.split("/")[-3]]
        return FakeResponse(200, content, {"content-type": "image/png"})

    def _token(self, form: Mapping[str, Any]) -> FakeResponse:
        if form.get("grant_type") != "client_credentials" or "botframework" not in form.get("scope", ""):
            return _no_token(400, "invalid_request", "AADSTS900144: a parameter is missing")
        if form.get("client_id") != self.app_id:
            told = f"AADSTS700016: Application with identifier '{form.get('client_id')}' was not found"
            return _no_token(400, "unauthorized_client", told)
        if form.get("client_secret") != self.app_secret:
            told = (
                "AADSTS7000215: Invalid client secret provided. Ensure the secret is the value, not the id."
            )
            return _no_token(401, "invalid_client", told)
        self.tokens_given += 1
        token = f"access.{self.tokens_given}"
        self._tokens[token] = self.clock.now() + TOKEN_LIFE
        told_life = int(TOKEN_LIFE.total_seconds())
        return FakeResponse.of_json({"token_type": "Bearer", "expires_in": told_life, "access_token": token})

    def _is_authorized(self, request: FakeRequest) -> bool:
        ends = self._tokens.get(request.headers.get("authorization", "").removeprefix("Bearer "))
        return ends is not None and self.clock.now() < ends

    # Helpers of people

    def _changes(
        self, delivery: WebhookDelivery, kind: str, event: str, *, text: str | None
    ) -> WebhookDelivery:
        said = json.loads(delivery.body)
        self.chats.new_id()  # so that the time moves on
        chat, root = self.chats.find(said["conversation"]["id"])
        assert chat is not None
        person = next(one for one in self.chats.people.values() if one.id == said["from"]["id"])
        words = {"text": text, "textFormat": "plain"} if text is not None else {}
        return self.deliver(
            self.chats.activity(
                self.service_url,
                person,
                chat,
                root=root,
                type=kind,
                id=said["id"],
                channelData={"eventType": event},
                **words,
            )
        )

    def _press(
        self, person: TeamsPerson, chat_id: str, message_id: str, button: Mapping[str, Any]
    ) -> WebhookDelivery:
        chat = self.chats.chats[chat_id]
        what: dict[str, Any] = {"type": "message", "value": button.get("data", {})}
        if button["type"] == "Action.Execute":
            action = {"type": button["type"], "verb": button.get("verb"), "data": button.get("data", {})}
            what = {"type": "invoke", "name": "adaptiveCard/action", "value": {"action": action}}
        pressed_id = f"f:{self.chats.new_id()}"
        return self.deliver(
            self.chats.activity(
                self.service_url, person, chat, root="", id=pressed_id, replyToId=message_id, **what
            )
        )


def _no_token(status: int, error: str, told: str) -> FakeResponse:
    return FakeResponse.of_json({"error": error, "error_description": told}, status=status)


__all__ = ["THREAD", "FakeTeams"]
