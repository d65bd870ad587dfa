-- keyrail_6_evict: takes paused partitions away from their owners.
--
-- Keys:      none: a page of partitions, named in the arguments
-- Arguments: collection, group, backfill word, number of categories that a partition reads, their names, then the keys
-- Answer:    how many had an owner
-- Prevents:  an owner committing after `pause` has answered. One whose pause was ended meanwhile is left alone. Its
--            end counts no crash.

local function keyrail_evict(_, args)
  local collection, group, word, count = args[1], args[2], args[3], tonumber(args[4])
  local evicted = 0
  for at = 5 + count, #args do
    local key, streams = args[at], {}
    for lane = 1, 2 do
      for i = 1, count do
        local stream = scope_name(args[4 + i], key)
        streams[#streams + 1] = lane == 1 and stream or stream .. ':' .. word
      end
    end
    local lease = lease_name(scope_name(collection, key), group)
    local token = redis.pcall('GET', lease)
    if token and not failure(token) and is_partition_paused(streams, key) then
      give_up(scope_name(collection, key), collection, group, key, token_of(token))
      evicted = evicted + 1
    end
  end
  return evicted
end

redis.register_function{ function_name = 'keyrail_6_evict', callback = keyrail_evict, flags = { 'allow-oom' } }
