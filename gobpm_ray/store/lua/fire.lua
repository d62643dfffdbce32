#!lua flags=allow-oom
-- Delivers one due timer to its instance, checked again.  ARGV: instance, wait     Returns 1 delivered, 0 not (any more).
local id, wait = ARGV[A], ARGV[A + 1]
local member = id .. RS .. wait
local deadline = call('ZSCORE', DUE, member)
if not deadline or tonumber(deadline) > now then return 0 end
if deliver(id, 'timer', wait, id .. '/' .. wait, call('INCR', SEQ), '', 0, '{}') then return 1 end
call('ZREM', DUE, member)
return 0
