"""Tokens that stand in addresses, and the log of the HTTP client."""

import logging
from importlib import import_module

import pytest

LINE = 'HTTP Request: %s %s "%s %d %s"'  # as the client writes it


@pytest.mark.parametrize(
    ("module", "address", "shown"),
    [
        ("telegram.client", "https://t.example/bot123:AA-b_C/getMe", "https://t.example/bot…/getMe"),
        ("telegram.client", "https://t.example/file/bot123:AA/a.txt", "https://t.example/file/bot…/a.txt"),
        (
            "discord.interactions_platform",
            "https://d.example/api/v10/webhooks/77/aW50ZXJ/messages/@original",
            "https://d.example/api/v10/webhooks/…/messages/@original",
        ),
        ("telegram.client", "https://example.org/robots/7", "https://example.org/robots/7"),
    ],
)
def test_a_token_in_an_address_is_not_logged(
    caplog: pytest.LogCaptureFixture, module: str, address: str, shown: str
):
    import_module(f"gateway_sessions.integrations.{module}")
    with caplog.at_level(logging.INFO, "httpx2"):
        logging.getLogger("httpx2").info(LINE, "POST", address, "HTTP/1.1", 200, "OK")
    assert caplog.messages == [f'HTTP Request: POST {shown} "HTTP/1.1 200 OK"']


def test_a_record_without_arguments_stays_as_it_is(caplog: pytest.LogCaptureFixture):
    with caplog.at_level(logging.INFO, "httpx2"):
        logging.getLogger("httpx2").info("load_ssl_context")
    assert caplog.messages == ["load_ssl_context"]
