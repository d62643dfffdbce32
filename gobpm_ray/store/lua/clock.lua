#!lua flags=allow-oom
-- The manual business clock.  ARGV: 'start' | 'set', ms     Returns the business time, or -1 without a manual clock.
-- Atomic: never backwards, whoever else advances.
local manual = call('GET', CLOCK)
if ARGV[A] == 'start' then
  if not manual then call('SET', CLOCK, ARGV[A + 1]) end
  return tonumber(call('GET', CLOCK))
end
if not manual then return -1 end
if tonumber(ARGV[A + 1]) > tonumber(manual) then call('SET', CLOCK, ARGV[A + 1]) end
ring(BELL_TIMER)
ring(BELL_MESSAGE)
ring(BELL_TASK)
return tonumber(call('GET', CLOCK))
