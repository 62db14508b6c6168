-- Schema 2: how a message takes part in its session's queue, what a turn took along, and how
-- a session queues. SQLite can't alter a CHECK, so inbox and transcript are made anew and
-- filled from the old ones; foreign keys are off meanwhile and checked at the end.

-- What a session sets for itself; the rest stays as configured.
ALTER TABLE sessions ADD COLUMN queue_mode TEXT
    CHECK (queue_mode IN ('steer', 'followup', 'collect', 'interrupt'));
ALTER TABLE sessions ADD COLUMN queue_debounce_ms INTEGER CHECK (queue_debounce_ms >= 0);
ALTER TABLE sessions ADD COLUMN queue_cap INTEGER CHECK (queue_cap >= 0);
ALTER TABLE sessions ADD COLUMN queue_drop TEXT
    CHECK (queue_drop IN ('old', 'new', 'summarize'));

-- As in schema 1, and: `along` is the run in whose turn the message was taken along, and
-- `dropped` the rule by which it gave way. A message stays here until a claim moves it to the
-- transcript: its own, that of the turn that takes it along, or, if it was dropped, the next
-- of its session.
CREATE TABLE inbox_2 (
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
    turn        TEXT NOT NULL CHECK (turn IN ('agent', 'chat')),
    queue       TEXT CHECK (queue IN ('steer', 'followup', 'collect', 'interrupt')),
    route       BLOB CHECK (length(route) = 16),
    speaker     TEXT CHECK (speaker IN ('user', 'room', 'heartbeat')),
    lane        TEXT NOT NULL CHECK (lane IN ('main', 'subagent', 'cron', 'cron-nested',
                                              'hook-dispatch', 'nested', 'background')),
    priority    TEXT NOT NULL CHECK (priority IN ('foreground', 'normal', 'background')),
    along       BLOB REFERENCES inbox (run) CHECK (along <> run),
    dropped     TEXT CHECK (dropped IN ('old', 'new', 'summarize')),
    receipt     BLOB GENERATED ALWAYS AS (CASE state WHEN 'ended' THEN run END) VIRTUAL
                REFERENCES receipts (run),
    UNIQUE (run, state),
    CHECK ((budget = 'limited') = (budget_ms IS NOT NULL)),
    CHECK (message IS NULL OR (attempt = 0 AND along IS NULL)),
    CHECK (message IS NOT NULL OR attempt > 0 OR along IS NOT NULL OR dropped IS NOT NULL),
    CHECK ((attempt = 0) = (claimed_at IS NULL)),
    CHECK ((attempt = 0) = (saved_at IS NULL)),
    CHECK (attempt > 0 OR left_ms IS NULL),
    CHECK (turn = 'chat' OR queue IS NULL),
    CHECK ((turn = 'chat') = (route IS NOT NULL)),
    CHECK ((turn = 'chat') = (speaker IS NOT NULL)),
    CHECK (dropped IS NULL OR (state = 'ended' AND attempt = 0 AND along IS NULL))
) STRICT;
INSERT INTO inbox_2 (ordinal, run, session, run_key, body, budget, budget_ms, message, state,
                     attempt, left_ms, accepted_at, claimed_at, saved_at, turn, lane, priority)
    SELECT ordinal, run, session, run_key, body, budget, budget_ms, message, state,
           attempt, left_ms, accepted_at, claimed_at, saved_at, 'agent', 'main', 'foreground'
    FROM inbox ORDER BY ordinal;
DROP TABLE inbox;
ALTER TABLE inbox_2 RENAME TO inbox;
CREATE INDEX inbox_open ON inbox (session, ordinal) WHERE state = 'open';
CREATE INDEX inbox_along ON inbox (along) WHERE along IS NOT NULL;
CREATE INDEX inbox_dropped ON inbox (session, ordinal)
    WHERE dropped IS NOT NULL AND message IS NOT NULL;

-- Of the open runs of a session at most one has claimed: its writer.
CREATE UNIQUE INDEX inbox_writer ON inbox (session) WHERE state = 'open' AND attempt > 0;

-- As in schema 1, and: a user's message that was never answered is `dropped`, or `summarized`
-- if the model is told its first words; `turn` is the run whose claim or end wrote the row.
CREATE TABLE transcript_2 (
    session    BLOB NOT NULL REFERENCES sessions (session),
    generation INTEGER NOT NULL CHECK (generation >= 1),
    seq        INTEGER NOT NULL CHECK (seq >= 1),
    role       TEXT NOT NULL CHECK (role IN ('user', 'assistant')),
    mark       TEXT NOT NULL CHECK (mark IN ('whole', 'partial', 'interrupted', 'dropped',
                                             'summarized')),
    run        BLOB NOT NULL REFERENCES inbox (run),
    turn       BLOB NOT NULL REFERENCES inbox (run),
    at         INTEGER NOT NULL CHECK (at >= 0),
    text       TEXT NOT NULL,
    UNIQUE (session, generation, seq),
    CHECK (role = 'assistant' OR mark IN ('whole', 'dropped', 'summarized')),
    CHECK (role = 'user' OR mark IN ('whole', 'partial', 'interrupted')),
    CHECK (role = 'user' OR turn = run),
    CHECK (role = 'user' OR octet_length(text) > 0)
) STRICT;
INSERT INTO transcript_2 (session, generation, seq, role, mark, run, turn, at, text)
    SELECT session, generation, seq, role, mark, run, run, at, text
    FROM transcript ORDER BY session, generation, seq;
DROP TABLE transcript;
ALTER TABLE transcript_2 RENAME TO transcript;
CREATE UNIQUE INDEX transcript_user ON transcript (run) WHERE role = 'user';
CREATE UNIQUE INDEX transcript_reply ON transcript (run)
    WHERE role = 'assistant' AND mark IN ('whole', 'partial');
