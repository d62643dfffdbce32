#!lua flags=allow-oom
-- Leases the oldest ready instance for the caller's token; rings on if more is ready, so that one bell wakes every free actor in turn.
-- ARGV: token, whole parts, trigger limit     Returns a claim (prelude: reply_claim) or nothing.
-- Atomic: competing claimers never both win (N8).
local reply = claim_next(ARGV[A], tonumber(ARGV[A + 1]), tonumber(ARGV[A + 2]))
if reply and call('ZCARD', READY) > 0 then ring(BELL_READY) end
return reply
