#!lua flags=allow-oom
-- The operator's hold: a suspended instance keeps its triggers and is not claimed, and its jobs are not fetched (D21).
-- ARGV: instance, '1' suspend | '0' resume     Returns 1 changed, 0 was so, -1 unknown, -2 ended.
-- `wr` says that it would be ready: not only unread triggers make it so, but also the open effects of a host that died.
-- Atomic: a resumed instance with something to do is ready in the same moment.
local id, on = ARGV[A], ARGV[A + 1]
local ikey = PREFIX .. id
local m = call('HMGET', ikey, 'st', 'tk')
if not m[1] then return -1 end
if m[1] ~= 'a' and m[1] ~= 's' then return -2 end
if on == '1' then
  if m[1] == 's' then return 0 end
  call('HSET', ikey, 'st', 's')
  if call('ZREM', READY, id) == 1 then call('HSET', ikey, 'wr', 1) end
  if m[2] then ring(ikey .. ':b') end
  hold_jobs(id, ikey, true)
  return 1
end
if m[1] == 'a' then return 0 end
call('HSET', ikey, 'st', 'a')
hold_jobs(id, ikey, false)
-- Held for its hosts' silent deaths: the next one is a new beginning, and looks for open effects even if nothing has come.
local held = call('HDEL', ikey, 'pk') == 1
if held then
  call('HDEL', ikey, 'dc')
  call('ZREM', INCIDENTS, id .. RS)
end
local wanted = call('HDEL', ikey, 'wr') == 1 or held or call('LLEN', ikey .. ':q') > 0
if not m[2] and wanted then make_ready(id, live) end
return 1
