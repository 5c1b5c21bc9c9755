"""What a row holds is read where damage becomes an error that says what it belongs to.

A `msgspec.DecodeError` from the middle of a verb says nothing, and ended whatever had asked.
"""

from tests.architecture.sources import modules

READS = "storage/verbs/stored.py"


def test_verbs_read_json_by_way_of_one_module():
    found = [one.name for one in modules() if "storage/verbs/" in one.name and "json.decode(" in one.text]
    assert found == [READS]
