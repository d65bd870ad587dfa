-- What is paused. A pause is a flag in `{category}:__paused__`, under the key or, for the whole category, under ''.

-- Whether the category, or this key of it, is paused. One command.
local function is_paused(category, key)
  local flags = redis.call('HMGET', paused_name(category), '', key)
  return (flags[1] or flags[2]) and true or false
end

-- Whether a partition is: any of its streams' categories, or the key there.
local function is_partition_paused(streams, key)
  local asked = {}
  for i = 1, #streams do
    local category = category_of_stream(streams[i])
    if not asked[category] then
      if is_paused(category, key) then return true end
      asked[category] = true
    end
  end
  return false
end

-- The paused categories from which the group's partitions in this collection read: the collection's own, or any on which
-- a process manager is registered.
local function paused_categories(collection, group)
  if collection ~= PM then
    return exists(paused_name(collection)) and { collection } or {}
  end
  local all, found = redis.call('SMEMBERS', PAUSED_CATEGORIES), {}
  for i = 1, #all do
    if redis.call('HGET', groups_name(all[i]), group) == ready_name(PM, group) then found[#found + 1] = all[i] end
  end
  return found
end
