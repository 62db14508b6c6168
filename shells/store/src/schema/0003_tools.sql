-- Schema 3: the tool calls that an answer asks for, and their results. SQLite can't alter a
-- CHECK, so the transcript is made anew and filled from the old one; foreign keys are off
-- meanwhile and checked at the end.

-- As in schema 2, and: an answer of the assistant that asks for tool calls is marked `calls`,
-- may have no text, and has at least its first call. A row of a tool is the result of the call
-- `call` of the row `asks`: all results of an answer stand directly behind it, in the order of
-- its calls, and a call that has one has ended.
CREATE TABLE transcript_3 (
    session    BLOB NOT NULL REFERENCES sessions (session),
    generation INTEGER NOT NULL CHECK (generation >= 1),
    seq        INTEGER NOT NULL CHECK (seq >= 1),
    role       TEXT NOT NULL CHECK (role IN ('user', 'assistant', 'tool')),
    mark       TEXT NOT NULL CHECK (mark IN ('whole', 'calls', 'partial', 'interrupted',
                                             'dropped', 'summarized')),
    run        BLOB NOT NULL REFERENCES inbox (run),
    turn       BLOB NOT NULL REFERENCES inbox (run),
    at         INTEGER NOT NULL CHECK (at >= 0),
    text       TEXT NOT NULL,
    asks       INTEGER,
    call       INTEGER CHECK (call >= 0),
    first_call INTEGER GENERATED ALWAYS AS (CASE mark WHEN 'calls' THEN 0 END) VIRTUAL,
    call_state TEXT GENERATED ALWAYS AS (CASE role WHEN 'tool' THEN 'ended' END) VIRTUAL,
    UNIQUE (session, generation, seq),
    CHECK (role <> 'user' OR mark IN ('whole', 'dropped', 'summarized')),
    CHECK (role <> 'assistant' OR mark IN ('whole', 'calls', 'partial', 'interrupted')),
    CHECK (role <> 'tool' OR mark = 'whole'),
    CHECK (role = 'user' OR turn = run),
    CHECK (role <> 'assistant' OR mark = 'calls' OR octet_length(text) > 0),
    CHECK ((role = 'tool') = (asks IS NOT NULL)),
    CHECK ((role = 'tool') = (call IS NOT NULL)),
    CHECK (seq = asks + 1 + call),
    FOREIGN KEY (session, generation, seq, first_call)
        REFERENCES calls (session, generation, seq, call) DEFERRABLE INITIALLY DEFERRED,
    FOREIGN KEY (session, generation, asks, call, run, call_state)
        REFERENCES calls (session, generation, seq, call, run, state)
        DEFERRABLE INITIALLY DEFERRED
) STRICT;
INSERT INTO transcript_3 (session, generation, seq, role, mark, run, turn, at, text)
    SELECT session, generation, seq, role, mark, run, turn, at, text
    FROM transcript ORDER BY session, generation, seq;
DROP TABLE transcript;
ALTER TABLE transcript_3 RENAME TO transcript;
CREATE UNIQUE INDEX transcript_user ON transcript (run) WHERE role = 'user';
CREATE UNIQUE INDEX transcript_reply ON transcript (run)
    WHERE role = 'assistant' AND mark IN ('whole', 'partial');

-- One result a call. Also the way from a call to its result when its state changes.
CREATE UNIQUE INDEX transcript_result ON transcript (session, generation, asks, call)
    WHERE asks IS NOT NULL;

-- The calls of the row `seq` of a transcript, which the attempt's answer is, in their order.
-- `requested`, `asked` (waits for a person) and `launched` (may have started) have no result;
-- `ended` has one, in the row that its place demands, and says how (`ended_as`).
CREATE TABLE calls (
    session    BLOB NOT NULL CHECK (length(session) = 16),
    generation INTEGER NOT NULL,
    seq        INTEGER NOT NULL,
    call       INTEGER NOT NULL CHECK (call BETWEEN 0 AND 65535),
    run        BLOB NOT NULL REFERENCES inbox (run),
    attempt    INTEGER NOT NULL CHECK (attempt >= 1),
    id         TEXT NOT NULL,
    name       TEXT NOT NULL,
    arguments  TEXT NOT NULL,
    state      TEXT NOT NULL CHECK (state IN ('requested', 'asked', 'launched', 'ended')),
    ended_as   TEXT CHECK (ended_as IN ('ok', 'failed', 'timed_out', 'cancelled', 'unknown',
                                        'skipped', 'no_such_tool', 'bad_arguments', 'denied',
                                        'expired', 'stale')),
    result     INTEGER GENERATED ALWAYS AS (CASE state WHEN 'ended' THEN seq + 1 + call END)
               VIRTUAL,
    UNIQUE (session, generation, seq, call),
    UNIQUE (session, generation, seq, call, run, state),
    UNIQUE (run, attempt, call),
    CHECK ((state = 'ended') = (ended_as IS NOT NULL)),
    FOREIGN KEY (session, generation, seq) REFERENCES transcript (session, generation, seq),
    FOREIGN KEY (session, generation, result) REFERENCES transcript (session, generation, seq)
) STRICT;

-- Calls without a result: those of a session's writer, and none where no tool is at work.
CREATE INDEX calls_open ON calls (run, call) WHERE state <> 'ended';
