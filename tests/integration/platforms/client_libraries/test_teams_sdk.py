"""The fake Teams is proven with Microsoft's SDK: it reads activities, checks their tokens, and answers."""

from __future__ import annotations

import warnings
from dataclasses import replace

import jwt
import pytest
from microsoft_teams.api import (
    ActivityTypeAdapter,
    ApiClient,
    ClientCredentials,
    MessageActivity,
    MessageActivityInput,
    TypingActivityInput,
)
from microsoft_teams.api.auth.cloud_environment import PUBLIC, CloudEnvironment
from microsoft_teams.common import ClientOptions

from gateway_sessions.testing.fakes.http_server import FakeRequest
from gateway_sessions.testing.fakes.teams import FakeTeams
from tests.integration.platforms.client_libraries.webhook_catcher import caught_from

with warnings.catch_warnings():  # the SDK warns of its own previews when it is imported
    warnings.simplefilter("ignore")
    from microsoft_teams.apps.auth.token_validator import TokenValidator


def cloud_of(fake: FakeTeams) -> CloudEnvironment:
    return replace(PUBLIC, login_endpoint=fake.url, openid_metadata_url=fake.openid_url)


def token_of(request: FakeRequest) -> str:
    return request.headers["authorization"].removeprefix("Bearer ")


async def test_it_reads_activities_and_accepts_their_tokens():
    async with FakeTeams() as fake, caught_from(fake) as requests:
        validator = TokenValidator.for_service(fake.app_id, cloud=cloud_of(fake))
        stranger = TokenValidator.for_service("another-app", cloud=cloud_of(fake))
        fake.says("ann", "hello", group="team")
        request = await requests.get()
        activity = ActivityTypeAdapter.validate_json(request.body)
        assert isinstance(activity, MessageActivity)
        assert (activity.text, activity.from_.name) == ("<at>Helper</at> hello", "ann")
        assert activity.is_recipient_mentioned()
        claims = await validator.validate_token(token_of(request), activity.service_url)
        assert claims["aud"] == fake.app_id
        with pytest.raises(jwt.InvalidTokenError):
            await stranger.validate_token(token_of(request))


@pytest.mark.filterwarnings("ignore:The bot client:DeprecationWarning")  # the SDK makes one itself
async def test_its_client_signs_in_sends_changes_and_deletes():
    async with FakeTeams() as fake, caught_from(fake) as requests:
        fake.says("ann", "hello")
        activity = ActivityTypeAdapter.validate_json((await requests.get()).body)
        login = ApiClient(fake.service_url, cloud=cloud_of(fake))
        credentials = ClientCredentials(
            client_id=fake.app_id, client_secret=fake.app_secret, tenant_id=fake.chats.tenant
        )
        token = (await login.bots.token.get(credentials)).access_token
        api = ApiClient(activity.service_url, ClientOptions(token=token))
        chat, conversation = api.conversations, activity.conversation.id
        await chat.create_activity(conversation, TypingActivityInput())
        sent = await chat.create_activity(conversation, MessageActivityInput(text="good day"))
        await chat.update_activity(conversation, sent.id, MessageActivityInput(text="good evening"))
        assert fake.texts("ann") == ["good evening"]
        assert fake.connector.typing == [conversation]
        await chat.delete_activity(conversation, sent.id)
        assert fake.texts("ann") == []
