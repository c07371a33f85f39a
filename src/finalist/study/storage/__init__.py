"""Where studies are kept: SQLite files and PostgreSQL. Only `finalist.study` imports this."""
