"""How connections to PostgreSQL introduce themselves."""

from gateway_sessions.storage.engines.postgresql.notifications import introduced


def test_an_operator_sees_whose_connections_they_are():
    assert introduced("postgresql://u@h/db") == {"application_name": "gateway_sessions"}


def test_a_name_in_the_address_stays():
    assert introduced("postgresql://u@h/db?application_name=desk") == {}
