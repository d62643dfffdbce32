"""A sandboxed subset of Python: expressions for conditions and mappings, statements for script tasks."""
