"""Pages, tables and pictures made of rows."""
