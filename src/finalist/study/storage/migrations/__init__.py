"""The scripts that make and change the tables, run by Alembic."""
