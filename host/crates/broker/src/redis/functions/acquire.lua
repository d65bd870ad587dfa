-- keyrail_4_acquire: takes a partition for an owner, and everything that is pending with it.
--
-- Keys:      the partition's streams, in the order of preference
-- Arguments: scope, collection, group, key, owner, TTL in ms, how many entries, floor of the generation, what is kept
-- Answer:    OK, generation, whether there may be more, positions (place, id, …), attempts or nil, state (name, value, …)
--            or nil when it is large, entries (place, list, …); HELD and the holder; HALTED and the record; PAUSED; REFUSED and why
-- Prevents:  two owners; an owner that reads past entries which its predecessor was given and did not settle; a
--            generation that repeats.

local STATE_NAMES_MAX, STATE_BYTES_MAX = 8, 16384

local function small_state(name, count)
  if count == 0 then return {} end
  if count > STATE_NAMES_MAX then return false end
  local names, bytes = redis.call('HKEYS', name), 0
  for i = 1, #names do bytes = bytes + #names[i] + redis.call('HSTRLEN', name, names[i]) end
  return bytes <= STATE_BYTES_MAX and redis.call('HGETALL', name)
end

local function count_crash(scope, group, stream, id)
  local name = attempts_name(scope, group)
  local record = redis.call('HMGET', name, 'stream', 'id')
  if record[1] == stream and record[2] == id then
    redis.call('HINCRBY', name, 'crashes', 1)
  else
    redis.call('DEL', name)
    redis.call('HSET', name, 'stream', stream, 'id', id, 'attempts', '0', 'crashes', '1', 'next_at', '0', 'error', '')
  end
end

local function keyrail_acquire(keys, args)
  local scope, collection, group, key = args[1], args[2], args[3], args[4]
  local owner, ttl, max, floor, keeps = args[5], args[6], tonumber(args[7]), tonumber(args[8]), retention_of(args[9])

  -- Checks. A key of another type fails its own partition, before anything is written.
  if is_partition_paused(keys, key) then return { PAUSED } end
  local halted = redis.call('HGET', halt_name(scope, group), 'record')
  if halted then
    redis.call('ZREM', ready_name(collection, group), key)
    return { HALTED, halted }
  end
  local holder = redis.call('GET', lease_name(scope, group))
  if holder then return { HELD, holder } end
  local there = {}
  for i = 1, #keys do
    local kind = redis.call('TYPE', keys[i]).ok
    if kind == 'stream' then
      there[#there + 1] = i
    elseif kind ~= 'none' then
      return { REFUSED, keys[i] .. ' holds a ' .. kind .. ', not a stream; delete it or move it away' }
    end
  end
  local attempts = attempts_of(scope, group)
  local state = small_state(state_name(scope, group), redis.call('HLEN', state_name(scope, group)))
  local owners = owners_name(collection, group)
  local previous = redis.call('HGET', owners, key)

  local generation = redis.call('INCR', GENERATION)
  if generation <= floor then
    generation = floor + 1
    redis.call('SET', GENERATION, text(generation))
  end
  local token = owner .. ':' .. text(generation)

  local positions, pending_by, bodies_by = {}, {}, {}
  for _, i in ipairs(there) do
    local stream = keys[i]
    local info = group_info(stream, group)
    if not info then
      redis.call('XGROUP', 'CREATE', stream, group, '0')
      info = { pending = 0, consumers = 0, ['last-delivered-id'] = '0-0' }
    end
    local before = info['last-delivered-id']
    local names, holders = { [previous or HANDED_BACK] = true }, {}
    if info.pending > 0 then
      local pending = pending_of(stream, group)
      local epoch, sequence = id_parts(pending[1][1])
      before = sequence > 0 and text(epoch) .. '-' .. text(sequence - 1) or '0-0'
      for p = 1, #pending do names[pending[p][2]] = true end
      pending_by[i], bodies_by[i] = pending, bodies_of(stream, pending)
      holders = claim(stream, group, token, pending, bodies_by[i])
    end
    if info.consumers > 0 then
      for name in pairs(names) do
        if name ~= HANDED_BACK and name ~= token then drop_consumer(stream, group, name, holders) end
      end
    end
    if before ~= '0-0' then
      positions[#positions + 1] = i
      positions[#positions + 1] = before
    end
  end

  local segments, total = segments_of(keys, pending_by, bodies_by, attempts and attempts[1])
  if total > 0 then
    local head = pending_by[segments[1]][1]
    if head[2] ~= HANDED_BACK then
      count_crash(scope, group, keys[segments[1]], head[1])
      attempts = attempts_of(scope, group)
    end
  end
  local more = fill(segments, total, keys, collection, group, key, token, max)
  if #segments == 0 and not more then
    local streams = {}
    for i = 1, #there do streams[i] = keys[there[i]] end
    run_dry(streams, collection, group, key, keeps)
  end
  redis.call('SET', lease_name(scope, group), token, 'PX', ttl)
  redis.call('HSET', owners, key, token)
  return { OK, text(generation), more and 1 or 0, positions, attempts, state, segments }
end

redis.register_function{ function_name = 'keyrail_4_acquire', callback = keyrail_acquire, flags = { 'allow-oom' } }
