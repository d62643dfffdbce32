#!lua flags=allow-oom
-- Claims ('' releases) a human task for a user, with the refusals decided from the row's frozen eligibility (H57, H58).
-- ARGV: task, user, groups joined by RS, '1' claim | '0' unclaim | '2' reassign by an operator     Returns 'ok', 'unknown', 'owned', 'ineligible'.
-- Atomic: of concurrent claims one wins.
local task, user, groups, claim = ARGV[A], ARGV[A + 1], ARGV[A + 2], ARGV[A + 3]
local stored = call('HGET', TASKS, task)
if not stored then return 'unknown' end
if claim == '2' then
  call('HSET', OWNERS, task, user)
  return 'ok'
end
if claim == '0' then
  call('HDEL', OWNERS, task)
  return 'ok'
end
local verdict = eligible(cjson.decode(split(stored, 3)[3]), task, user, groups)
if verdict ~= 'ok' then return verdict end
call('HSET', OWNERS, task, user)
return 'ok'
