#!lua
-- Accepts a message or signal as one pending row, whatever it will cause (H1); the MessageHolder folds it.
-- ARGV: delivery, kind (M|S), canonical key, name, payload, ttl, most pending     Returns {duplicate, seq} or {'full', how many}.
-- Atomic: the id is remembered exactly when the row is stored. No allow-oom: a full store refuses new work.
local delivery, kind, key, name, payload, ttl, most = unpack(ARGV, A, A + 6)
if seen(delivery) then return { 1, 0 } end
local pending = call('ZCARD', PEND)
if pending >= tonumber(most) then return { 'full', pending } end
remember(delivery, '')
local seq = call('INCR', SEQ)
accept_row(seq, delivery, kind, key, name, tonumber(ttl), payload)
return { 0, seq }
