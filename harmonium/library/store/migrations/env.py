"""Run by Alembic: the migrations in the connection that `upgrade` was given."""

from alembic import context

from harmonium.library.store.schema import VERSION_TABLE, metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    version_table=VERSION_TABLE,
    render_as_batch=True,
)
with context.begin_transaction():
    context.run_migrations()
