#!lua
-- Starts an instance for a due start timer and arms its next occurrence in the same moment.
-- ARGV: process (with its @), wait, deadline, next wait ('' none), next deadline, next row     Returns 1 or 0.
local owner, wait, deadline, next_wait, next_deadline, next_row = unpack(ARGV, A, A + 5)
local member = owner .. RS .. wait
local score = call('ZSCORE', DUE, member)
if not score or tonumber(score) ~= tonumber(deadline) or tonumber(score) > now then return 0 end
local pkey = PREFIX .. owner
local process, version = unpack(split(call('HGET', pkey, 'df'), 2))
local f = withdraw(owner, pkey, wait, process, '~')
local seq = call('INCR', SEQ)
new_instance(process .. '-' .. seq, process, version, '', seq, owner .. '/' .. wait, f[2], '{}')
if next_wait ~= '' then
  local g = { 'T', f[2], f[3], next_deadline, '', 'o', 0, call('INCR', SEQ), next_row }
  call('HSET', pkey, '~' .. next_wait, table.concat(g, RS))
  index_wait(owner, next_wait, g, process, '~', '')
end
return 1
