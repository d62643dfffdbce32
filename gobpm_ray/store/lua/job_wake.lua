#!lua flags=allow-oom
-- Jobs whose lock has ended (liveness), or whose wait for the next attempt is over (business), may be fetched again.  ARGV: limit
-- Returns how many.
local count = 0
for _, task in ipairs(call('ZRANGEBYSCORE', JOBLOCKS, '-inf', live, 'LIMIT', 0, ARGV[A])) do
  job_back(task)
  count = count + 1
end
for _, task in ipairs(call('ZRANGEBYSCORE', JOBWAIT, '-inf', now, 'LIMIT', 0, ARGV[A])) do
  job_back(task)
  count = count + 1
end
return count
