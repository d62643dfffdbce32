-- Shared by every script: names of KEYS, the two clocks, and the verbs that change an instance's indexes.
-- KEYS: the fixed keys of `gobpm_ray.store.keys.FIXED`, in order.   ARGV[1]: prefix of the instances' keys (only these vary);
-- ARGV[2..5]: lease ttl, dedup window, history limit, facts limit.  A script's own arguments start at ARGV[A].
-- Strings, numbers and tokens are compared; payloads and checkpoints are never decoded.
local CLOCK, SEQ, READY, LEASES, IDLE, DUE, SUBS, IN, PEND, PROGRESS = unpack(KEYS, 1, 10)
local DEDUP, DEDUPX, PARKED, PARKX, DEAD, FACTS, TASKS, OWNERS, TOPEN, INCIDENTS = unpack(KEYS, 11, 20)
local INSTANCES, ENDED, PURGE, DEFS, DOCS = unpack(KEYS, 21, 25)
local BELL_MESSAGE, BELL_TIMER, BELL_TASK, BELL_READY, BELL_SUPERVISOR = unpack(KEYS, 26, 30)
local JOBQ, JOBLOCKS, JOBWAIT, JOBS, CONV = unpack(KEYS, 32, 36)
local PREFIX, TTL, WINDOW, HISTORY, FACTS_MAX = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4], ARGV[5]
local A = 6
-- Set by birth.lua alone, whose text stands before commit.lua's: the fields of the instance that is written for the first time.
local born
local RS, US, GS = '\30', '\31', '\29'
local call = redis.call

-- Liveness is the store's TIME. LIVENESS overrides it where a simulation drives both clocks: no engine ever writes that key,
-- and reading it costs nothing beside the business clock's.
local clocks = call('MGET', CLOCK, KEYS[31])
local live = tonumber(clocks[2])
if not live then
  local time = call('TIME')
  live = time[1] * 1000 + math.floor(time[2] / 1000)
end
local now = tonumber(clocks[1] or live)

