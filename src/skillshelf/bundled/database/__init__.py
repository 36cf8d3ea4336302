"""Questions to a database in SQL: SQLite and PostgreSQL."""
