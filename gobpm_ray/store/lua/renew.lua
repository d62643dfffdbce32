#!lua flags=allow-oom
-- Extends our lease.  ARGV: instance, token     Returns {inbox length, ready} or {'lost'}.
-- An expired lease cannot be renewed even when nobody swept it (C61). Who renews has begun real work (prelude: died).
local id, token = ARGV[A], ARGV[A + 1]
local ikey = PREFIX .. id
if not leased(id, ikey, token) then return { 'lost' } end
call('ZADD', LEASES, live + TTL, id)
call('HSETNX', ikey, 'wk', 1)
return { call('LLEN', ikey .. ':q'), call('ZCOUNT', READY, '-inf', live) }
