#!lua flags=allow-oom
-- A data store of the engine holds nothing any more: whoever reads it from now on reads null.  ARGV: name   Returns 1, or 0 if it held nothing.
return call('HDEL', data_table(), ARGV[A])
