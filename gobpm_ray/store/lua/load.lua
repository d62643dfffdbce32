#!lua flags=allow-oom
-- The whole instance under our live lease.  ARGV: instance, token, trigger limit     Returns a claim or {'lost'}.
local id, token = ARGV[A], ARGV[A + 1]
local ikey = PREFIX .. id
if not leased(id, ikey, token) then return { 'lost' } end
return reply_claim(id, ikey, tonumber(call('HGET', ikey, 'ep')), 1000000000, tonumber(ARGV[A + 2]))
