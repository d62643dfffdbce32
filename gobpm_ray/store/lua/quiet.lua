#!lua flags=no-writes
-- Whether nothing moves.  Returns {quiet, now, next deadline or ''}.
local head = call('ZRANGE', DUE, 0, 0, 'WITHSCORES')
local due = head[2] and tonumber(head[2]) <= now
local busy = call('ZCARD', LEASES) > call('ZCARD', IDLE)
local quiet = call('ZCARD', PEND) == 0 and call('ZCARD', READY) == 0 and not due and not busy
return { quiet and 1 or 0, now, head[2] or '' }
