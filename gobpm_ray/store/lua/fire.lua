#!lua flags=allow-oom
-- Delivers due timers to their instances, each checked again.  ARGV: instance, wait, instance, wait ...     Returns how many were delivered;
--   the others are not due (any more).
-- Several in one call: the prelude and the rendering of its arguments cost as much as a delivery.
local fired = 0
for i = A, #ARGV, 2 do
  local id, wait = ARGV[i], ARGV[i + 1]
  local member = id .. RS .. wait
  local deadline = call('ZSCORE', DUE, member)
  if deadline and tonumber(deadline) <= now then
    if deliver(id, 'timer', wait, id .. '/' .. wait, call('INCR', SEQ), '', 0, '{}') then
      fired = fired + 1
    else
      call('ZREM', DUE, member)
    end
  end
end
return fired
