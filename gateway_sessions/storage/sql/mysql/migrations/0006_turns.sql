-- A turn reads no more the more waits behind it: whatever waits or runs on a lane is found by the turn that it is
-- part of, and turns that wait in their order. At once, so that it can be done again if it was broken off.

ALTER TABLE inbox DROP INDEX inbox_open,
    ADD INDEX inbox_open (session_key, outcome, token, merged_into, place);
