CREATE SCHEMA memtune;
CREATE TABLE memtune.events (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id text NOT NULL,
    entity text NOT NULL,
    process text NOT NULL,
    project text NOT NULL,
    session text NOT NULL,
    shared smallint NOT NULL,
    type text NOT NULL,
    key text NOT NULL,
    value text NOT NULL,
    metadata text NOT NULL,
    time double precision NOT NULL,
    UNIQUE (entity, process, id)
);
CREATE INDEX by_time ON memtune.events (entity, time);
CREATE INDEX by_type ON memtune.events (entity, type, time);
CREATE INDEX by_key ON memtune.events (entity, key, time);
CREATE INDEX by_session ON memtune.events (entity, session, time);
CREATE TABLE memtune.vectors (
    event bigint PRIMARY KEY REFERENCES memtune.events (number) ON DELETE CASCADE,
    model text NOT NULL,
    vector bytea NOT NULL
);
ALTER TABLE memtune.events ENABLE ROW LEVEL SECURITY;
ALTER TABLE memtune.events FORCE ROW LEVEL SECURITY;
ALTER TABLE memtune.vectors ENABLE ROW LEVEL SECURITY;
ALTER TABLE memtune.vectors FORCE ROW LEVEL SECURITY;
GRANT USAGE ON SCHEMA memtune TO memtune_agent;
GRANT SELECT ON memtune.events TO memtune_agent;
GRANT INSERT (id, project, session, shared, type, key, value, metadata, time) ON memtune.events TO memtune_agent;
GRANT UPDATE (type, value, metadata) ON memtune.events TO memtune_agent;
GRANT SELECT, INSERT, UPDATE ON memtune.vectors TO memtune_agent;
