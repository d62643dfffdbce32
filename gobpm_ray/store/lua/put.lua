#!lua flags=allow-oom
-- A small register of the engine, also in a full store: a heartbeat or an actor's row is no new work.  ARGV: table, name, value
call('HSET', string.sub(PREFIX, 1, -3) .. 'table:' .. ARGV[A], ARGV[A + 1], ARGV[A + 2])
return 1
