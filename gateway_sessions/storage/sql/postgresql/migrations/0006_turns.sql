-- A turn reads no more the more waits behind it: whatever waits or runs on a lane is found by the turn that it is
-- part of, and turns that wait in their order.

DROP INDEX inbox_open;
CREATE INDEX inbox_open ON inbox (session_key, token, merged_into, place) WHERE outcome IS NULL;
