-- Schema 1. Ids are the core's 16 bytes; times are wall time in milliseconds since 1970.
-- Illegal states fail here, whatever the code above believes.

CREATE TABLE meta (
    only            INTEGER PRIMARY KEY CHECK (only = 1),
    owner_epoch     INTEGER NOT NULL CHECK (owner_epoch >= 0),
    fingerprint_key BLOB NOT NULL CHECK (length(fingerprint_key) = 32)
) STRICT;

-- A conversation, and who writes to it. The claim is not cleared when its run ends.
CREATE TABLE sessions (
    id             INTEGER PRIMARY KEY,
    session        BLOB NOT NULL UNIQUE CHECK (length(session) = 16),
    session_key    TEXT NOT NULL,
    generation     INTEGER NOT NULL CHECK (generation >= 1),
    writer_run     BLOB REFERENCES inbox (run),
    writer_attempt INTEGER CHECK (writer_attempt >= 1),
    created_at     INTEGER NOT NULL CHECK (created_at >= 0),
    updated_at     INTEGER NOT NULL CHECK (updated_at >= created_at),
    CHECK ((writer_run IS NULL) = (writer_attempt IS NULL))
) STRICT;
CREATE INDEX sessions_by_update ON sessions (updated_at);

-- Accepted messages, in the order of their acceptance. A run that never claimed keeps its
-- message here; the first claim moves it to the transcript. `receipt` ties the states: only
-- a run that has a receipt can be ended.
CREATE TABLE inbox (
    ordinal     INTEGER PRIMARY KEY AUTOINCREMENT,
    run         BLOB NOT NULL UNIQUE CHECK (length(run) = 16),
    session     BLOB NOT NULL REFERENCES sessions (session),
    run_key     TEXT NOT NULL,
    body        BLOB NOT NULL CHECK (length(body) = 16),
    budget      TEXT NOT NULL CHECK (budget IN ('default', 'limited', 'unlimited')),
    budget_ms   INTEGER CHECK (budget_ms >= 0),
    message     TEXT,
    state       TEXT NOT NULL CHECK (state IN ('open', 'ended')),
    attempt     INTEGER NOT NULL CHECK (attempt >= 0),
    left_ms     INTEGER CHECK (left_ms >= 0),
    accepted_at INTEGER NOT NULL CHECK (accepted_at >= 0),
    claimed_at  INTEGER CHECK (claimed_at >= 0),
    saved_at    INTEGER CHECK (saved_at >= claimed_at),
    receipt     BLOB GENERATED ALWAYS AS (CASE state WHEN 'ended' THEN run END) VIRTUAL
                REFERENCES receipts (run),
    UNIQUE (run, state),
    CHECK ((budget = 'limited') = (budget_ms IS NOT NULL)),
    CHECK ((attempt = 0) = (message IS NOT NULL)),
    CHECK ((attempt = 0) = (claimed_at IS NULL)),
    CHECK ((attempt = 0) = (saved_at IS NULL)),
    CHECK (attempt > 0 OR left_ms IS NULL)
) STRICT;
CREATE INDEX inbox_open ON inbox (session, ordinal) WHERE state = 'open';

-- Of the open runs of a session at most one has claimed: its writer.
CREATE UNIQUE INDEX inbox_writer ON inbox (session) WHERE state = 'open' AND attempt > 0;

-- Rows are only ever added. `whole` and `partial` answer for a run's end; `interrupted` is
-- what a crash left of an earlier attempt and answers for nothing.
CREATE TABLE transcript (
    session    BLOB NOT NULL REFERENCES sessions (session),
    generation INTEGER NOT NULL CHECK (generation >= 1),
    seq        INTEGER NOT NULL CHECK (seq >= 1),
    role       TEXT NOT NULL CHECK (role IN ('user', 'assistant')),
    mark       TEXT NOT NULL CHECK (mark IN ('whole', 'partial', 'interrupted')),
    run        BLOB NOT NULL REFERENCES inbox (run),
    at         INTEGER NOT NULL CHECK (at >= 0),
    text       TEXT NOT NULL,
    UNIQUE (session, generation, seq),
    CHECK (role = 'assistant' OR mark = 'whole'),
    CHECK (role = 'user' OR octet_length(text) > 0)
) STRICT;
CREATE UNIQUE INDEX transcript_user ON transcript (run) WHERE role = 'user';
CREATE UNIQUE INDEX transcript_reply ON transcript (run)
    WHERE role = 'assistant' AND mark IN ('whole', 'partial');

-- What has streamed of a reply under the current attempt, piece after piece.
CREATE TABLE partial (
    run     BLOB NOT NULL REFERENCES inbox (run),
    attempt INTEGER NOT NULL CHECK (attempt >= 1),
    start   INTEGER NOT NULL CHECK (start >= 0),
    text    TEXT NOT NULL CHECK (octet_length(text) > 0),
    UNIQUE (run, attempt, start)
) STRICT;

-- How a run ended, once. `reason` says it for people; `terminal` is what the core is told,
-- encoded as `encoding` names. `state` ties the states the other way: a run with a receipt
-- has ended, at the latest when the transaction commits. Written before the inbox, so that
-- each check is one look into an index.
CREATE TABLE receipts (
    run      BLOB PRIMARY KEY CHECK (length(run) = 16),
    state    TEXT NOT NULL DEFAULT 'ended' CHECK (state = 'ended'),
    reason   TEXT NOT NULL,
    ended_at INTEGER NOT NULL CHECK (ended_at >= 0),
    encoding INTEGER NOT NULL CHECK (encoding >= 1),
    terminal BLOB NOT NULL,
    detail   TEXT,
    FOREIGN KEY (run, state) REFERENCES inbox (run, state) DEFERRABLE INITIALLY DEFERRED
) STRICT;
