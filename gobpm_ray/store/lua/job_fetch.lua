#!lua flags=allow-oom
-- Locks jobs for a worker: of each topic the most urgent, then the oldest. Locks that have expired and waits that are over count first.
-- ARGV: worker, lock, lock ms, limit, topic, ...     Returns {lock's end, [task, created RS kind RS row, process RS version, failures, cause] ...}.
-- Atomic: of competing workers one gets a job. The more there is, the next sleeper of the topic is woken.
local worker, lock, ends, limit = ARGV[A], ARGV[A + 1], live + tonumber(ARGV[A + 2]), tonumber(ARGV[A + 3])
for _, task in ipairs(call('ZRANGEBYSCORE', JOBLOCKS, '-inf', live, 'LIMIT', 0, 100)) do job_back(task) end
for _, task in ipairs(call('ZRANGEBYSCORE', JOBWAIT, '-inf', now, 'LIMIT', 0, 100)) do job_back(task) end
local out = { ends }
local topics = #ARGV - A - 3
for i = 1, topics do
  local topic = ARGV[A + 3 + i]
  -- An even share of what is left, so that a busy topic does not starve the ones behind it.
  local share = math.ceil(limit / (topics - i + 1))
  if share == 0 then break end
  local from, to = '[' .. topic .. US, '(' .. topic .. ' '
  for _, member in ipairs(call('ZRANGEBYLEX', JOBQ, from, to, 'LIMIT', 0, share)) do
    local task = split(member, 3)[3]
    call('ZREM', JOBQ, member)
    local stored = call('HGET', TASKS, task)
    if stored then
      local state = job_state(task)
      call('HSET', JOBS, task, table.concat({ state[1], lock, state[3] }, RS))
      call('ZADD', JOBLOCKS, ends, task)
      call('HSET', OWNERS, task, worker)
      local row = { task, stored, call('HGET', PREFIX .. string.match(task, '^[^/]*'), 'df'), tonumber(state[1]), state[3] }
      for _, value in ipairs(row) do out[#out + 1] = value end
      limit = limit - 1
    end
  end
  if call('ZRANGEBYLEX', JOBQ, from, to, 'LIMIT', 0, 1)[1] then ring_job(topic) end
end
return out
