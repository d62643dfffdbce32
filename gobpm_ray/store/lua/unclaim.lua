#!lua flags=allow-oom
-- A claim with which nothing was begun goes back, before whatever is ready; nothing is consumed, its silent deaths stay counted.
-- ARGV: instance, token     Returns 1, or 0 when the lease is not ours.
local id, token = ARGV[A], ARGV[A + 1]
local ikey = PREFIX .. id
if call('HGET', ikey, 'tk') ~= token then return 0 end
local head = call('ZRANGE', READY, 0, 0, 'WITHSCORES')
requeue(id, ikey, math.min(live, tonumber(head[2] or live)))
return 1
