"""What a row holds is read where damage becomes an error that says what it belongs to.

A `msgspec.DecodeError` from the middle of a transaction says nothing, and ended whatever had asked.
"""

from tests.architecture.sources import modules

READS = "storage/tables/column_decoding.py"
READERS = ("storage/tables/", "storage/transactions/")


def test_transactions_read_json_by_way_of_one_module():
    found = [one.name for one in modules() if one.name.startswith(READERS) and "json.decode(" in one.text]
    assert found == [READS]
