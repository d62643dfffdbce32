#!lua flags=allow-oom
-- Pending triggers of an instance that we lease.  ARGV: instance, token, limit   Returns {now, trigger, ...} or {'lost'}.
-- Fetching makes the lease busy: the population is not quiet while its host works on them.
local id, token = ARGV[A], ARGV[A + 1]
local ikey = PREFIX .. id
if not leased(id, ikey, token) then return { 'lost' } end
local out = call('LRANGE', ikey .. ':q', 0, tonumber(ARGV[A + 2]) - 1)
if #out > 0 then call('ZREM', IDLE, id) end
table.insert(out, 1, now)
return out
