-- keyrail_6_acquire: takes a partition for an owner.
--
-- Keys:      the partition's streams, in the order of preference
-- Arguments: scope, collection, group, key, owner, TTL in ms, how many entries, floor of the generation, what is kept. 0 entries: the
--            owner reads the first stream itself, right behind this call
-- Answer:    OK, text of the lease, attempts or nil, state (name, value, …) or nil when it is large, entries of the stream that has the
--            head; HELD and the holder; HALTED and the record; PAUSED; REFUSED and why
-- Prevents:  two owners; an owner that reads past entries which its predecessor did not settle; a generation that repeats.

-- As the server counts it: names, values, and what they lie in.
local STATE_BYTES_MAX = 16384

-- All of the state if it is small, false if it is not.
local function small_state(name)
  local bytes = redis.call('MEMORY', 'USAGE', name)
  if not bytes then return {} end
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

-- As a rule a key has its first stream and nothing else on record that an acquire asks for: one look in place of six.
local function is_plain(keys, scope, collection, group)
  if collection == PM then return false end
  return redis.call('EXISTS', lease_name(scope, group), halt_name(scope, group), attempts_name(scope, group), paused_name(collection),
    unpack(keys, 2)) == 0
end

local function keyrail_acquire(keys, args)
  local scope, collection, group, key = args[1], args[2], args[3], args[4]
  local owner, ttl, max, floor = args[5], args[6], tonumber(args[7]), tonumber(args[8])

  -- Checks. A key of another type fails its own partition, before anything is written.
  local plain = is_plain(keys, scope, collection, group)
  local attempts = false
  if not plain then
    if is_partition_paused(keys, key) then return { PAUSED } end
    local halted = redis.call('HGET', halt_name(scope, group), 'record')
    if halted then
      redis.call('ZREM', ready_name(collection, group), key)
      return { HALTED, halted }
    end
    local holder = redis.call('GET', lease_name(scope, group))
    if holder then return { HELD, token_of(holder) } end
    attempts = attempts_of(scope, group)
  end
  local settled, to_make, waiting = {}, {}, 0
  for i = 1, #keys do
    -- The first stream is there as a rule, and its groups tell that as well as its type would.
    local groups = i == 1 and redis.pcall('XINFO', 'GROUPS', keys[i])
    if plain and i > 1 then
      groups = false
    elseif not groups or failure(groups) then
      local kind = redis.call('TYPE', keys[i]).ok
      if kind ~= 'stream' and kind ~= 'none' then
        return { REFUSED, keys[i] .. ' holds a ' .. kind .. ', not a stream; delete it or move it away' }
      end
      groups = kind == 'stream' and redis.call('XINFO', 'GROUPS', keys[i])
    end
    if groups then
      local row = row_of(groups, group)
      settled[i], to_make[i] = standing_of(keys[i], group, row)
      if i == 1 and row then waiting = field_of(row, 'lag') or 0 end
    else
      settled[i] = NOTHING
    end
  end
  local state = small_state(state_name(scope, group))
  local owners = owners_name(collection, group)
  local previous = redis.call('HGET', owners, key)

  local generation = redis.call('INCR', GENERATION)
  if generation <= floor then
    generation = floor + 1
    redis.call('SET', GENERATION, text(generation))
  end
  local token = owner .. ':' .. text(generation)

  for i = 1, #keys do
    if to_make[i] then make_group(keys[i], group, settled[i], to_make[i]) end
  end
  local serving = serving_of(previous)
  local place, entries = 1, {}
  -- Who reads the first stream itself has to hear no more than that something waits there, which the server counts.
  if not (plain and max == 0 and serving == 0 and waiting > 0) then
    local pinned = pinned_place(keys, settled, attempts, serving)
    place, entries = read_in_turn(keys, settled, pinned, collection, group, key, math.max(max, 1))
    if place == 0 then
      run_dry(keys, settled, collection, group, key, retention_of(args[9]))
    elseif serving > 0 then
      count_crash(scope, group, keys[place], (first_behind(keys[place], settled[place])))
      attempts = attempts_of(scope, group)
    end
  end
  local lease = lease_text(token, place, settled)
  redis.call('SET', lease_name(scope, group), lease, 'PX', ttl)
  redis.call('HSET', owners, key, owner_text(token, place))
  return { OK, lease, attempts, state, entries }
end

redis.register_function{ function_name = 'keyrail_6_acquire', callback = keyrail_acquire, flags = { 'allow-oom' } }
