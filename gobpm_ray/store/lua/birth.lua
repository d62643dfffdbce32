#!lua
-- A new instance as it stands after its first leg, which its client has computed: what start.lua, a claim and one commit would have written, in
-- one. This text is its beginning, and commit.lua's follows it; `born` (prelude.lua) tells that one that there is no lease and no checkpoint yet.
-- ARGV: most ready, process, version, 1: it must be the newest, delivery, business key, business time of the leg; then those of commit.lua, with
--   residency `release` (or an outcome), nothing consumed, no data stores and no next token
-- Returns {instance, duplicate, seq} or {'plainly'}: it cannot be born so, and whoever refuses it says why when it is started plainly.
-- Atomic: the instance and all that its first leg did appear together or not at all. No allow-oom: a full store refuses new work.
do
  local most, process, version, newest, delivery, business, at = unpack(ARGV, A, A + 6)
  A = A + 7
  local id = ARGV[A]
  local known = call('HGET', DEFS, process)
  if not known then return { 'plainly' } end
  local first = seen(delivery)
  if first then return { first, 1, 0 } end
  local other = newest == '1' and known ~= version or newest ~= '1' and not call('HGET', DEFS, process .. RS .. version)
  -- What the leg computed from its time (deadlines, dates) would be another's by now.
  if other or math.abs(now - tonumber(at)) > 1000 then return { 'plainly' } end
  if call('EXISTS', PREFIX .. id) == 1 or call('ZCARD', READY) >= tonumber(most) then return { 'plainly' } end
  remember(delivery, id)
  local seq = call('INCR', SEQ)
  call('ZADD', INSTANCES, seq, id)
  -- As commit.lua reads it: tk, v, cm, df, sq, st, cv, ck; and what else a new instance has.
  born = { false, '0', false, process .. RS .. version, seq, 'a', false, false, business, at }
end
