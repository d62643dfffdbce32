#!lua flags=allow-oom
-- An accepted row that cannot be folded becomes a dead letter with the reason (H6).  ARGV: seq, reason     Returns 1, or 0 when it is not pending.
-- Atomic: the row is pending or dead, never both and never neither.
local seq = ARGV[A]
if call('ZREM', PEND, seq) == 0 then return 0 end
bury(ARGV[A + 1], call('HGET', IN, seq) or '')
call('HDEL', IN, seq)
call('HDEL', PROGRESS, seq)
return 1
