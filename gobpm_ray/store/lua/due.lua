#!lua flags=no-writes
-- The heads of the due deadlines and the next one that is not.  ARGV: limit     Returns {now, next or '', member, deadline, ...}.
local out = call('ZRANGEBYSCORE', DUE, '-inf', now, 'WITHSCORES', 'LIMIT', 0, ARGV[A])
local ahead = call('ZRANGEBYSCORE', DUE, '(' .. now, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
table.insert(out, 1, ahead[2] or '')
table.insert(out, 1, now)
return out
