#!lua flags=allow-oom
-- Repairs of `verify`: the writes are done if nothing has changed since they were found necessary.
-- ARGV: number of guards, then per guard: command, key, argument ('' none), expected ('-' nothing); then per write: how many words, the words
-- Returns 1 done, 0 something has changed.
-- Atomic: an engine at work never sees half a repair, and a repair never undoes what the engine has just done.
local at = A + 1
for _ = 1, tonumber(ARGV[A]) do
  local command, key, argument, expected = unpack(ARGV, at, at + 3)
  local found
  if argument == '' then found = call(command, key) else found = call(command, key, argument) end
  found = found and tostring(found) or '-'
  if found ~= expected and not (tonumber(found) and tonumber(found) == tonumber(expected)) then return 0 end
  at = at + 4
end
while at <= #ARGV do
  local words = tonumber(ARGV[at])
  call(unpack(ARGV, at + 1, at + words))
  at = at + words + 1
end
return 1
