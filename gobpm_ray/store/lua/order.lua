#!lua flags=allow-oom
-- The order lease of a holder kind, taken or kept.  ARGV: kind, token, ttl ms     Returns 1 ours, 0 another's.
-- Atomic, and with allow-oom: in a full store the holders must go on folding what was accepted. Its key stands beside the fixed ones.
local key = string.sub(PREFIX, 1, -3) .. 'order:' .. ARGV[A]
local held = call('GET', key)
if held and held ~= ARGV[A + 1] then return 0 end
call('SET', key, ARGV[A + 1], 'PX', ARGV[A + 2])
return 1
