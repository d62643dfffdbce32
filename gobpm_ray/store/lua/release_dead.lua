#!lua flags=allow-oom
-- Releases every lease of one dead actor at once, by its tokens' prefix `actor:`; grows with the residents, never with the waiting.
-- ARGV: actor     Returns how many.
local prefix = ARGV[A] .. ':'
local count = 0
for _, id in ipairs(call('ZRANGE', LEASES, 0, -1)) do
  local token = call('HGET', PREFIX .. id, 'tk')
  if token and string.sub(token, 1, #prefix) == prefix then
    died(id, PREFIX .. id)
    count = count + 1
  end
end
return count
