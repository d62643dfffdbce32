#!lua flags=allow-oom
-- The one commit: consumes triggers, writes parts, arms and withdraws waits, accepts what the step sends, writes history and facts, and
-- keeps, releases or ends, then claims the next ready instance for the freed actor. birth.lua runs the same text for an instance that begins.
-- ARGV: instance, token, version, commit id, residency, outcome, next token, max resident, whole, claim limit, max call depth, learnt keys ('' as before),
--   if the step has to do with data stores 'data' and the section (name, version read or -1, written, secret, value), then counted
--   sections: parts (name, value) | removed (name) | consumed (id) | returned (seq, id, key, name, expires, payload) | withdrawals (wait)
--   arms (wait, kind, node, key, deadline, group or group GS wait whose race it joins, mode, depth, touch, row) | sends (id, kind, key, name, ttl, payload)
--   addressed sends (id, kind, to, wait, process, version, business key, payload) | history | facts | facts if released
-- Returns {kept, version, inbox length, now, how many more are ready, claim...} or {'lost', why} or {'inbox'} or {'changed', data store}.
-- Atomic: all of a step or none of it, refused without a trace unless the lease is live (promise 3, N8). Everything is validated before the first write.
local id, token, version, commit, residency, outcome, next_token = unpack(ARGV, A, A + 6)
local max_resident, whole, limit = tonumber(ARGV[A + 7]), tonumber(ARGV[A + 8]), tonumber(ARGV[A + 9])
local max_depth, learnt = tonumber(ARGV[A + 10]), ARGV[A + 11]
local ikey, inbox = PREFIX .. id, PREFIX .. id .. ':q'
local at = A + 12

-- A section's width in arguments is fixed; answers where its rows start and how many there are.
local function section(width)
  local count = tonumber(ARGV[at])
  local first = at + 1
  at = first + count * width
  return first, count
end

local m = born or call('HMGET', ikey, 'tk', 'v', 'cm', 'df', 'sq', 'st', 'cv', 'ck')

-- A retry after a lost reply: this commit's id, or the lease that only it can have taken.
local function next_of_retry()
  if next_token == '' then return nil end
  for _, other in ipairs(call('ZRANGE', LEASES, 0, -1)) do
    local okey = PREFIX .. other
    if call('HGET', okey, 'tk') == next_token then
      return reply_claim(other, okey, tonumber(call('HGET', okey, 'ep')), whole, limit)
    end
  end
end

local function answer(kept, new_version, claim)
  local out = { kept, new_version, call('LLEN', inbox), now, 0 }
  if claim then
    out[5] = call('ZCARD', READY)
    for i = 1, #claim do out[5 + i] = claim[i] end
  end
  return out
end

if not born then
  if m[3] == commit then return answer(m[1] == token and 1 or 0, tonumber(m[2]), next_of_retry()) end
  local expiry = m[1] == token and call('ZSCORE', LEASES, id)
  if not expiry or tonumber(expiry) <= live then
    local claim = next_of_retry()
    if claim then return answer(0, tonumber(version) + 1, claim) end
    return { 'lost', m[1] == token and 'the lease had expired' or 'another holds the lease' }
  end
  if m[2] ~= version then return { 'lost', 'the checkpoint is at version ' .. m[2] .. ', not ' .. version } end
end

-- What was read must be as it was read: a step that another's write overtook is made again (docs/adr/0008).
local uses, n_uses = 0, 0
if ARGV[at] == 'data' then
  at = at + 1
  uses, n_uses = section(5)
end
for i = 0, n_uses - 1 do
  local name, wanted = ARGV[uses + 5 * i], ARGV[uses + 5 * i + 1]
  if wanted ~= '-1' and data_version(name) ~= wanted then return { 'changed', name } end
end

