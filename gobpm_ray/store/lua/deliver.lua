#!lua flags=allow-oom
-- A trigger that names its instance: accepted and delivered in one (operator's actions, completions, child results).
-- ARGV: instance, kind, wait ('' addresses the instance), delivery, payload, longest inbox
-- An escalation leaves the wait armed: its job goes on.
-- Returns {1, 0} duplicate, {0, seq}, {'unknown'}, {'ended'}, {'stale'}, {'full', length}. A cancel is never refused for want of room.
-- Atomic: the wait is withdrawn exactly when its trigger is in the inbox.
local id, kind, wait, delivery, payload, longest = unpack(ARGV, A, A + 5)
local ikey = PREFIX .. id
local m = call('HMGET', ikey, 'st', '~' .. wait)
if not m[1] then return { 'unknown' } end
if seen(delivery) then return { 1, 0 } end
if m[1] ~= 'a' and m[1] ~= 's' then return { 'ended' } end
if wait ~= '' and not m[2] then return { 'stale' } end
local length = call('LLEN', ikey .. ':q')
if length >= tonumber(longest) and kind ~= 'cancel' then return { 'full', length } end
remember(delivery, id)
local seq = call('INCR', SEQ)
deliver(id, kind, wait, delivery, seq, '', 0, payload, kind == 'escalation')
return { 0, seq }
