#!lua flags=no-writes
-- Counts for people and for the supervisor; costs the same with a million waiting.
-- `ready` may be claimed now: a failed wake that backs off is not, and no actor is made for it.
-- Returns {resident, ready, oldest ready ms, live, due, pending, parked, incidents, ended, dead, idle}.
local head = call('ZRANGE', READY, 0, 0, 'WITHSCORES')
local oldest = head[2] and math.max(live - tonumber(head[2]), 0) or 0
return {
  call('ZCARD', LEASES), call('ZCOUNT', READY, '-inf', live), oldest, call('ZCARD', INSTANCES) - call('ZCARD', ENDED), call('ZCARD', DUE), call('ZCARD', PEND),
  call('ZCARD', PARKX), call('ZCARD', INCIDENTS), call('ZCARD', ENDED), call('LLEN', DEAD), call('ZCARD', IDLE),
}
