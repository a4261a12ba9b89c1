-- SPDX-License-Identifier: Apache-2.0
-- The first schema. Runs in one transaction on an empty file; what stands behind `-- verify` must each answer 1 before
-- it is committed, and tests/db runs it again.
--
-- Ids of records, jobs and operations are moments (db/names.h): rows lie in the order they were made, and a public name is
-- its row number. `checksum` is over the row's content (db/checksum.h), compared at each read. A key is (workload, device,
-- objective, salt), spelt out in each table that has one; `fingerprint` is the device's facts. JSON columns are written by
-- db/columns.cc alone.

CREATE TABLE setting (
  name TEXT PRIMARY KEY,
  value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO setting VALUES ('salt', 0);

-- A program with what binds it, by its canonical text; no device in it.
CREATE TABLE workload (
  id INTEGER PRIMARY KEY,
  signature TEXT NOT NULL UNIQUE,
  canonical TEXT NOT NULL
) STRICT;

CREATE TABLE device (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,           -- DeviceId: the digest of `line`
  line TEXT NOT NULL,                  -- the facts
  product TEXT NOT NULL,               -- informs, as memory_bytes does
  memory_bytes INTEGER NOT NULL
) STRICT;

-- Content-addressed: `digest` is the SHA-256 of the bytes before compression.
CREATE TABLE artifact (
  id INTEGER PRIMARY KEY,
  digest TEXT NOT NULL UNIQUE,
  media TEXT NOT NULL,
  size INTEGER NOT NULL,
  zstd BLOB NOT NULL,
  created INTEGER NOT NULL             -- nanoseconds since 1970, as everywhere
) STRICT;

CREATE TABLE job (
  id INTEGER PRIMARY KEY,
  workload INTEGER NOT NULL REFERENCES workload,
  device TEXT NOT NULL,
  objective TEXT NOT NULL,
  salt INTEGER NOT NULL,
  fingerprint INTEGER NOT NULL REFERENCES device,
  client TEXT NOT NULL,
  request TEXT NOT NULL,               -- JSON: what was asked, fixed
  state TEXT NOT NULL CHECK (state IN ('queued', 'running', 'succeeded', 'failed', 'cancelled')),
  lease_epoch INTEGER NOT NULL,
  condition TEXT NOT NULL,             -- JSON: how it stands
  created INTEGER NOT NULL,
  checksum INTEGER NOT NULL
) STRICT;
-- However many ask, a key has one live job.
CREATE UNIQUE INDEX job_live ON job (workload, device, objective, salt) WHERE state IN ('queued', 'running');

CREATE TABLE operation (
  id INTEGER PRIMARY KEY,
  job INTEGER NOT NULL REFERENCES job,
  client TEXT NOT NULL,
  request_id TEXT NOT NULL,
  cancelled INTEGER NOT NULL CHECK (cancelled IN (0, 1)),
  created INTEGER NOT NULL
) STRICT;
CREATE INDEX operation_job ON operation (job, cancelled);
CREATE UNIQUE INDEX operation_request ON operation (client, request_id) WHERE request_id <> '';

-- A record says itself what it answers, so that a lookup reads one row of it and compares all.
CREATE TABLE record (
  id INTEGER PRIMARY KEY,
  workload INTEGER NOT NULL REFERENCES workload,
  signature TEXT NOT NULL,
  canonical TEXT NOT NULL,
  device TEXT NOT NULL,
  objective TEXT NOT NULL,
  salt INTEGER NOT NULL,
  fingerprint INTEGER NOT NULL REFERENCES device,
  schedule TEXT NOT NULL,
  plan TEXT NOT NULL,                  -- JSON
  artifacts TEXT NOT NULL,             -- JSON: digests
  spec TEXT NOT NULL,                  -- JSON: the workload as its first asker spelt it
  evidence TEXT NOT NULL,              -- JSON: measurement, verification, baseline, provenance
  created INTEGER NOT NULL,
  checksum INTEGER NOT NULL
) STRICT;
CREATE INDEX record_workload ON record (workload, device);
CREATE INDEX record_device ON record (device);

-- The raw samples of a record's measurement, which lookups do not read.
CREATE TABLE record_samples (
  record INTEGER PRIMARY KEY REFERENCES record,
  samples TEXT NOT NULL,               -- JSON
  checksum INTEGER NOT NULL
) STRICT;

-- Which record answers a key: its newest publication. `record` is null after a withdrawal.
CREATE TABLE publication (
  id INTEGER PRIMARY KEY,
  workload INTEGER NOT NULL REFERENCES workload,
  device TEXT NOT NULL,
  objective TEXT NOT NULL,
  salt INTEGER NOT NULL,
  record INTEGER REFERENCES record,
  kind TEXT NOT NULL CHECK (kind IN ('publish', 'pin', 'rollback', 'withdraw')),
  reason TEXT NOT NULL,
  created INTEGER NOT NULL,
  checksum INTEGER NOT NULL
) STRICT;
-- Has all that a lookup needs of a publication.
CREATE INDEX publication_key ON publication (workload, device, objective, salt, id, record, checksum);

CREATE TRIGGER record_update BEFORE UPDATE ON record BEGIN SELECT raise(ABORT, 'records are append-only'); END;
CREATE TRIGGER record_delete BEFORE DELETE ON record BEGIN SELECT raise(ABORT, 'records are append-only'); END;
CREATE TRIGGER samples_update BEFORE UPDATE ON record_samples BEGIN SELECT raise(ABORT, 'records are append-only'); END;
CREATE TRIGGER samples_delete BEFORE DELETE ON record_samples BEGIN SELECT raise(ABORT, 'records are append-only'); END;
CREATE TRIGGER publication_update BEFORE UPDATE ON publication
BEGIN SELECT raise(ABORT, 'publications are append-only'); END;
CREATE TRIGGER publication_delete BEFORE DELETE ON publication
BEGIN SELECT raise(ABORT, 'publications are append-only'); END;

-- Every measurement and failure: the learning set.
CREATE TABLE outcome (
  id INTEGER PRIMARY KEY,
  job INTEGER NOT NULL REFERENCES job,
  epoch INTEGER NOT NULL,              -- of the lease
  sequence INTEGER NOT NULL,
  workload INTEGER NOT NULL REFERENCES workload,
  device TEXT NOT NULL,
  objective TEXT NOT NULL,
  salt INTEGER NOT NULL,
  stage TEXT NOT NULL,
  schedule TEXT NOT NULL,
  toolchain TEXT NOT NULL,
  median_ns REAL,                      -- for queries; null unless measured
  detail TEXT NOT NULL,                -- JSON: reason, costs, measurement
  checksum INTEGER NOT NULL,
  UNIQUE (job, epoch, sequence)
) STRICT;
CREATE INDEX outcome_key ON outcome (workload, device, objective, salt);
CREATE INDEX outcome_blocked ON outcome (workload, device) WHERE stage IN ('timeout', 'crash');

-- Trained cost models, by device and version.
CREATE TABLE model (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  device TEXT NOT NULL,
  objective TEXT NOT NULL,
  version INTEGER NOT NULL,
  outcomes INTEGER NOT NULL,           -- that it was trained on
  digest TEXT NOT NULL,                -- SHA-256 of the bytes before compression
  zstd BLOB NOT NULL,
  created INTEGER NOT NULL,
  UNIQUE (name, device, objective, version)
) STRICT;

-- Rows found damaged. Nothing is deleted: the row stays where it is, and what replaces its content (the same text or bytes,
-- stored again) keeps the old content here.
CREATE TABLE quarantine (
  id INTEGER PRIMARY KEY,
  kind TEXT NOT NULL,                  -- table
  name TEXT NOT NULL,                  -- public name, digest or signature
  reason TEXT NOT NULL,
  content BLOB,                        -- what was replaced
  seen INTEGER NOT NULL,
  healed INTEGER                       -- when it was replaced
) STRICT;
CREATE INDEX quarantine_item ON quarantine (kind, name);

-- verify
SELECT count(*) = 12 FROM sqlite_schema WHERE type = 'table' AND sql LIKE '%STRICT%';
SELECT count(*) = 6 FROM sqlite_schema WHERE type = 'trigger';
SELECT count(*) = 9 FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL;
SELECT value = 0 FROM setting WHERE name = 'salt';
