"""How connections to PostgreSQL introduce themselves."""

from gateway_sessions.storage.engines.postgresql.notifications import program_name_setting


def test_an_operator_sees_whose_connections_they_are():
    assert program_name_setting("postgresql://u@h/db") == {"application_name": "gateway_sessions"}


def test_a_name_in_the_address_stays():
    assert program_name_setting("postgresql://u@h/db?application_name=desk") == {}
