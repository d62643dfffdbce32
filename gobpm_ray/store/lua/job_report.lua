#!lua flags=allow-oom
-- What a worker (or, without a lock, an operator) says of a job.
-- ARGV: verb, task, instance, wait, lock ('' operator), delivery, payload, milliseconds, history entry, cause
--   job failed error: ends the job with this trigger | escalation: delivered, the job stays locked | retry: fetched again after the
--   milliseconds, by the business clock | extend: the lock ends so many milliseconds from now | unlock: fetched again at once
-- Returns {'ok', seq or lock's end}, {'duplicate'}, {'unknown'}, {'lost'}.
-- Atomic: whoever's lock has ended, by the store's clock, changes nothing (C68).
local verb, task, id, wait, lock, delivery, payload, ms, entry, cause = unpack(ARGV, A, A + 9)
if delivery ~= '' and seen(delivery) then return { 'duplicate' } end
local stored = call('HGET', TASKS, task)
if not stored or split(stored, 3)[2] ~= 'J' then return { 'unknown' } end
local state = job_state(task)
if lock ~= '' then
  local ends = state[2] == lock and call('ZSCORE', JOBLOCKS, task)
  if not ends or tonumber(ends) <= live then return { 'lost' } end
end
if verb == 'extend' then
  if lock == '' then return { 'lost' } end
  call('ZADD', JOBLOCKS, live + tonumber(ms), task)
  return { 'ok', live + tonumber(ms) }
end
if verb == 'unlock' then
  if call('ZSCORE', JOBLOCKS, task) then job_back(task) end
  return { 'ok', 0 }
end
if verb == 'retry' then
  local f = split(call('HGET', PREFIX .. id, '~' .. wait), 9)
  call('HSET', JOBS, task, table.concat({ tonumber(state[1]) + 1, '', cause }, RS))
  call('RPUSH', PREFIX .. id .. ':h', entry)
  call('LTRIM', PREFIX .. id .. ':h', '-' .. HISTORY, -1)
  if tonumber(ms) > 0 then
    call('ZREM', JOBQ, job_member(task, f[3], f[8]))
    call('ZREM', JOBLOCKS, task)
    call('HDEL', OWNERS, task)
    call('ZADD', JOBWAIT, now + tonumber(ms), task)
    ring(BELL_TASK)
  else
    job_back(task)
  end
  remember(delivery, id)
  return { 'ok', 0 }
end
local seq = call('INCR', SEQ)
if not deliver(id, verb, wait, delivery, seq, '', 0, payload, verb == 'escalation') then return { 'unknown' } end
remember(delivery, id)
return { 'ok', seq }
