"""The first tables: studies, arms, events and rewards."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_KINDS = (
    "'created', 'history', 'issued', 'assigned', 'told', 'voided', 'missing', 'amended', "
    "'decided', 'changed', 'note'"
)
# Rows go only with their study: by then the study is no longer there.
_SQLITE = """
CREATE TRIGGER {table}_update BEFORE UPDATE ON {table}
BEGIN SELECT RAISE(ABORT, '{table} are append-only'); END;
CREATE TRIGGER {table}_delete BEFORE DELETE ON {table}
WHEN EXISTS (SELECT 1 FROM studies WHERE id = OLD.study)
BEGIN SELECT RAISE(ABORT, '{table} are append-only'); END;
"""
# A name may be longer than what a unique index of PostgreSQL takes.
_POSTGRESQL = """
ALTER TABLE studies ADD CONSTRAINT studies_name EXCLUDE USING hash (name WITH =);
CREATE FUNCTION finalist_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' AND NOT EXISTS (SELECT 1 FROM studies WHERE id = OLD.study) THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION '% are append-only', TG_TABLE_NAME;
END $$;
CREATE TRIGGER events_append_only BEFORE UPDATE OR DELETE ON events
FOR EACH ROW EXECUTE FUNCTION finalist_append_only();
CREATE TRIGGER rewards_append_only BEFORE UPDATE OR DELETE ON rewards
FOR EACH ROW EXECUTE FUNCTION finalist_append_only();
"""


def upgrade() -> None:
    """Make all tables, and the triggers that refuse to change what is on record."""
    op.create_table(
        "studies",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("created", sa.Text, nullable=False),
        sa.Column("version", sa.Text, nullable=False),
        sa.Column("settings", sa.Text, nullable=False),
        sa.Column("last", sa.Integer, nullable=False),
        sa.Column("checksum", sa.BigInteger, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "arms",
        sa.Column(
            "study", sa.Integer, sa.ForeignKey("studies.id", ondelete="CASCADE"), nullable=False
        ),
        sa.Column("stage", sa.Integer, nullable=False),
        sa.Column("names", sa.Text, nullable=False),
        sa.Column("features", sa.LargeBinary, nullable=False),
        sa.Column("rows", sa.Integer, nullable=False),
        sa.Column("columns", sa.Integer, nullable=False),
        sa.Column("columns_names", sa.Text, nullable=False),
        sa.Column("checksum", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("study", "stage"),
    )
    _make_events()
    _make_rewards()
    if op.get_bind().dialect.name == "sqlite":
        op.create_index("studies_name", "studies", ["name"], unique=True)
        script = "".join(_SQLITE.format(table=table) for table in ("events", "rewards"))
        for statement in script.split("END;")[:-1]:
            op.execute(statement + "END;")
    else:
        op.execute(_POSTGRESQL)


def _make_events() -> None:
    op.create_table(
        "events",
        sa.Column(
            "study", sa.Integer, sa.ForeignKey("studies.id", ondelete="CASCADE"), nullable=False
        ),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("at", sa.Text, nullable=False),
        sa.Column("client", sa.Text),
        sa.Column("body", sa.Text, nullable=False),
        sa.Column("checksum", sa.BigInteger, nullable=False),
        sa.Column("rewards_checksum", sa.BigInteger),
        sa.Column("notes_checksum", sa.BigInteger),
        sa.PrimaryKeyConstraint("study", "number"),
        sa.CheckConstraint("number >= 1", name="events_number"),
        sa.CheckConstraint(f"kind IN ({_KINDS})", name="events_kind"),
    )
    only = sa.text("client IS NOT NULL")
    op.create_index(
        "events_client",
        "events",
        ["study", "client"],
        unique=True,
        sqlite_where=only,
        postgresql_where=only,
    )


def _make_rewards() -> None:
    op.create_table(
        "rewards",
        sa.Column("study", sa.Integer, nullable=False),
        sa.Column("event", sa.Integer, nullable=False),
        sa.Column("pull", sa.BigInteger, nullable=False),
        sa.Column("reward", sa.Double, nullable=False),
        sa.Column("note", sa.Text),
        sa.PrimaryKeyConstraint("study", "event", "pull"),
        sa.ForeignKeyConstraint(
            ["study", "event"], ["events.study", "events.number"], ondelete="CASCADE"
        ),
        sa.CheckConstraint("reward >= -1e150 AND reward <= 1e150", name="rewards_finite"),
        sqlite_with_rowid=False,
    )
