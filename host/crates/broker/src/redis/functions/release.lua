-- keyrail_6_release: gives a lease up in an orderly way.
--
-- Keys:      the partition's streams
-- Arguments: scope, collection, group, key, token, what is kept
-- Answer:    OK; FENCED when it was gone already
-- Prevents:  a partition with work that nobody hears of; an orderly end being counted as a crash.

local function keyrail_release(keys, args)
  local scope, collection, group, key, token = args[1], args[2], args[3], args[4], args[5]
  local lease = lease_of(scope, group)
  if not is_held_by(lease, token) then return { FENCED } end
  local ready = ready_name(collection, group)
  local due = redis.pcall('ZSCORE', ready, key)

  give_up(scope, collection, group, key, token)
  -- A key that has work is in the ready set from when it was published until all of it is settled.
  if due and not failure(due) then
    redis.call('PUBLISH', ready, key)
  else
    local _, settled = parts_of(lease, token)
    trim_all(keys, 0, group, settled, retention_of(args[6]))
  end
  return { OK }
end

redis.register_function{ function_name = 'keyrail_6_release', callback = keyrail_release, flags = { 'allow-oom' } }
