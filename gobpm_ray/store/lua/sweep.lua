#!lua flags=allow-oom
-- Expired leases back to ready with their triggers, by the store's clock (N9).  ARGV: limit     Returns how many.
local expired = call('ZRANGEBYSCORE', LEASES, '-inf', live, 'LIMIT', 0, ARGV[A])
for _, id in ipairs(expired) do died(id, PREFIX .. id) end
return #expired
