#!lua flags=allow-oom
-- Holds an instance whose hosts died silently too often: suspended, an open incident of the whole instance, its triggers kept, until somebody
-- resumes it (N9, C63).  ARGV: instance, token, history entry, fact     Returns 1, or 0 when the lease is not ours.
-- Atomic: the incident stands exactly when the lease is gone, or the next claimer would host it once more.
local id, token = ARGV[A], ARGV[A + 1]
local ikey = PREFIX .. id
if not leased(id, ikey, token) then return 0 end
call('HSET', ikey, 'st', 's', 'pk', now)
hold_jobs(id, ikey, true)
call('ZADD', INCIDENTS, call('INCR', SEQ), id .. RS)
call('RPUSH', ikey .. ':h', ARGV[A + 2])
call('LTRIM', ikey .. ':h', '-' .. HISTORY, -1)
fact(ARGV[A + 3])
requeue(id, ikey, live)
return 1
