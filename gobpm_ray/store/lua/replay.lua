#!lua
-- A dead letter is accepted again, as a delivery of its own.  ARGV: the letter, delivery, ttl, most pending
-- Returns {0, seq}, {'gone'}, {'duplicate'}, {'full', how many}.
-- Atomic: the letter leaves the list exactly when the row is stored. No allow-oom: it is new work.
local letter, delivery, ttl, most = unpack(ARGV, A, A + 3)
if seen(delivery) then return { 'duplicate' } end
local pending = call('ZCARD', PEND)
if pending >= tonumber(most) then return { 'full', pending } end
local row = split(split(letter, 3)[3] or '', 8)
if #row < 8 or call('LREM', DEAD, 1, letter) == 0 then return { 'gone' } end
remember(delivery, '')
local seq = call('INCR', SEQ)
accept_row(seq, delivery, row[2], row[3], row[4], tonumber(ttl), row[8])
return { 0, seq }
