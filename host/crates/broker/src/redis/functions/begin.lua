-- keyrail_5_begin: puts on record that an owner that had nothing in its hands has something again.
--
-- Keys:      none
-- Arguments: scope, collection, group, key, token, place of the stream
-- Answer:    OK; FENCED
-- Prevents:  a death of the owner that is not counted against the event which it had just begun. The rows themselves are read
--            beside this, since that changes nothing.

local function keyrail_begin(_, args)
  local scope, collection, group, key, token = args[1], args[2], args[3], args[4], args[5]
  if not is_owner(scope, group, token) then return { FENCED } end
  redis.pcall('HSET', owners_name(collection, group), key, owner_text(token, args[6]))
  return { OK }
end

redis.register_function{ function_name = 'keyrail_5_begin', callback = keyrail_begin, flags = { 'allow-oom' } }
