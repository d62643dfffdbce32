#!lua flags=no-writes
-- Whether nothing moves.  Returns {quiet, now, next deadline or ''}.
local head = call('ZRANGE', DUE, 0, 0, 'WITHSCORES')
local due = head[2] and tonumber(head[2]) <= now
local waiting = call('ZRANGE', JOBWAIT, 0, 0, 'WITHSCORES')[2]
due = due or (waiting and tonumber(waiting) <= now)
local busy = call('ZCARD', LEASES) > call('ZCARD', IDLE)
local quiet = call('ZCARD', PEND) == 0 and call('ZCARD', READY) == 0 and not due and not busy
local ahead = tonumber(head[2])
if waiting and (not ahead or tonumber(waiting) < ahead) then ahead = tonumber(waiting) end
return { quiet and 1 or 0, now, ahead or '' }
