CREATE TABLE IF NOT EXISTS event_rows (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL,
    entity TEXT NOT NULL,
    process TEXT NOT NULL,
    project TEXT NOT NULL,
    session TEXT NOT NULL,
    shared INTEGER NOT NULL,
    type TEXT NOT NULL,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    metadata TEXT NOT NULL,
    time REAL NOT NULL,
    UNIQUE (entity, process, id)
);
CREATE INDEX IF NOT EXISTS by_time ON event_rows (entity, time);
CREATE INDEX IF NOT EXISTS by_type ON event_rows (entity, type, time);
CREATE INDEX IF NOT EXISTS by_key ON event_rows (entity, key, time);
CREATE INDEX IF NOT EXISTS by_session ON event_rows (entity, session, time);
CREATE TABLE IF NOT EXISTS vector_rows (
    event INTEGER PRIMARY KEY REFERENCES event_rows (number) ON DELETE CASCADE,
    model TEXT NOT NULL,
    vector BLOB NOT NULL
);