local parts, n_parts = section(2)
local removed, n_removed = section(1)
local consumed, n_consumed = section(1)
if n_consumed > 0 then
  local head = call('LRANGE', inbox, 0, n_consumed - 1)
  if #head < n_consumed then return { 'inbox' } end
  for i = 1, n_consumed do
    local wanted = ARGV[consumed + i - 1] .. RS
    if string.sub(head[i], 1, #wanted) ~= wanted then return { 'inbox' } end
  end
  call('LTRIM', inbox, n_consumed, -1)
end
local process, iseq = split(m[4], 2)[1], m[5]
local new_version = tonumber(version) + 1
local set = { 'v', new_version, 'cm', commit }
if outcome ~= '' then
  set[5], set[6] = 'st', outcome == 'completed' and 'c' or 't'
elseif learnt ~= '' then
  set[5], set[6] = 'ck', learnt
end
if born then
  for _, each in ipairs({ 'ep', 1, 'df', m[4], 'sq', iseq, 'bk', m[9], 'cr', m[10] }) do set[#set + 1] = each end
  if outcome == '' then
    set[#set + 1] = 'st'
    set[#set + 1] = 'a'
  end
end

local returned, n_returned = section(6)
for i = 0, n_returned - 1 do
  local pseq, delivery, key, name, expires, payload = unpack(ARGV, returned + 6 * i, returned + 6 * i + 5)
  give_back(pseq, key, table.concat({ delivery, 'M', key, name, expires, now, live, payload }, RS), process)
end
if n_returned > 0 then ring(BELL_MESSAGE) end

local gone, n_gone = section(1)
for i = 0, n_gone - 1 do
  local f = withdraw(id, ikey, ARGV[gone + i], process, iseq)
  if f and f[5] ~= '' then leave_group(ikey, ARGV[gone + i], f[5]) end
end

local arms, n_arms = section(10)
local groups, messages, seq, places = {}, {}, 0, {}
-- The race of a wait that is armed already. If it was in none, it is in this one now; an unkeyed wait is gone, for another takes its place.
local function race_of(with, group, mode)
  if places[with] then return places[with] end
  local row = call('HGET', ikey, '~' .. with)
  if not row then return group end
  local f = split(row, 9)
  if f[5] ~= '' then group = f[5] end
  if f[1] == 'N' then
    call('HDEL', ikey, '~' .. with)
    if group == f[5] then leave_group(ikey, with, group) end
  elseif mode == 'o' then
    f[5] = group
    call('HSET', ikey, '~' .. with, table.concat(f, RS))
    groups[group] = groups[group] or {}
    table.insert(groups[group], with)
  end
  places[with] = group
  return group
end
if n_arms > 0 then seq = call('INCRBY', SEQ, n_arms) - n_arms end
for i = 0, n_arms - 1 do
  local wait, kind, node, key, deadline, group, mode, depth, touch, row = unpack(ARGV, arms + 10 * i, arms + 10 * i + 9)
  seq = seq + 1
  local joined = string.find(group, GS, 1, true)
  if joined then group = race_of(string.sub(group, joined + 1), string.sub(group, 1, joined - 1), mode) end
  local f = { kind, node, key, deadline, group, mode, depth, seq, touch }
  set[#set + 1] = '~' .. wait
  set[#set + 1] = table.concat(f, RS)
  index_wait(id, wait, f, process, iseq, row)
  if group ~= '' then
    groups[group] = groups[group] or {}
    table.insert(groups[group], wait)
  end
  if kind == 'M' then messages[#messages + 1] = { wait, key, mode } end
end
for group, members in pairs(groups) do
  -- A retried activity joins the race of its boundaries, which stayed armed.
  local before = call('HGET', ikey, '%' .. group)
  local named = {}
  for _, member in ipairs(members) do named[member] = true end
  for member in string.gmatch(before or '', '[^' .. RS .. ']+') do
    if not named[member] then members[#members + 1] = member end
  end
  if #members > 1 then
    set[#set + 1] = '%' .. group
    set[#set + 1] = table.concat(members, RS)
  end
end

local sends, n_sends = section(6)
for i = 0, n_sends - 1 do
  local delivery, kind, key, name, ttl, payload = unpack(ARGV, sends + 6 * i, sends + 6 * i + 5)
  accept_row(call('INCR', SEQ), delivery, kind, key, name, tonumber(ttl), payload)
end

local addressed, n_addressed = section(8)

for i = 0, n_parts - 1 do
  set[#set + 1] = '.' .. ARGV[parts + 2 * i]
  set[#set + 1] = ARGV[parts + 2 * i + 1]
end
for from = 1, #set, 2000 do call('HSET', ikey, unpack(set, from, math.min(from + 1999, #set))) end
local drop = {}
for i = 0, n_removed - 1 do drop[i + 1] = '.' .. ARGV[removed + i] end
for from = 1, #drop, 1000 do call('HDEL', ikey, unpack(drop, from, math.min(from + 999, #drop))) end

for i = 0, n_uses - 1 do
  local name, _, written, secret, value = unpack(ARGV, uses + 5 * i, uses + 5 * i + 4)
  if written == '1' then write_data(name, id, secret, value) end
end

local history, n_history = section(1)
if n_history > 0 then
  local lines
  for from = 0, n_history - 1, 1000 do
    lines = call('RPUSH', ikey .. ':h', unpack(ARGV, history + from, history + math.min(from + 1000, n_history) - 1))
  end
  if lines > tonumber(HISTORY) then call('LTRIM', ikey .. ':h', '-' .. HISTORY, -1) end
end
local facts, n_facts = section(1)
for i = 0, n_facts - 1 do fact(ARGV[facts + i]) end
local release_facts, n_release_facts = section(1)

-- Messages that came before their catch, oldest first: one for a `once` wait, all for a `repeat`. The withdrawal of a taken
-- wait's race group makes the later ones of the group unarmed, and `deliver` answers false for those. An older one that its taker gave back
-- goes first and is still pending: then the parked ones queue up behind it again (M53).
local function older_pending(key, pseq)
  for _, other in ipairs(call('ZRANGEBYSCORE', PEND, '-inf', '(' .. pseq, 'LIMIT', 0, 256)) do
    local row = call('HGET', IN, other)
    local rf = row and split(row, 4)
    if rf and rf[2] == 'M' and may_have(process, other) then
      for _, one in ipairs(routes(rf[3])) do
        if one == key then return true end
      end
    end
  end
  return false
end
for _, armed in ipairs(messages) do
  local wait, key, mode = armed[1], armed[2], armed[3]
  local from, passed = '[' .. key .. RS, 0
  while passed < 256 do
    local member = call('ZRANGEBYLEX', PARKED, from, '(' .. key .. US, 'LIMIT', 0, 1)[1]
    if not member then break end
    local pseq = tonumber(string.sub(member, #key + 2))
    local row = call('HGET', IN, pseq)
    local f = row and split(row, 8)
    local _, named = routes(f and f[3] or '')
    local others = f and tonumber(f[5]) > now and (not may_have(process, pseq) or contradicts(id, named))
    local behind = f and not others and tonumber(f[5]) > now and older_pending(key, pseq)
    if others then
      -- Not for this one: it stays where it is.
      from, passed = '(' .. member, passed + 1
    elseif behind then
      f[7] = live
      call('HSET', IN, pseq, table.concat(f, RS))
      call('ZADD', PEND, pseq, pseq)
      ring(BELL_MESSAGE)
    elseif f and tonumber(f[5]) > now then
      if not deliver(id, 'message', wait, f[1], pseq, f[3], f[5], f[8]) then break end
    elseif f then
      bury('expired', row)
    end
    if f and not others then unpark(pseq, f[3]) end
    if not f then call('ZREM', PARKED, member) end
    if not (behind or others) then
      call('HDEL', IN, pseq)
      call('HDEL', PROGRESS, pseq)
    end
    if behind and mode == 'o' then break end
  end
end

-- Called instances begin here, and the ends and escalations of those that were called reach their callers' waits. What comes too late is
-- nobody's concern. Named by whoever waits, so each costs the same whatever else its receiver waits for.
local level = n_addressed > 0 and tonumber(call('HGET', ikey, 'lv') or 0)
for i = 0, n_addressed - 1 do
  local delivery, kind, to, wait, called, wanted, business, payload = unpack(ARGV, addressed + 8 * i, addressed + 8 * i + 7)
  if kind == 'start' then
    local number = wanted == '0' and call('HGET', DEFS, called) or wanted
    local why
    if level >= max_depth then
      why = 'calls nest deeper than ' .. max_depth .. ": process '" .. called .. "' is not called"
    elseif not number or not call('HGET', DEFS, called .. RS .. number) then
      why = "process '" .. called .. "'" .. (wanted == '0' and '' or ' version ' .. wanted) .. ' is not deployed; deploy it and retry'
    elseif call('EXISTS', PREFIX .. to) == 1 then
      why = "instance '" .. to .. "' exists already"
    end
    if why then
      local place = call('INCR', SEQ)
      if outcome == '' then deliver(id, 'failed', wait, delivery, place, '', 0, cjson.encode({ cause = why })) end
    else
      new_instance(to, called, number, business, call('INCR', SEQ), delivery, '', payload)
      call('HSET', PREFIX .. to, 'pa', id .. RS .. wait, 'lv', level + 1)
    end
  else
    local place = call('INCR', SEQ)
    -- To itself, with its end: it comes too late.
    if to ~= id or outcome == '' then deliver(to, kind, wait, delivery, place, '', 0, payload, kind == 'escalation') end
  end
end

-- What it sent to itself may have ended its hold.
if n_addressed > 0 then m[6] = call('HGET', ikey, 'st') end
local kept = 0
if outcome ~= '' then
  call('ZADD', ENDED, live, id)
  if m[7] or m[8] then end_conversations(id, ikey, process, m[7] or '') end
else
  local idle = false
  kept = residency == 'keep' and 1 or 0
  if residency == 'either' and m[6] == 'a' then
    if call('LLEN', inbox) > 0 then
      kept = 1
    elseif call('ZCOUNT', READY, '-inf', live) == 0 and call('ZCARD', LEASES) <= max_resident then
      kept = 1
      idle = true
    end
  end
  if kept == 1 then
    call('ZADD', LEASES, live + TTL, id)
    if idle then
      call('ZADD', IDLE, live, id)
      call('HDEL', ikey, 'dc', 'wk')
    else
      -- An intent may be open from here on: a death before the next commit counts.
      call('HDEL', ikey, 'dc')
      call('HSET', ikey, 'wk', 1)
    end
  end
end

if kept == 0 then
  for i = 0, n_release_facts - 1 do fact(ARGV[release_facts + i]) end
  if not born then
    call('HDEL', ikey, 'tk', 'dc', 'wk')
    call('ZREM', LEASES, id)
    call('ZREM', IDLE, id)
    call('DEL', ikey .. ':b')
  end
  if outcome ~= '' then
    -- Nearly always all of it goes here; what is left of a wide instance goes in later batches.
    if not purge(id, 400) then call('ZADD', PURGE, live, id) end
  elseif m[6] == 'a' and call('LLEN', inbox) > 0 then
    make_ready(id, live)
  end
  if born then return { id, 0, iseq } end
  if next_token ~= '' then return answer(0, new_version, claim_next(next_token, whole, limit)) end
end
return answer(kept, new_version, nil)
