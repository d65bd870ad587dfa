-- keyrail_4_release: gives a lease up in an orderly way.
--
-- Keys:      the partition's streams
-- Arguments: scope, collection, group, key, token
-- Answer:    OK; FENCED when it was gone already
-- Prevents:  a partition with work that nobody hears of; an orderly end being counted as a crash.

local function keyrail_release(keys, args)
  local scope, collection, group, key, token = args[1], args[2], args[3], args[4], args[5]
  if not is_owner(scope, group, token) then return { FENCED } end
  local ready = ready_name(collection, group)
  local due = redis.pcall('ZSCORE', ready, key)

  redis.call('DEL', lease_name(scope, group))
  local pending = hand_back(keys, group, token)
  if pending and due == false then redis.call('ZADD', ready, 'NX', '0', key) end
  if pending or (due and not failure(due)) then redis.call('PUBLISH', ready, key) end
  return { OK }
end

redis.register_function{ function_name = 'keyrail_4_release', callback = keyrail_release, flags = { 'allow-oom' } }
