-- SPDX-License-Identifier: Apache-2.0
-- What lookups send, made once for the record that answers a key, so that a lookup is one point read. All of it follows from
-- the tables of version 1: a row that is lost costs time and nothing else.

CREATE TABLE answer (
  record INTEGER PRIMARY KEY REFERENCES record,
  hash INTEGER NOT NULL,               -- of `question`
  question BLOB NOT NULL,              -- what is asked, to the byte, as server/selection.cc spells it
  signature TEXT NOT NULL,
  toolchain TEXT NOT NULL,             -- the attributes that make a record stale
  emitter TEXT NOT NULL,
  method_version INTEGER NOT NULL,
  message BLOB NOT NULL,               -- what is sent
  checksum INTEGER NOT NULL            -- over all of the above
) STRICT;
CREATE INDEX answer_hash ON answer (hash);

-- The publication up to which answers are made, and by which version of the server's code.
INSERT INTO setting VALUES ('answered', 0), ('answers_version', 0);

-- verify
SELECT count(*) = 13 FROM sqlite_schema WHERE type = 'table' AND sql LIKE '%STRICT%';
SELECT count(*) = 10 FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL;
SELECT count(*) = 2 FROM setting WHERE name IN ('answered', 'answers_version') AND value = 0;
