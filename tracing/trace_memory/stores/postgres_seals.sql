CREATE TABLE memtune.keys (inside bytea NOT NULL, outside bytea NOT NULL);
INSERT INTO memtune.keys SELECT
    uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())
        || uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()),
    uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())
        || uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid());

-- HMAC (RFC 2104) with two keys instead of two paddings of one: Postgres has no `hmac` without an extension.
CREATE FUNCTION memtune.code_of(content text) RETURNS text
    LANGUAGE sql STABLE PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $$
        SELECT encode(sha256(outside || sha256(inside || convert_to(concat_ws(' ', pg_backend_pid(),
            (extract(epoch FROM transaction_timestamp()) * 1000000)::bigint, content), 'UTF8'))), 'hex')
        FROM memtune.keys
    $$;
CREATE FUNCTION memtune.seal(entity text, process text) RETURNS text
    LANGUAGE sql STABLE PARALLEL RESTRICTED SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
        SELECT memtune.code_of(content) || content
        FROM (SELECT json_build_array(entity, process)::text AS content) AS tenant
    $$;
CREATE FUNCTION memtune.sealed(place integer) RETURNS text
    LANGUAGE plpgsql STABLE PARALLEL RESTRICTED SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
        DECLARE
            seal text := current_setting('memtune.seal', true);
        BEGIN
            IF left(seal, 64) = memtune.code_of(substr(seal, 65)) THEN
                RETURN substr(seal, 65)::json ->> place;
            END IF;
            RETURN NULL;
        END
    $$;
-- Inside a function that acts as its owner, Postgres lets nobody change the role, not even a superuser.
CREATE FUNCTION memtune.query(seal text, statement text, parameters text[]) RETURNS SETOF record
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, memtune, pg_temp AS $$
        BEGIN
            PERFORM set_config('memtune.seal', seal, true);
            RETURN QUERY EXECUTE statement USING parameters;
        END
    $$;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA memtune FROM PUBLIC;
GRANT EXECUTE ON FUNCTION memtune.seal, memtune.sealed, memtune.query TO memtune_agent;
GRANT EXECUTE ON FUNCTION memtune.sealed TO memtune_reader;
GRANT USAGE ON SCHEMA memtune TO memtune_reader;
GRANT SELECT ON memtune.events, memtune.vectors TO memtune_reader;
ALTER TABLE memtune.events ALTER entity DROP DEFAULT, ALTER process DROP DEFAULT;
GRANT INSERT (entity, process) ON memtune.events TO memtune_agent;
DROP POLICY IF EXISTS seen ON memtune.events;
DROP POLICY IF EXISTS added ON memtune.events;
DROP POLICY IF EXISTS changed ON memtune.events;
DROP POLICY IF EXISTS of_seen_events ON memtune.vectors;
-- As subqueries, what is sealed is computed once for a query, not for each row.
CREATE POLICY seen ON memtune.events FOR SELECT USING (
    entity = (SELECT memtune.sealed(0)) AND (process = (SELECT memtune.sealed(1)) OR shared = 1));
CREATE POLICY added ON memtune.events FOR INSERT WITH CHECK (
    entity = (SELECT memtune.sealed(0)) AND process = (SELECT memtune.sealed(1)));
CREATE POLICY changed ON memtune.events FOR UPDATE USING (
    entity = (SELECT memtune.sealed(0)) AND process = (SELECT memtune.sealed(1)));
CREATE POLICY of_seen_events ON memtune.vectors
    USING (EXISTS (SELECT 1 FROM memtune.events e WHERE e.number = event));
-- A function's owner needs the right to make it, and afterwards none.
GRANT CREATE ON SCHEMA memtune TO memtune_reader;
ALTER FUNCTION memtune.query OWNER TO memtune_reader;
REVOKE CREATE ON SCHEMA memtune FROM memtune_reader;
COMMENT ON SCHEMA memtune IS 'memtune trace memory, version 2';
