CREATE TABLE finalist_version (
    version_num VARCHAR(32) NOT NULL,
    CONSTRAINT finalist_version_pkc PRIMARY KEY (version_num)
)

CREATE TABLE studies (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL,
    created TEXT NOT NULL,
    version TEXT NOT NULL,
    settings TEXT NOT NULL,
    last INTEGER NOT NULL,
    checksum BIGINT NOT NULL
)

CREATE TABLE arms (
    study INTEGER NOT NULL,
    stage INTEGER NOT NULL,
    names TEXT NOT NULL,
    features BLOB NOT NULL,
    rows INTEGER NOT NULL,
    columns INTEGER NOT NULL,
    columns_names TEXT NOT NULL,
    checksum BIGINT NOT NULL,
    PRIMARY KEY (study, stage),
    FOREIGN KEY(study) REFERENCES studies (id) ON DELETE CASCADE
)

CREATE TABLE events (
    study INTEGER NOT NULL,
    number INTEGER NOT NULL,
    kind TEXT NOT NULL,
    at TEXT NOT NULL,
    client TEXT,
    body TEXT NOT NULL,
    checksum BIGINT NOT NULL,
    rewards_checksum BIGINT,
    notes_checksum BIGINT,
    PRIMARY KEY (study, number),
    CONSTRAINT events_number CHECK (number >= 1),
    CONSTRAINT events_kind CHECK (kind IN ('created', 'history', 'issued', 'assigned', 'told', 'voided', 'missing', 'amended', 'decided', 'changed', 'note')),
    FOREIGN KEY(study) REFERENCES studies (id) ON DELETE CASCADE
)

CREATE UNIQUE INDEX events_client ON events (study, client) WHERE client IS NOT NULL

CREATE TABLE rewards (
    study INTEGER NOT NULL,
    event INTEGER NOT NULL,
    pull BIGINT NOT NULL,
    reward DOUBLE NOT NULL,
    note TEXT,
    PRIMARY KEY (study, event, pull),
    FOREIGN KEY(study, event) REFERENCES events (study, number) ON DELETE CASCADE,
    CONSTRAINT rewards_finite CHECK (reward >= -1e150 AND reward <= 1e150)
) WITHOUT ROWID

CREATE UNIQUE INDEX studies_name ON studies (name)

CREATE TRIGGER events_update BEFORE UPDATE ON events
BEGIN SELECT RAISE(ABORT, 'events are append-only'); END

CREATE TRIGGER events_delete BEFORE DELETE ON events
WHEN EXISTS (SELECT 1 FROM studies WHERE id = OLD.study)
BEGIN SELECT RAISE(ABORT, 'events are append-only'); END

CREATE TRIGGER rewards_update BEFORE UPDATE ON rewards
BEGIN SELECT RAISE(ABORT, 'rewards are append-only'); END

CREATE TRIGGER rewards_delete BEFORE DELETE ON rewards
WHEN EXISTS (SELECT 1 FROM studies WHERE id = OLD.study)
BEGIN SELECT RAISE(ABORT, 'rewards are append-only'); END

INSERT INTO finalist_version (version_num) VALUES ('0001')
