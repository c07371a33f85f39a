"""The tables of studies, on SQLite and on PostgreSQL.

Events and rewards are only ever added. Each row that cannot be checked against another carries a
CRC-32 of its content, so that a flipped bit is noticed and not believed. The tables are made by
the scripts in `migrations`; a test compares the two.
"""

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Double,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    text,
)

#: The version of the tables that this finalist reads and writes.
SCHEMA = "0001"
#: Alembic's table; not its usual name, as a PostgreSQL database may hold other programs' tables.
VERSION_TABLE = "finalist_version"
#: Marks a SQLite file as ours ("FNST").
APPLICATION = 0x464E5354
KINDS = (
    "created",
    "history",
    "issued",
    "assigned",
    "told",
    "voided",
    "missing",
    "amended",
    "decided",
    "changed",
    "note",
)

metadata = MetaData()

studies = Table(
    "studies",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", Text, nullable=False),  # unique, by what each database has for long texts
    Column("created", Text, nullable=False),
    Column("version", Text, nullable=False),
    Column("settings", Text, nullable=False),
    Column("last", Integer, nullable=False),  # number of the last event
    Column("checksum", BigInteger, nullable=False),  # of all but the last event
    sqlite_autoincrement=True,  # the id of a deleted study is not given again
)

arms = Table(
    "arms",
    metadata,
    Column("study", ForeignKey("studies.id", ondelete="CASCADE"), nullable=False),
    Column("stage", Integer, nullable=False),
    Column("names", Text, nullable=False),
    Column("features", LargeBinary, nullable=False),  # float64, little endian, row after row
    Column("rows", Integer, nullable=False),
    Column("columns", Integer, nullable=False),
    Column("columns_names", Text, nullable=False),
    Column("checksum", BigInteger, nullable=False),
    PrimaryKeyConstraint("study", "stage"),
)

events = Table(
    "events",
    metadata,
    Column("study", ForeignKey("studies.id", ondelete="CASCADE"), nullable=False),
    Column("number", Integer, nullable=False),
    Column("kind", Text, nullable=False),
    Column("at", Text, nullable=False),
    Column("client", Text),
    Column("body", Text, nullable=False),
    Column("checksum", BigInteger, nullable=False),  # of this row
    Column("rewards_checksum", BigInteger),  # of the pulls and rewards of this event
    Column("notes_checksum", BigInteger),  # of their notes
    PrimaryKeyConstraint("study", "number"),
    CheckConstraint("number >= 1", name="events_number"),
    CheckConstraint(f"kind IN {KINDS!r}", name="events_kind"),
)
Index(
    "events_client",
    events.c.study,
    events.c.client,
    unique=True,
    # As on PostgreSQL: `postgresql_where` would load that dialect for files too.
    sqlite_where=text("client IS NOT NULL"),
)

rewards = Table(
    "rewards",
    metadata,
    Column("study", Integer, nullable=False),
    Column("event", Integer, nullable=False),
    Column("pull", BigInteger, nullable=False),
    Column("reward", Double, nullable=False),
    Column("note", Text),
    PrimaryKeyConstraint("study", "event", "pull"),  # the order in which they are read
    ForeignKeyConstraint(["study", "event"], ["events.study", "events.number"], ondelete="CASCADE"),
    # SQLite makes NaN a NULL; PostgreSQL takes it as larger than all numbers.
    CheckConstraint("reward >= -1e150 AND reward <= 1e150", name="rewards_finite"),
    sqlite_with_rowid=False,
)
