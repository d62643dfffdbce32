#!lua flags=allow-oom
-- Delivers due timers to their instances, each checked again.  ARGV: instance, wait, instance, wait ...
-- Returns {how many were delivered, then of each whose instance is damaged: its number in the call, what is wrong}. The others are not due
--   (any more).
-- Several in one call: the prelude and the rendering of its arguments cost as much as a delivery. One that cannot be delivered must not hold
-- up those that share its call: it stays due, for whoever mends its instance.
local fired = { 0 }
for i = A, #ARGV, 2 do
  local id, wait = ARGV[i], ARGV[i + 1]
  local member = id .. RS .. wait
  local deadline = call('ZSCORE', DUE, member)
  if deadline and tonumber(deadline) <= now then
    local sound, delivered = pcall(deliver, id, 'timer', wait, id .. '/' .. wait, call('INCR', SEQ), '', 0, '{}')
    if not sound then
      fired[#fired + 1] = (i - A) / 2
      fired[#fired + 1] = fault_of(delivered)
    elseif delivered then
      fired[1] = fired[1] + 1
    else
      call('ZREM', DUE, member)
    end
  end
end
return fired
