#!lua flags=allow-oom
-- Folds one accepted row. A message goes to one instance of every waiting process, or is parked if nobody took it; a signal to everyone
-- who was armed before it was accepted, a bounded number a call with the progress kept here.
-- ARGV: seq, limit, longest inbox, the message's key as its payload completes it ('' not read)     Returns {result, woken, started}, of a signal also instance, wait and fault of each damaged listener;
--   'full': its first taker can hold no more, the row stays pending; 'unread': somebody has to read its payload first, for a model says where its
--   correlation properties stand there.
-- Atomic: routing and parking are one decision, so a wait armed in between is either seen here or drains the parked message itself.
local seq, limit, longest = ARGV[A], tonumber(ARGV[A + 1]), tonumber(ARGV[A + 2])
local row = call('HGET', IN, seq)
if not row or not call('ZSCORE', PEND, seq) then
  call('ZREM', PEND, seq)
  return { 'gone', 0, 0 }
end
local delivery, kind, key, name, expires, accepted, accepted_live, payload = unpack(split(row, 8))
local woken, started = 0, 0
local read = ARGV[A + 3]
if kind == 'M' and read ~= '' then
  key = read
  call('HSET', IN, seq, table.concat({ delivery, kind, key, name, expires, accepted, accepted_live, payload }, RS))
elseif kind == 'M' and tonumber(expires) > now and call('EXISTS', string.sub(PREFIX, 1, -3) .. 'table:correlates:' .. name) == 1 then
  return { 'unread', 0, 0 }
end

-- Does a living instance of the process hold the conversation that one of these keys began? Then it is for that one to take, and parked for
-- it while it does not wait (M50).
local keys, named = { key }, nil
if kind == 'M' then keys, named = routes(key) end
local by_name = 'm' .. US .. name .. US
local function converses(process)
  for _, one in ipairs(keys) do
    if one ~= by_name and call('HGET', CONV, process .. RS .. one) then return true end
  end
  return false
end

local function start_process(process, wait)
  local pkey = PREFIX .. '@' .. process
  local f = split(call('HGET', pkey, '~' .. wait), 9)
  local version = split(call('HGET', pkey, 'df'), 2)[2]
  local id = process .. '-' .. seq
  if call('EXISTS', PREFIX .. id) == 0 then
    new_instance(id, process, version, '', call('INCR', SEQ), delivery, f[2], payload, named and key)
    started = started + 1
    if kind == 'M' and keys[1] ~= by_name then
      local begun = { unpack(keys) }
      -- The messages that must come too are of the same conversation.
      for other in string.gmatch(f[9], '[^' .. GS .. ']+') do
        for _, one in ipairs(keys) do begun[#begun + 1] = 'm' .. US .. other .. US .. string.sub(one, #by_name + 1) end
      end
      for _, one in ipairs(begun) do call('HSET', CONV, process .. RS .. one, id) end
      call('HSET', PREFIX .. id, 'cv', table.concat(begun, GS))
    end
  end
end

local function finish(result)
  call('ZREM', PEND, seq)
  call('HDEL', IN, seq)
  call('HDEL', PROGRESS, seq)
  return { result, woken, started }
end

if kind == 'S' then
  local damaged = {}
  local function told(answer)
    for _, said in ipairs(damaged) do answer[#answer + 1] = said end
    return answer
  end
  local from = call('HGET', PROGRESS, seq) or '['
  local min = from == '[' and ('[' .. key .. RS) or ('(' .. from)
  local page = call('ZRANGEBYLEX', SUBS, min, '(' .. key .. RS .. pad(tonumber(seq)), 'LIMIT', 0, limit)
  for _, member in ipairs(page) do
    local f = split(string.sub(member, #key + 2), 4)
    local id, wait = f[2], f[3]
    if string.sub(id, 1, 1) == '@' then
      start_process(f[4], wait)
    else
      -- A listener whose record is damaged must not take the signal from all the others.
      local sound, delivered = pcall(deliver, id, 'signal', wait, delivery, seq, key, 0, payload)
      if not sound then
        for _, said in ipairs({ id, wait, fault_of(delivered) }) do damaged[#damaged + 1] = said end
      elseif delivered then
        woken = woken + 1
      else
        call('ZREM', SUBS, member)
      end
    end
  end
  if #page == limit then
    call('HSET', PROGRESS, seq, page[#page])
    return told({ 'partial', woken, started })
  end
  return told(finish((woken + started > 0 or from ~= '[') and 'delivered' or 'dropped'))
end

if tonumber(expires) <= now then
  bury('expired', row)
  return finish('expired')
end

-- Instances first, one of each process; a process none of whose instances took it may be started by it.
local took, full = {}, false
local function each_process(range_key, only_starts)
  local cursor = '[' .. range_key .. RS
  while true do
    local member = call('ZRANGEBYLEX', SUBS, cursor, '(' .. range_key .. US, 'LIMIT', 0, 1)[1]
    if not member then return end
    local f = split(string.sub(member, #range_key + 2), 6)
    local process, iseq, id, wait = f[1], f[2], f[5], f[6]
    if only_starts and iseq ~= '~' then
      cursor = '[' .. range_key .. RS .. process .. RS .. '~'
    else
      local behind = '[' .. range_key .. RS .. process .. US
      if took[process] or not may_have(process, seq) then
        -- it has its copy, or had it
      elseif iseq == '~' then
        if not converses(process) then
          took[process] = true
          start_process(process, wait)
        end
      elseif contradicts(id, named) then
        behind = '(' .. member
      elseif woken + started == 0 and call('LLEN', PREFIX .. id .. ':q') >= longest then
        full = true
        return
      elseif deliver(id, 'message', wait, delivery, seq, key, expires, payload) then
        took[process] = true
        woken = woken + 1
      else
        call('ZREM', SUBS, member)
        behind = nil
      end
      cursor = behind or cursor
    end
  end
end
for _, one in ipairs(keys) do
  each_process(one, false)
  if full then return { 'full', 0, 0 } end
end
if by_name ~= keys[1] then each_process(by_name, true) end
if woken + started > 0 then return finish('delivered') end
park(seq, key, expires)
call('ZREM', PEND, seq)
return { 'parked', 0, 0 }
