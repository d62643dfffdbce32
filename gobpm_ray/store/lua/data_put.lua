#!lua
-- An operator writes a data store of the engine.  ARGV: name, version that it must have ('-1': any), secret, value
-- Returns its new version, or {'changed', the version that it has}.
-- Atomic: of two writers that expect the same version one is refused.
local name, wanted = ARGV[A], ARGV[A + 1]
local has = data_version(name)
if wanted ~= '-1' and has ~= wanted then return { 'changed', has } end
return write_data(name, '', ARGV[A + 2], ARGV[A + 3])
