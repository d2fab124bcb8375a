"""Where events are kept: what a store is (`storage`), and the two there are."""

from tracing.errors import ConfigError
from tracing.trace_memory.stores.storage import Storage, Tenant


def open_storage(place: str, tenant: Tenant) -> Storage:
    """The store at a path (SQLite) or `postgresql://` address, for one tenant; it is made where there is none.

    Raises:
        StoreError: it cannot be opened.
        ConfigError: a library is missing, or the address is empty or of another kind.
    """
    scheme, separator, _ = place.partition("://")
    if not place:
        raise ConfigError("a trace memory needs a store: give the path of a SQLite file, or postgresql://…")
    if not separator:
        # Imported where they are needed: psycopg is heavy, and not always there.
        from tracing.trace_memory.stores.sqlite_storage import SqliteStorage

        return SqliteStorage(place, tenant)
    if scheme in ("postgresql", "postgres"):
        from tracing.trace_memory.stores.postgres_storage import PostgresStorage

        return PostgresStorage(place, tenant)
    raise ConfigError(f"{scheme}://…: unknown kind of store; give the path of a SQLite file, or postgresql://…")
