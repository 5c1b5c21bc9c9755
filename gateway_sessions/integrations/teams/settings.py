"""The settings of a bot on Teams: its registration, its cloud, and the hosts that may be called."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final
from urllib.parse import SplitResult, urlsplit

from gateway_sessions.errors import InvalidInputError
from gateway_sessions.integrations.tokens.access_token import check_identity

ANY_TENANT: Final = "botframework.com"
"""The tenant that gives tokens to bots of several tenants."""
CHANNEL: Final = "msteams"
"""The channel of the Bot Framework that is Teams."""

_PORTS: Final = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamsCloud:
    """The addresses of one cloud of Microsoft."""

    login_url: str = "https://login.microsoftonline.com"
    scope: str = "https://api.botframework.com/.default"
    issuer: str = "https://api.botframework.com"
    """The issuer of the tokens that come with activities."""
    openid_url: str = "https://login.botframework.com/v1/.well-known/openidconfiguration"
    service_url: str = "https://smba.trafficmanager.net/teams/"
    """The service for a conversation from which no activity has come yet."""
    service_origins: frozenset[str] = frozenset(
        {"https://smba.trafficmanager.net", "https://smba.infra.gcc.teams.microsoft.com"}
    )
    """The services to which calls and the bot's access token may go, whatever an activity says."""
    file_hosts: tuple[str, ...] = (".sharepoint.com",)
    """The ends of the hosts from which files of people are fetched; without a token."""

    @classmethod
    def at(cls, url: str) -> TeamsCloud:
        """Return a cloud whose services all stand at one address, as those of a fake do."""
        return cls(
            login_url=url,
            openid_url=f"{url}/v1/.well-known/openidconfiguration",
            service_url=f"{url}/teams/",
            service_origins=frozenset({origin_of(url)}),
        )


PUBLIC_CLOUD: Final = TeamsCloud()
US_GOVERNMENT: Final = TeamsCloud(
    login_url="https://login.microsoftonline.us",
    scope="https://api.botframework.us/.default",
    issuer="https://api.botframework.us",
    openid_url="https://login.botframework.azure.us/v1/.well-known/openidconfiguration",
    service_url="https://smba.infra.gov.teams.microsoft.us/teams/",
    service_origins=frozenset(
        {"https://smba.infra.gov.teams.microsoft.us", "https://smba.infra.dod.teams.microsoft.us"}
    ),
    file_hosts=(".sharepoint.us",),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamsSettings:
    """The registration of a bot, as Azure shows it."""

    app_id: str
    """The id of the app; activities must be signed for it."""
    app_secret: str = field(repr=False)
    """A client secret of the app: its value, not its id."""
    tenant_id: str = ANY_TENANT
    """The tenant of the app; `ANY_TENANT` for an app that is registered for several."""
    cloud: TeamsCloud = PUBLIC_CLOUD

    def __post_init__(self) -> None:
        check_identity(self.app_id, "app_id")
        check_identity(self.app_secret, "app_secret")
        check_identity(self.tenant_id, "tenant_id")
        if not set(self.tenant_id.lower()) <= set("abcdefghijklmnopqrstuvwxyz0123456789.-"):
            problem = "tenant_id must be the tenant's id or its domain"
            raise InvalidInputError(problem)

    @property
    def token_url(self) -> str:
        """The endpoint that gives access tokens for calls."""
        return f"{self.cloud.login_url}/{self.tenant_id}/oauth2/v2.0/token"

    def may_call(self, service_url: str) -> bool:
        """Return whether calls may go to a service that an activity or a stored target names."""
        return origin_of(service_url) in self.cloud.service_origins

    def may_fetch(self, url: str) -> bool:
        """Return whether a file of a person may be fetched from an address."""
        origin = origin_of(url)
        host = origin.removeprefix("https://")
        return origin.startswith("https://") and host.endswith(self.cloud.file_hosts)


def origin_of(url: str) -> str:
    """Return scheme, host and port of an address; "" for one that two readers may understand differently."""
    if not url.isascii() or not url.isprintable() or any(one in url for one in " \\@"):
        return ""
    try:
        parts: SplitResult = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return ""
    if parts.scheme not in _PORTS or not host or ".." in parts.path:
        return ""
    usual = port in (None, _PORTS[parts.scheme])
    return f"{parts.scheme}://{host}" if usual else f"{parts.scheme}://{host}:{port}"
