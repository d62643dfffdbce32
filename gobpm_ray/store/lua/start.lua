#!lua
-- A new instance, ready, with one start trigger; deduplicated by its delivery id.
-- ARGV: most ready, process, version (0: newest), instance, delivery, business key, payload
-- Returns {instance, duplicate, seq} or {'unknown'} or {'exists'} or {'full', how many}.
-- Atomic: the instance, its inbox and its readiness appear together or not at all. No allow-oom: a full store refuses new work.
local most, process, version, id, delivery, business, payload = unpack(ARGV, A, A + 6)
local newest = call('HGET', DEFS, process)
if not newest or (version ~= '0' and not call('HGET', DEFS, process .. RS .. version)) then return { 'unknown' } end
if version == '0' then version = newest end
local first = seen(delivery)
if first then return { first, 1, 0 } end
if call('EXISTS', PREFIX .. id) == 1 then return { 'exists' } end
local ready = call('ZCARD', READY)
if ready >= tonumber(most) then return { 'full', ready } end
remember(delivery, id)
local seq = call('INCR', SEQ)
new_instance(id, process, version, business, seq, delivery, '', payload)
return { id, 0, seq }
