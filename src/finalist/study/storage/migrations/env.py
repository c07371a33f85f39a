"""Run the scripts in the transaction of the connection that `upgrade` hands over."""

from alembic import context

from finalist.study.storage.schema import VERSION_TABLE

if __name__ == "env_py":  # the name under which Alembic runs this file
    context.configure(
        connection=context.config.attributes["connection"],
        version_table=VERSION_TABLE,
        render_as_batch=True,
    )
    with context.begin_transaction():
        context.run_migrations()
