CREATE TEMP VIEW DOOR_events AS SELECT * FROM main.event_rows
WHERE entity = tenant_entity() AND (process = tenant_process() OR shared = 1);

CREATE TEMP VIEW DOOR_vectors AS SELECT v.event, v.model, v.vector FROM main.vector_rows v
JOIN main.event_rows r ON r.number = v.event
WHERE entity = tenant_entity() AND (process = tenant_process() OR shared = 1);

CREATE TEMP VIEW events AS SELECT * FROM DOOR_events;

CREATE TEMP VIEW vectors AS SELECT * FROM DOOR_vectors;

CREATE TEMP TRIGGER DOOR_add_event INSTEAD OF INSERT ON events BEGIN
    INSERT OR IGNORE INTO event_rows
        (id, entity, process, project, session, shared, type, key, value, metadata, time)
    VALUES (NEW.id, tenant_entity(), tenant_process(), NEW.project, NEW.session, NEW.shared, NEW.type, NEW.key,
        NEW.value, NEW.metadata, NEW.time);
END;

CREATE TEMP TRIGGER DOOR_change_event INSTEAD OF UPDATE ON events BEGIN
    UPDATE event_rows SET type = NEW.type, value = NEW.value, metadata = NEW.metadata
    WHERE number = OLD.number AND entity = tenant_entity() AND process = tenant_process();
END;

CREATE TEMP TRIGGER DOOR_add_vector INSTEAD OF INSERT ON vectors BEGIN
    INSERT OR REPLACE INTO vector_rows (event, model, vector)
    SELECT number, NEW.model, NEW.vector FROM event_rows
    WHERE number = NEW.event AND entity = tenant_entity() AND (process = tenant_process() OR shared = 1);
END;
