CREATE TABLE IF NOT EXISTS labels (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  annotator TEXT NOT NULL, trace TEXT NOT NULL, case_id TEXT NOT NULL, revision INTEGER NOT NULL,
  restores INTEGER NOT NULL, before INTEGER NOT NULL, made REAL NOT NULL, trace_name TEXT NOT NULL,
  action TEXT NOT NULL, error_type TEXT, operations TEXT NOT NULL, evidence TEXT NOT NULL,
  note TEXT NOT NULL, method TEXT NOT NULL, request TEXT NOT NULL UNIQUE,
  UNIQUE (annotator, trace, case_id, revision)
) STRICT;
CREATE TRIGGER IF NOT EXISTS labels_are_not_changed BEFORE UPDATE ON labels
  BEGIN SELECT RAISE(ABORT, 'labels are only appended'); END;
CREATE TRIGGER IF NOT EXISTS labels_are_not_deleted BEFORE DELETE ON labels
  BEGIN SELECT RAISE(ABORT, 'labels are only appended'); END;
