"""What an address of a MySQL or MariaDB database asks for."""

import ssl
from pathlib import Path

import pytest

from gateway_sessions.errors import InvalidInputError
from gateway_sessions.storage.engines.mysql.address import MySQLAddress, parse_address

SECURE = "mysql://me@host/name?ssl-mode="


def test_an_address_is_understood():
    assert parse_address("mysql://me:p%40ss%2F%C3%A4@db.example:3307/my%20store") == MySQLAddress(
        "my store", "db.example", 3307, "me", "p@ss/ä"
    )
    assert parse_address("mariadb://host/name") == MySQLAddress("name", "host")
    assert (
        parse_address("mysql:///name?unix_socket=/run/mysqld.sock").connect_arguments()["unix_socket"]
        == "/run/mysqld.sock"
    )


def test_a_password_is_sent_as_it_is_and_never_shown():
    address = parse_address("mysql://me:hunter%C3%A4@host/name")
    assert address.connect_arguments()["password"] == "hunterä".encode()
    assert "hunter" not in repr(address)


@pytest.mark.parametrize(
    "text",
    [
        "postgresql://me:hunter2@host/name",
        "mysql://me:hunter2@host",
        "mysql://me:hunter2@host/",
        "mysql://me:hunter2@host/a/b",
        "mysql://me:hunter2@host:port/name",
        "mysql://me:hunter2@[host/name",
        "mysql://me@host/name?hunter2=1",
        "mysql://me@host/name?ssl-mode=hunter2",
    ],
)
def test_what_is_no_address_is_refused_and_not_quoted(text: str):
    with pytest.raises(InvalidInputError) as refused:
        parse_address(text)
    assert "hunter2" not in str(refused.value)
    assert refused.value.__cause__ is None


def test_a_connection_is_protected_as_far_as_asked():
    assert parse_address(f"{SECURE}DISABLED").tls_context_maker is None
    for mode, verified, named in (
        ("PREFERRED", ssl.CERT_NONE, False),
        ("REQUIRED", ssl.CERT_NONE, False),
        ("VERIFY_CA", ssl.CERT_REQUIRED, False),
        ("VERIFY_IDENTITY", ssl.CERT_REQUIRED, True),
    ):
        tls = parse_address(f"{SECURE}{mode}").tls_context_maker
        assert tls is not None
        context = tls()
        assert (context.verify_mode, context.check_hostname) == (verified, named)


def test_a_connection_is_protected_where_the_server_can_unless_more_or_less_is_asked_for():
    assert parse_address("mysql://me@host/name").tls_context_maker is not None
    assert parse_address("mysql:///name?unix-socket=/run/mysqld.sock").tls_context_maker is None
    assert (
        parse_address("mysql:///name?unix-socket=/run/mysqld.sock&ssl-mode=REQUIRED").tls_context_maker
        is not None
    )
    prefers = {"": True, "?ssl-mode=PREFERRED": True, "?ssl-mode=REQUIRED": False, "?ssl-ca=/a": False}
    for options, expected in prefers.items():
        assert parse_address(f"mysql://me@host/name{options}").merely_prefers_tls is expected


@pytest.mark.parametrize("option", ["ssl-ca", "ssl-mode=REQUIRED&ssl-cert"])
def test_a_certificate_that_cannot_be_read_is_told(option: str, tmp_path: Path):
    tls = parse_address(f"mysql://me@host/name?{option}={tmp_path}/none.pem").tls_context_maker
    assert tls is not None
    with pytest.raises(InvalidInputError, match="No such file"):
        tls()