-- The first n-1 fields of a row and the rest as the nth.
local function split(row, n)
  local out, from = {}, 1
  for i = 1, n - 1 do
    local at = string.find(row, RS, from, true)
    if not at then break end
    out[i] = string.sub(row, from, at - 1)
    from = at + 1
  end
  out[#out + 1] = string.sub(row, from)
  return out
end

local function pad(number) return string.format('%012d', number) end

-- A bell is one bit: pushed only when empty, so ringing it a thousand times costs one entry.
local function ring(bell)
  if call('LLEN', bell) == 0 then call('LPUSH', bell, '1') end
end

local function make_ready(id, from)
  if call('ZADD', READY, 'NX', from, id) == 1 then
    ring(BELL_READY)
    ring(BELL_SUPERVISOR)
  end
end

local function fact(json) call('XADD', FACTS, 'MAXLEN', '~', FACTS_MAX, '*', 'f', json) end

-- The instance that this delivery id was accepted for within the window ('' for none of them), or nil.
local function seen(delivery)
  local row = call('HGET', DEDUP, delivery)
  if not row then return nil end
  local f = split(row, 2)
  return tonumber(f[1]) > live - WINDOW and f[2] or nil
end

-- Remembers a delivery id. Trims two old ones per new one, so the window needs no sweeper.
local function remember(delivery, id)
  for _, gone in ipairs(call('ZRANGEBYSCORE', DEDUPX, '-inf', live - WINDOW, 'LIMIT', 0, 2)) do
    call('ZREM', DEDUPX, gone)
    call('HDEL', DEDUP, gone)
  end
  call('HSET', DEDUP, delivery, live .. RS .. id)
  call('ZADD', DEDUPX, live, delivery)
end

-- A wait's row: kind RS node RS key RS deadline RS group RS mode RS depth RS seq RS touch
-- kind: T timer, M message, S signal, U task, J job, I incident, and without an index C child, K conditional, N a message whose key is not known
-- yet.  mode: o once, r repeat.
local function sub_member(id, wait, kind, key, process, iseq, depth, seq)
  if kind == 'S' then
    return table.concat({ key, pad(seq), id, wait, process }, RS)
  end
  -- Order inside a key: process, oldest instance (a start subscription's `~` sorts last), innermost scope, oldest wait.
  local at = iseq == '~' and '~' or pad(iseq)
  return table.concat({ key, process, at, string.format('%02d', 99 - depth), pad(seq), id, wait }, RS)
end

-- A job that may be fetched stands in JOBQ: key (topic US urgency) RS seq RS task. One bell per topic, not one for all: a worker sleeps on
-- those of its own topics. Locked, it stands in JOBLOCKS, and while it waits for its next attempt in JOBWAIT, and nowhere else.
-- Of an instance that is held (suspended) none stands in JOBQ: what is not locked and does not wait comes back when it is resumed.
local function job_member(task, key, seq) return table.concat({ key, pad(seq), task }, RS) end

local function ring_job(key) ring(string.sub(PREFIX, 1, -3) .. 'jobbell:' .. string.match(key, '^[^' .. US .. ']*')) end

local function offer_job(task, key, seq)
  if call('HGET', PREFIX .. string.match(task, '^[^/]*'), 'st') == 's' then return end
  call('ZADD', JOBQ, 0, job_member(task, key, seq))
  ring_job(key)
end

-- Its state, absent until it is fetched: failures RS lock RS cause of the last failure
local function job_state(task)
  local row = call('HGET', JOBS, task)
  return row and split(row, 3) or { '0', '', '' }
end

-- Back to those that may be fetched, from its lock or its wait. `task` is instance/wait.
local function job_back(task)
  call('ZREM', JOBLOCKS, task)
  call('ZREM', JOBWAIT, task)
  call('HDEL', OWNERS, task)
  local id, wait = string.match(task, '^([^/]*)/(.*)$')
  local row = id and call('HGET', PREFIX .. id, '~' .. wait)
  if not row then return false end
  local f = split(row, 9)
  local state = job_state(task)
  if state[2] ~= '' then call('HSET', JOBS, task, table.concat({ state[1], '', state[3] }, RS)) end
  offer_job(task, f[3], f[8])
  return true
end

-- The instance has just been held, or goes on: its jobs may no longer be fetched, or may again. One under a lock keeps it, and its report counts.
local function hold_jobs(id, ikey, held)
  local cursor = '0'
  repeat
    local page = call('HSCAN', ikey, cursor, 'MATCH', '~*', 'COUNT', 1000)
    cursor = page[1]
    for i = 1, #page[2], 2 do
      local f = split(page[2][i + 1], 9)
      if f[1] == 'J' then
        local task = id .. '/' .. string.sub(page[2][i], 2)
        if held then
          call('ZREM', JOBQ, job_member(task, f[3], f[8]))
        elseif not call('ZSCORE', JOBLOCKS, task) and not call('ZSCORE', JOBWAIT, task) then
          offer_job(task, f[3], f[8])
        end
      end
    end
  until cursor == '0'
end

local function index_wait(id, wait, f, process, iseq, row)
  local kind, seq = f[1], tonumber(f[8])
  if kind == 'T' then
    local head = call('ZRANGE', DUE, 0, 0, 'WITHSCORES')
    call('ZADD', DUE, f[4], id .. RS .. wait)
    if not head[2] or tonumber(f[4]) < tonumber(head[2]) then ring(BELL_TIMER) end
  elseif kind == 'M' or kind == 'S' then
    call('ZADD', SUBS, 0, sub_member(id, wait, kind, f[3], process, iseq, tonumber(f[7]), seq))
  elseif kind == 'U' or kind == 'J' then
    call('HSET', TASKS, id .. '/' .. wait, now .. RS .. kind .. RS .. row)
    call('ZADD', TOPEN, seq, id .. '/' .. wait)
    if kind == 'U' then
      local assignee = cjson.decode(row).assignee
      if assignee and assignee ~= '' then call('HSET', OWNERS, id .. '/' .. wait, assignee) end
    end
    if kind == 'J' then offer_job(id .. '/' .. wait, f[3], seq) end
    ring(BELL_TASK)
  elseif kind == 'I' then
    call('ZADD', INCIDENTS, seq, id .. RS .. wait)
  end
end

local function unindex_wait(id, wait, f, process, iseq)
  local kind = f[1]
  if kind == 'T' then
    call('ZREM', DUE, id .. RS .. wait)
  elseif kind == 'M' or kind == 'S' then
    call('ZREM', SUBS, sub_member(id, wait, kind, f[3], process, iseq, tonumber(f[7]), tonumber(f[8])))
  elseif kind == 'U' or kind == 'J' then
    call('HDEL', TASKS, id .. '/' .. wait)
    call('HDEL', OWNERS, id .. '/' .. wait)
    call('ZREM', TOPEN, id .. '/' .. wait)
    if kind == 'J' then
      local task = id .. '/' .. wait
      call('ZREM', JOBQ, job_member(task, f[3], f[8]))
      call('ZREM', JOBLOCKS, task)
      call('ZREM', JOBWAIT, task)
      call('HDEL', JOBS, task)
    end
  elseif kind == 'I' then
    call('ZREM', INCIDENTS, id .. RS .. wait)
  end
end

local function identity(ikey)
  local m = call('HMGET', ikey, 'df', 'sq')
  return split(m[1], 2)[1], m[2]
end

-- The one way in which a wait ends: every exit path comes through here (D6).
local function withdraw(id, ikey, wait, process, iseq)
  local row = call('HGET', ikey, '~' .. wait)
  if not row then return nil end
  local f = split(row, 9)
  unindex_wait(id, wait, f, process, iseq)
  call('HDEL', ikey, '~' .. wait)
  return f
end

-- Takes a wait out of its race group's list.
local function leave_group(ikey, wait, group)
  local members = call('HGET', ikey, '%' .. group)
  if not members then return end
  local rest = {}
  for member in string.gmatch(members, '[^' .. RS .. ']+') do
    if member ~= wait then rest[#rest + 1] = member end
  end
  if #rest == 0 then
    call('HDEL', ikey, '%' .. group)
  else
    call('HSET', ikey, '%' .. group, table.concat(rest, RS))
  end
end

-- Of a held instance that nobody hosts a cancel ends the hold: it goes before all that came before it, and nothing of that is run.
local function push_trigger(id, ikey, status, leased, trigger, kind)
  if status ~= 'a' and kind == 'cancel' then
    call('HSET', ikey, 'st', 'a')
    call('HDEL', ikey, 'wr', 'dc')
    if call('HDEL', ikey, 'pk') == 1 then call('ZREM', INCIDENTS, id .. RS) end
    status = 'a'
    if not leased then
      call('LPUSH', ikey .. ':q', trigger)
      return make_ready(id, live)
    end
  end
  call('RPUSH', ikey .. ':q', trigger)
  if status ~= 'a' then return end
  if leased then
    call('ZREM', IDLE, id)
    ring(ikey .. ':b')
  else
    make_ready(id, live)
  end
end

-- A message's key: the canonical one, and behind it, each after a GS, what its sender names: property=value. It is looked for under each value
-- (M49); not under !property=value, which its payload says and which can only contradict. Answers the canonical keys, the first first, and the named part or nil.
local function routes(key)
  local at = string.find(key, GS, 1, true)
  if not at then return { key }, nil end
  local out, named = { string.sub(key, 1, at - 1) }, string.sub(key, at)
  local known, head = { [out[1]] = true }, string.match(key, '^m' .. US .. '[^' .. US .. ']*' .. US)
  for property, value in string.gmatch(named, GS .. '([^=' .. GS .. ']*)=([^' .. GS .. ']*)') do
    local other = head .. '=' .. value
    if string.sub(property, 1, 1) ~= '!' and not known[other] then
      known[other] = true
      out[#out + 1] = other
    end
  end
  return out, named
end

-- Has the instance learnt another value of a property that the message names? `ck`: GS property=value ... GS, each set once.
local function contradicts(id, named)
  local learnt = named and call('HGET', PREFIX .. id, 'ck')
  if not learnt then return false end
  for name, value in string.gmatch(named, GS .. '([^=' .. GS .. ']*)=([^' .. GS .. ']*)') do
    local _, last = string.find(learnt, GS .. (string.gsub(name, '^!', '')) .. '=', 1, true)
    if last and string.sub(learnt, last + 1, last + #value + 1) ~= value .. GS then return true end
  end
  return false
end

-- May an instance of this process get the row? One that was given back is for those alone that gave it back (M52).
local function may_have(process, pseq)
  local only = call('HGET', PROGRESS, pseq)
  return not only or string.find(RS .. only .. RS, RS .. process .. RS, 1, true) ~= nil
end

-- A message that nobody took stands under every key that it is looked for by, and once, under its first, in the order of expiry.
local function park(pseq, key, expires)
  local at = RS .. pad(tonumber(pseq))
  local keys = routes(key)
  for _, one in ipairs(keys) do call('ZADD', PARKED, 0, one .. at) end
  call('ZADD', PARKX, expires, keys[1] .. at)
end

-- All its entries go together: whoever finds it by one key has it.
local function unpark(pseq, key)
  local at = RS .. pad(tonumber(pseq))
  local keys = routes(key)
  for _, one in ipairs(keys) do call('ZREM', PARKED, one .. at) end
  call('ZREM', PARKX, keys[1] .. at)
end

-- A message that an instance of this process was handed and could not use: back to routing at its place.
local function give_back(pseq, key, row, process)
  local only = call('HGET', PROGRESS, pseq)
  if only then unpark(pseq, key) end
  if not only or not may_have(process, pseq) then
    call('HSET', PROGRESS, pseq, only and only .. RS .. process or process)
  end
  call('HSET', IN, pseq, row)
  call('ZADD', PEND, pseq, pseq)
end

-- Parked messages from `min` to `max` are looked at once more, each at its place; a bounded number.
local function reroute(min, max, most)
  local count = 0
  for _, member in ipairs(call('ZRANGEBYLEX', PARKED, min, max, 'LIMIT', 0, most)) do
    local pseq = tonumber(string.match(member, RS .. '(%d+)$'))
    local row = call('HGET', IN, pseq)
    call('ZREM', PARKED, member)
    -- Named twice in this page, under two of its keys, it has been seen.
    if row and not call('ZSCORE', PEND, pseq) then
      local f = split(row, 8)
      unpark(pseq, f[3])
      f[7] = live
      call('HSET', IN, pseq, table.concat(f, RS))
      call('ZADD', PEND, pseq, pseq)
      count = count + 1
    end
  end
  if count > 0 then ring(BELL_MESSAGE) end
end

-- The conversations that the instance's first message began are over: the next message of such a key begins another one (M50).
local function end_conversations(id, ikey, process, keys)
  call('HDEL', ikey, 'cv', 'ck')
  for key in string.gmatch(keys, '[^' .. GS .. ']+') do
    local field = process .. RS .. key
    if call('HGET', CONV, field) == id then call('HDEL', CONV, field) end
    reroute('[' .. key .. RS, '(' .. key .. US, 256)
  end
end

-- A trigger row: id RS kind RS wait RS seq RS key RS expires RS touch RS payload.  Addressed to a wait: a match on `once` withdraws the wait
-- and its race group, a match on `repeat` or one that is to `stay` leaves it armed. Answers false when the wait is not armed or the
-- instance has ended.
local function deliver(id, kind, wait, delivery, seq, key, expires, payload, stay)
  local ikey = PREFIX .. id
  local m = call('HMGET', ikey, 'st', 'tk', 'df', 'sq', '~' .. wait)
  local status, token = m[1], m[2]
  if status ~= 'a' and status ~= 's' then return false end
  local touch = ''
  if wait ~= '' then
    if not m[5] then return false end
    local process, iseq = split(m[3], 2)[1], m[4]
    local f = split(m[5], 9)
    touch = f[9]
    if f[6] == 'o' and not stay then
      local members = f[5] ~= '' and call('HGET', ikey, '%' .. f[5])
      if members then
        for member in string.gmatch(members, '[^' .. RS .. ']+') do withdraw(id, ikey, member, process, iseq) end
        call('HDEL', ikey, '%' .. f[5])
      end
      unindex_wait(id, wait, f, process, iseq)
      call('HDEL', ikey, '~' .. wait)
    end
  end
  local trigger = table.concat({ delivery, kind, wait, seq, key, expires, touch, payload }, RS)
  push_trigger(id, ikey, status, token, trigger, kind)
  return true
end

-- What is wrong, in words: of an error that `pcall` caught.
local function fault_of(caught)
  return type(caught) == 'table' and caught.err or tostring(caught)
end

-- Writes a new instance with its start trigger; `node` travels in the trigger's wait field.
local function new_instance(id, process, version, business, seq, delivery, node, payload, key)
  local ikey = PREFIX .. id
  call('HSET', ikey, 'st', 'a', 'v', 0, 'ep', 0, 'df', process .. RS .. version, 'bk', business, 'sq', seq, 'cr', now)
  call('ZADD', INSTANCES, seq, id)
  call('RPUSH', ikey .. ':q', table.concat({ delivery, 'start', node, seq, key or '', 0, '', payload }, RS))
  make_ready(id, live)
end

-- Accepts a message or signal row: id RS kind RS key RS name RS expires RS accepted RS accepted_live RS payload
local function accept_row(seq, delivery, kind, key, name, ttl, payload)
  local expires = kind == 'M' and now + ttl or 0
  call('HSET', IN, seq, table.concat({ delivery, kind, key, name, expires, now, live, payload }, RS))
  call('ZADD', PEND, seq, seq)
  ring(BELL_MESSAGE)
end

-- A data store of the engine: version RS business time RS by (an instance, or '' for an operator) RS secret RS value. Its version is a
-- place in the one order, so it is never the same again, also not of a store that was dropped and written anew.
local function data_table() return string.sub(PREFIX, 1, -3) .. 'table:data' end

local function data_version(name)
  local row = call('HGET', data_table(), name)
  return row and split(row, 2)[1] or '0'
end

local function write_data(name, by, secret, value)
  local version = call('INCR', SEQ)
  call('HSET', data_table(), name, table.concat({ version, now, by, secret, value }, RS))
  return version
end

-- Leases the oldest ready instance: {id, epoch, now, inbox length, complete, number of fields, field, value, ..., trigger, ...}
local function reply_claim(id, ikey, epoch, whole, limit)
  local triggers = call('LRANGE', ikey .. ':q', 0, limit - 1)
  local count = #triggers < limit and #triggers or call('LLEN', ikey .. ':q')
  local complete, fields = 1, nil
  if whole == 0 or call('HLEN', ikey) > whole then
    local names = { 'st', 'v', 'ep', 'df', 'bk', 'dc', 'pa', '.h' }
    local seen = {}
    complete = 0
    for _, trigger in ipairs(triggers) do
      local touch = split(trigger, 8)[7]
      if touch == '' then complete = 1 break end
      for part in string.gmatch(touch, '[^,]+') do
        if not seen[part] then
          seen[part] = true
          names[#names + 1] = '.' .. part
        end
      end
    end
    if #triggers == 0 then complete = 1 end
    if complete == 0 then
      local values = call('HMGET', ikey, unpack(names))
      fields = {}
      for i, name in ipairs(names) do
        if values[i] then
          fields[#fields + 1] = name
          fields[#fields + 1] = values[i]
        end
      end
    end
  end
  fields = fields or call('HGETALL', ikey)
  local out = { id, epoch, now, count, complete, #fields }
  local n = 6
  for i = 1, #fields do out[n + i] = fields[i] end
  n = n + #fields
  for i = 1, #triggers do out[n + i] = triggers[i] end
  return out
end

local function claim_next(token, whole, limit)
  for _ = 1, 32 do
    local head = call('ZRANGE', READY, 0, 0, 'WITHSCORES')
    if not head[1] or tonumber(head[2]) > live then return nil end
    local id = head[1]
    local ikey = PREFIX .. id
    call('ZREM', READY, id)
    local m = call('HMGET', ikey, 'st', 'tk', 'ep')
    if m[1] == 'a' and not m[2] then
      local epoch = tonumber(m[3] or 0) + 1
      call('HSET', ikey, 'tk', token, 'ep', epoch)
      call('ZADD', LEASES, live + TTL, id)
      return reply_claim(id, ikey, epoch, whole, limit)
    end
  end
  return nil
end

-- Puts a leased instance back without consuming anything.
local function requeue(id, ikey, from)
  call('HDEL', ikey, 'tk', 'wk')
  call('ZREM', LEASES, id)
  call('ZREM', IDLE, id)
  call('DEL', ikey .. ':b')
  if call('HGET', ikey, 'st') == 'a' then
    make_ready(id, from)
  else
    call('HSET', ikey, 'wr', 1)
  end
end

-- A host ended without a word. It counts against the instance (`dc`) only when real work had begun under the lease: `wk`, written by a renewal
-- and by a commit that keeps the lease. Any death in work leaves `dc` behind, if only 0: whoever claims next renews before anything else, so
-- that the second death counts, however early it comes. A resident that merely waits kills nobody.
local function died(id, ikey)
  if not call('ZSCORE', IDLE, id) then call('HINCRBY', ikey, 'dc', call('HEXISTS', ikey, 'wk')) end
  requeue(id, ikey, live)
end

-- A dead letter, now RS reason RS row; the newest ten thousand are kept.
local function bury(reason, row)
  call('LPUSH', DEAD, now .. RS .. reason .. RS .. row)
  call('LTRIM', DEAD, 0, 9999)
end

-- Our lease, live and unexpired by the store's clock?
local function leased(id, ikey, token)
  if call('HGET', ikey, 'tk') ~= token then return false end
  local expiry = call('ZSCORE', LEASES, id)
  return expiry and tonumber(expiry) > live
end

-- A trigger that found its instance ended, in the instance's history and as a fact: as the core says it of one that it reads.
local function overtaken(id, ikey, process, kind, wait)
  local node = string.match(wait, '^[^:]*:(.*):[^:]*:[^:]*$')
  local named = node and ',"n":' .. cjson.encode(node) or ''
  call('RPUSH', ikey .. ':h', string.format('{"e":"overtaken","t":%d%s,"d":"%s"}', now, named, kind))
  call('LTRIM', ikey .. ':h', '-' .. HISTORY, -1)
  local whose = cjson.encode(id) .. ',"process":' .. cjson.encode(process)
  fact(string.format('{"fact":"Overtaken","instance":%s,"at":%d,"trigger":"%s","wait":%s}', whose, now, kind, cjson.encode(wait)))
end

-- Removes what an ended instance still holds, in bounded batches: its waits with their index entries, its parts but the head and the
-- final variables, and its inbox, whose messages go back to routing at their place. Answers true when nothing is left.
local function purge(id, budget)
  local ikey = PREFIX .. id
  -- Read when the first wait or trigger asks for it: most instances end with neither.
  local process, iseq
  local drop = {}
  local cursor, scanned = '0', 0
  repeat
    local page = call('HSCAN', ikey, cursor, 'COUNT', 200)
    cursor = page[1]
    for i = 1, #page[2], 2 do
      local name, first = page[2][i], string.sub(page[2][i], 1, 1)
      if first == '~' then
        if not process then process, iseq = identity(ikey) end
        unindex_wait(id, string.sub(name, 2), split(page[2][i + 1], 9), process, iseq)
        drop[#drop + 1] = name
      elseif first == '%' or (first == '.' and name ~= '.h' and name ~= '.s0') then
        drop[#drop + 1] = name
      end
    end
    scanned = scanned + #page[2] / 2
  until cursor == '0' or #drop >= budget or scanned >= 4 * budget
  for from = 1, #drop, 1000 do call('HDEL', ikey, unpack(drop, from, math.min(from + 999, #drop))) end
  local returned, emptied = 0, false
  for _ = 1, budget do
    local trigger = call('LPOP', ikey .. ':q')
    if not trigger then
      emptied = true
      break
    end
    if not process then process, iseq = identity(ikey) end
    local f = split(trigger, 8)
    if f[2] == 'message' then
      local name = split((string.gsub(f[5], US, RS)), 3)[2]
      give_back(f[4], f[5], table.concat({ f[1], 'M', f[5], name, f[6], now, live, f[8] }, RS), process)
      returned = returned + 1
    else
      -- It came while the last step ran: its sender was told "accepted", so its end must be seen as well.
      overtaken(id, ikey, process, f[2], f[3])
    end
  end
  if returned > 0 then ring(BELL_MESSAGE) end
  if cursor == '0' and #drop < budget and emptied then
    call('ZREM', PURGE, id)
    return true
  end
  return false
end

-- May the user have this task? `row`: the task's decoded row, frozen when it was created.
local function eligible(row, task, user, groups)
  local owner = call('HGET', OWNERS, task)
  if owner then return owner == user and 'ok' or 'owned' end
  local users, wanted = row.users or {}, row.groups or {}
  if #users == 0 and #wanted == 0 then return 'ok' end
  for _, name in ipairs(users) do
    if name == user then return 'ok' end
  end
  for group in string.gmatch(groups, '[^' .. RS .. ']+') do
    for _, name in ipairs(wanted) do
      if name == group then return 'ok' end
    end
  end
  return 'ineligible'
end
