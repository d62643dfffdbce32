#!lua flags=allow-oom
-- Repairs a wake that was dropped: an active, unleased instance with triggers is ready (C69).  ARGV: instance     Returns 1 repaired, 0 all well.
local id = ARGV[A]
local ikey = PREFIX .. id
local m = call('HMGET', ikey, 'st', 'tk')
if m[1] ~= 'a' or m[2] or call('LLEN', ikey .. ':q') == 0 or call('ZSCORE', READY, id) then return 0 end
make_ready(id, live)
return 1
