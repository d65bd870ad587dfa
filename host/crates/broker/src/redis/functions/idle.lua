-- keyrail_6_idle: drops what is settled on a page of keys, and tells which of them hold nothing any more;
-- keyrail_6_reap: forgets those that are still as they were seen.
--
-- Keys:      none: a page of keys, named in the arguments
-- Arguments: to look: category, what is kept, the keys
--            to forget: category, number of process managers, group, number of categories and their names of each; then of
--            each stream: key, 1 for the backfill lane, last id
-- Answer:    to look: key, 1 for the backfill lane, last id, …; to forget: how many streams went
-- Prevents:  an event being lost that is published between the look and the forgetting: everything is looked at again in
--            the step that forgets, and the last id, which never comes again, must be the same.

-- Pages of one trim that retention makes look.
local TRIM_PAGES = 4

-- The last id of a stream that holds nothing: no entry, nothing pending. 0-0 when it is not there; nil when it holds any.
local function idle_last(stream)
  local kind = redis.call('TYPE', stream).ok
  if kind == 'none' then return '0-0' end
  if kind ~= 'stream' or redis.call('XLEN', stream) > 0 then return end
  local groups = redis.call('XINFO', 'GROUPS', stream)
  for i = 1, #groups do
    if field_of(groups[i], 'pending') > 0 then return end
  end
  return field_of(redis.call('XINFO', 'STREAM', stream), 'last-generated-id')
end

-- A key's lanes with their last ids, when all of it holds nothing, no group has a lease on it, and none stands still.
local function idle_lanes(category, key, known)
  for i = 1, #known.groups do
    local scope = scope_name(collection_of_group(known, i, category), key)
    if exists(lease_name(scope, known.groups[i])) or exists(halt_name(scope, known.groups[i])) then return end
  end
  local stream, lanes = scope_name(category, key), {}
  for lane = 0, 1 do
    local field = lane == 0 and key or key .. ':' .. known.word
    local name = lane == 0 and stream or stream .. ':' .. known.word
    if lane == 0 or exists(name) or redis.call('HEXISTS', known.index, field) == 1 then
      local last = idle_last(name)
      if not last then return end
      lanes[#lanes + 1] = { lane = text(lane), field = field, stream = name, last = last }
    end
  end
  return lanes
end

local function keyrail_idle(_, args)
  local category, keeps, answer = args[1], retention_of(args[2]), {}
  local known, fault = category_of(category, {})
  if not known then return redis.error_reply('ERR ' .. fault) end
  for i = 3, #args do
    local key = args[i]
    local streams = key == '' and { category } or { scope_name(category, key), scope_name(category, key) .. ':' .. known.word }
    for s = 1, #streams do
      if redis.call('TYPE', streams[s]).ok == 'stream' then
        local pages = (keeps.entries > 0 or keeps.age > 0) and TRIM_PAGES or 1
        for _ = 1, pages do trim(streams[s], keeps) end
      end
    end
    -- The one stream of a category without keys stays.
    local lanes = key ~= '' and idle_lanes(category, key, known) or {}
    for l = 1, #lanes do
      answer[#answer + 1] = key
      answer[#answer + 1] = lanes[l].lane
      answer[#answer + 1] = lanes[l].last
    end
  end
  return answer
end

-- What a process manager keeps of a correlation goes with the last of its categories' keys of that name.
local function forget_correlation(manager, key)
  for i = 1, #manager.categories do
    if redis.call('HEXISTS', index_name(manager.categories[i]), key) == 1 then return end
  end
  redis.call('DEL', attempts_name(scope_name(PM, key), manager.group))
  redis.call('HDEL', owners_name(PM, manager.group), key)
  redis.pcall('HDEL', versions_name(PM, manager.group), key)
  redis.pcall('HDEL', turns_name(PM, manager.group), key)
  redis.call('ZREM', ready_name(PM, manager.group), key)
end

local function keyrail_reap(_, args)
  local category, managers, at = args[1], {}, 3
  for m = 1, tonumber(args[2]) do
    managers[m] = { group = args[at], categories = {} }
    for c = 1, tonumber(args[at + 1]) do managers[m].categories[c] = args[at + 1 + c] end
    at = at + 2 + #managers[m].categories
  end
  local known, fault = category_of(category, {})
  if not known then return redis.error_reply('ERR ' .. fault) end
  local seen, keys = {}, {}
  for i = at, #args, 3 do
    if not seen[args[i]] then
      seen[args[i]] = {}
      keys[#keys + 1] = args[i]
    end
    seen[args[i]][args[i + 1]] = args[i + 2]
  end
  -- A list of another type fails the call here, before anything is written.
  for i = 1, #known.groups do
    local collection = collection_of_group(known, i, category)
    redis.call('HLEN', owners_name(collection, known.groups[i]))
    redis.call('ZCARD', known.ready[i])
  end

  local gone = 0
  for k = 1, #keys do
    local key = keys[k]
    local lanes = idle_lanes(category, key, known)
    for l = 1, lanes and #lanes or 0 do
      if lanes and seen[key][lanes[l].lane] ~= lanes[l].last then lanes = nil end
    end
    for l = 1, lanes and #lanes or 0 do
      redis.call('DEL', lanes[l].stream)
      redis.call('HDEL', known.index, lanes[l].field)
      gone = gone + 1
    end
    for i = 1, lanes and #known.groups or 0 do
      local group = known.groups[i]
      if collection_of_group(known, i, category) == category then
        redis.call('DEL', attempts_name(scope_name(category, key), group))
        redis.call('HDEL', owners_name(category, group), key)
        redis.pcall('HDEL', versions_name(category, group), key)
        redis.call('ZREM', known.ready[i], key)
      end
    end
    for m = 1, lanes and #managers or 0 do forget_correlation(managers[m], key) end
  end
  return gone
end

redis.register_function{ function_name = 'keyrail_6_idle', callback = keyrail_idle, flags = { 'allow-oom' } }
redis.register_function{ function_name = 'keyrail_6_reap', callback = keyrail_reap, flags = { 'allow-oom' } }
