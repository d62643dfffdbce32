#!lua flags=allow-oom
-- House-keeping in bounded batches: parked messages past their TTL become dead letters, ended instances are stripped and, past retention, go.
-- ARGV: limit, retention ms, retention count     Returns how many things went.
local limit, retention, keep = tonumber(ARGV[A]), tonumber(ARGV[A + 1]), tonumber(ARGV[A + 2])
local count = 0
for _, member in ipairs(call('ZRANGEBYSCORE', PARKX, '-inf', now, 'LIMIT', 0, limit)) do
  local seq = tonumber(string.match(member, RS .. '(%d+)$'))
  local row = call('HGET', IN, seq)
  if row then
    bury('expired', row)
    unpark(seq, split(row, 8)[3])
  end
  call('ZREM', PARKX, member)
  call('ZREM', PARKED, member)
  call('HDEL', IN, seq)
  call('HDEL', PROGRESS, seq)
  count = count + 1
end
for _, id in ipairs(call('ZRANGE', PURGE, 0, 0)) do
  purge(id, 400)
  count = count + 1
end
local over = math.max(call('ZCARD', ENDED) - keep, 0)
local old = over > 0 and call('ZRANGE', ENDED, 0, math.min(over, limit) - 1)
  or call('ZRANGEBYSCORE', ENDED, '-inf', live - retention, 'LIMIT', 0, limit)
for _, id in ipairs(old) do
  if not call('ZSCORE', PURGE, id) then
    call('DEL', PREFIX .. id, PREFIX .. id .. ':h', PREFIX .. id .. ':q', PREFIX .. id .. ':b')
    call('ZREM', ENDED, id)
    call('ZREM', INSTANCES, id)
    count = count + 1
  end
end
return count
