-- keyrail_6_state: one value of the partition's state.
--
-- Keys:      the state
-- Arguments: scope, group, token, name
-- Answer:    OK and the value or nil; FENCED
-- Prevents:  a handler deciding on state that a successor is already changing.

local function keyrail_state(keys, args)
  if not is_owner(args[1], args[2], args[3]) then return { FENCED } end
  return { OK, redis.call('HGET', keys[1], args[4]) }
end

redis.register_function{ function_name = 'keyrail_6_state', callback = keyrail_state, flags = { 'no-writes' } }
