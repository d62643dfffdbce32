#!lua
-- A version of a process unless the newest has the same document; its start events are armed and the older version's withdrawn. A start
-- event of the same node, kind and key (a timer's text) keeps its wait: its deadline (T44), and its place before a pending broadcast.
-- ARGV: process, digest, document, then per start: wait, kind, node, key, deadline, row     Returns {version, created}.
-- Atomic: at no moment is a process without its starts, or with both versions'.
local process, digest, document = ARGV[A], ARGV[A + 1], ARGV[A + 2]
local newest = call('HGET', DEFS, process)
-- Stored in any case: instances that are pinned to a document that was lost go on when it is deployed again (F32).
call('HSETNX', DOCS, digest, document)
if newest and call('HGET', DEFS, process .. RS .. newest) == digest then return { tonumber(newest), 0 } end
local version = tonumber(newest or 0) + 1
call('HSET', DEFS, process, version, process .. RS .. version, digest)
local owner = '@' .. process
local pkey = PREFIX .. owner
call('HSET', pkey, 'df', process .. RS .. version, 'sq', '~')

local kept = {}
local fields = call('HGETALL', pkey)
for i = 1, #fields, 2 do
  if string.sub(fields[i], 1, 1) == '~' then
    local f = split(fields[i + 1], 9)
    local same = false
    for s = A + 3, #ARGV, 6 do
      if ARGV[s + 1] == f[1] and ARGV[s + 2] == f[2] and ARGV[s + 3] == f[3] and (f[1] == 'T' or ARGV[s + 5] == f[9]) then
        same = true
        kept[s] = true
      end
    end
    if not same then withdraw(owner, pkey, string.sub(fields[i], 2), process, '~') end
  end
end
for s = A + 3, #ARGV, 6 do
  if not kept[s] then
    local wait, kind, node, key, deadline, row = unpack(ARGV, s, s + 5)
    local f = { kind, node, key, deadline, '', kind == 'T' and 'o' or 'r', 0, call('INCR', SEQ), row }
    call('HSET', pkey, '~' .. wait, table.concat(f, RS))
    index_wait(owner, wait, f, process, '~', row)
    -- What came before its start was deployed begins an instance now.
    if kind == 'M' then
      -- By its name alone: whatever the key, which stands behind the name's US.
      local behind = string.sub(key, -1) == US and string.sub(key, 1, -2) .. ' ' or key .. US
      reroute('[' .. key .. (string.sub(key, -1) == US and '' or RS), '(' .. behind, 1000)
    end
  end
end
return { version, 1 }
