#!lua flags=allow-oom
-- Completes a human task or a job: checks the frozen row, then delivers the completion to its instance.
-- ARGV: task, instance, wait, user ('' operator), groups joined by RS, output names joined by RS, delivery, payload, strict ('1')
-- Returns {'ok', seq}, {'duplicate'}, {'unknown'}, {'owned'}, {'ineligible'}, {'missing', name}, {'unclaimed'}.
-- Atomic: a refusal changes nothing; an acceptance withdraws the task and its race group with the trigger in the inbox.
local task, id, wait, user, groups, names, delivery, payload, strict = unpack(ARGV, A, A + 8)
if seen(delivery) then return { 'duplicate' } end
local stored = call('HGET', TASKS, task)
if not stored then return { 'unknown' } end
local f = split(stored, 3)
local row = cjson.decode(f[3])
if user ~= '' then
  local verdict = eligible(row, task, user, groups)
  if verdict ~= 'ok' then return { verdict } end
end
if strict == '1' and f[2] == 'U' and user ~= '' and not call('HGET', OWNERS, task) then return { 'unclaimed' } end
local given = {}
for name in string.gmatch(names, '[^' .. RS .. ']+') do given[name] = true end
for _, name in ipairs(row.required or {}) do
  if not given[name] then return { 'missing', name } end
end
local seq = call('INCR', SEQ)
if not deliver(id, f[2] == 'U' and 'task' or 'job', wait, delivery, seq, '', 0, payload) then return { 'unknown' } end
remember(delivery, id)
return { 'ok', seq }
