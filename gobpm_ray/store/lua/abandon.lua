#!lua flags=allow-oom
-- Gives our lease back with everything unconsumed, ready again after a back-off (D18). A host that says so did not die silently.
-- ARGV: instance, token, back-off ms     Returns 1, or 0 when the lease is not ours.
local id, token = ARGV[A], ARGV[A + 1]
local ikey = PREFIX .. id
if call('HGET', ikey, 'tk') ~= token then return 0 end
call('HDEL', ikey, 'dc')
requeue(id, ikey, live + tonumber(ARGV[A + 2]))
return 1
