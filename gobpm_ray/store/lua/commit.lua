#!lua flags=allow-oom
-- The one commit: consumes triggers, writes parts, arms and withdraws waits, accepts what the step sends, writes history and facts, and
-- keeps, releases or ends, then claims the next ready instance for the freed actor.
-- ARGV: instance, token, version, commit id, residency, outcome, next token, max resident, whole, claim limit, then counted sections:
--   parts (name, value) | removed (name) | consumed (id) | returned (seq, id, key, name, expires, payload) | withdrawals (wait)
--   arms (wait, kind, node, key, deadline, group, mode, depth, touch, row) | sends (id, kind, key, name, ttl, payload) | history | facts | facts if released
-- Returns {kept, version, inbox length, now, claim...} or {'lost', why} or {'inbox'}.
-- Atomic: all of a step or none of it, refused without a trace unless the lease is live (promise 3, N8). Everything is validated before the first write.
local id, token, version, commit, residency, outcome, next_token = unpack(ARGV, A, A + 6)
local max_resident, whole, limit = tonumber(ARGV[A + 7]), tonumber(ARGV[A + 8]), tonumber(ARGV[A + 9])
local ikey, inbox = PREFIX .. id, PREFIX .. id .. ':q'
local at = A + 10

-- A section's width in arguments is fixed; answers where its rows start and how many there are.
local function section(width)
  local count = tonumber(ARGV[at])
  local first = at + 1
  at = first + count * width
  return first, count
end

local m = call('HMGET', ikey, 'tk', 'v', 'cm', 'df', 'sq', 'st')

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
  local out = { kept, new_version, call('LLEN', inbox), now }
  if claim then
    for i = 1, #claim do out[4 + i] = claim[i] end
  end
  return out
end

if m[3] == commit then return answer(m[1] == token and 1 or 0, tonumber(m[2]), next_of_retry()) end
local expiry = m[1] == token and call('ZSCORE', LEASES, id)
if not expiry or tonumber(expiry) <= live then
  local claim = next_of_retry()
  if claim then return answer(0, tonumber(version) + 1, claim) end
  return { 'lost', m[1] == token and 'the lease had expired' or 'another holds the lease' }
end
if m[2] ~= version then return { 'lost', 'the checkpoint is at version ' .. m[2] .. ', not ' .. version } end

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

local returned, n_returned = section(6)
for i = 0, n_returned - 1 do
  local pseq, delivery, key, name, expires, payload = unpack(ARGV, returned + 6 * i, returned + 6 * i + 5)
  call('HSET', IN, pseq, table.concat({ delivery, 'M', key, name, expires, now, live, payload }, RS))
  call('ZADD', PEND, pseq, pseq)
end
if n_returned > 0 then ring(BELL_MESSAGE) end

local gone, n_gone = section(1)
for i = 0, n_gone - 1 do
  local f = withdraw(id, ikey, ARGV[gone + i], process, iseq)
  if f and f[5] ~= '' then leave_group(ikey, ARGV[gone + i], f[5]) end
end

local arms, n_arms = section(10)
local groups, messages, seq = {}, {}, 0
if n_arms > 0 then seq = call('INCRBY', SEQ, n_arms) - n_arms end
for i = 0, n_arms - 1 do
  local wait, kind, node, key, deadline, group, mode, depth, touch, row = unpack(ARGV, arms + 10 * i, arms + 10 * i + 9)
  seq = seq + 1
  local f = { kind, node, key, deadline, group, mode, depth, seq, touch }
  set[#set + 1] = '~' .. wait
  set[#set + 1] = table.concat(f, RS)
  index_wait(id, wait, f, process, iseq, row)
  if group ~= '' then
    groups[group] = groups[group] or {}
    table.insert(groups[group], wait)
  end
  if kind == 'M' then messages[#messages + 1] = { wait, key } end
end
for group, members in pairs(groups) do
  -- A retried activity joins the race of its boundaries, which stayed armed.
  local before = call('HGET', ikey, '%' .. group)
  for member in string.gmatch(before or '', '[^' .. RS .. ']+') do members[#members + 1] = member end
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

for i = 0, n_parts - 1 do
  set[#set + 1] = '.' .. ARGV[parts + 2 * i]
  set[#set + 1] = ARGV[parts + 2 * i + 1]
end
for from = 1, #set, 2000 do call('HSET', ikey, unpack(set, from, math.min(from + 1999, #set))) end
for i = 0, n_removed - 1 do call('HDEL', ikey, '.' .. ARGV[removed + i]) end

local history, n_history = section(1)
if n_history > 0 then
  for from = 0, n_history - 1, 1000 do
    call('RPUSH', ikey .. ':h', unpack(ARGV, history + from, history + math.min(from + 1000, n_history) - 1))
  end
  call('LTRIM', ikey .. ':h', '-' .. HISTORY, -1)
end
local facts, n_facts = section(1)
for i = 0, n_facts - 1 do fact(ARGV[facts + i]) end
local release_facts, n_release_facts = section(1)

-- Messages that came before their catch, oldest first: one for a `once` wait, all for a `repeat`. The withdrawal of a taken
-- wait's race group makes the later ones of the group unarmed, and `deliver` answers false for those.
for _, armed in ipairs(messages) do
  local wait, key = armed[1], armed[2]
  while true do
    local member = call('ZRANGEBYLEX', PARKED, '[' .. key .. RS, '(' .. key .. US, 'LIMIT', 0, 1)[1]
    if not member then break end
    local pseq = tonumber(string.sub(member, #key + 2))
    local row = call('HGET', IN, pseq)
    local f = row and split(row, 8)
    if f and tonumber(f[5]) > now then
      if not deliver(id, 'message', wait, f[1], pseq, key, f[5], f[8]) then break end
    elseif f then
      bury('expired', row)
    end
    call('ZREM', PARKED, member)
    call('ZREM', PARKX, member)
    call('HDEL', IN, pseq)
  end
end

local kept = 0
if outcome ~= '' then
  call('HSET', ikey, 'st', outcome == 'completed' and 'c' or 't')
  call('ZADD', ENDED, live, id)
  call('ZADD', PURGE, live, id)
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
  call('HDEL', ikey, 'tk', 'dc', 'wk')
  call('ZREM', LEASES, id)
  call('ZREM', IDLE, id)
  call('DEL', ikey .. ':b')
  if outcome ~= '' then
    purge(id, 400)
  elseif m[6] == 'a' and call('LLEN', inbox) > 0 then
    make_ready(id, live)
  end
  if next_token ~= '' then return answer(0, new_version, claim_next(next_token, whole, limit)) end
end
return answer(kept, new_version, nil)
