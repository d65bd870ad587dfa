-- keyrail_4_commit: settles the head with its effects, and reads on.
--
-- Keys:      the partition's streams
-- Arguments: scope, collection, group, key, token, place of the stream, how many to read, release (1 or 0), what is
--            kept, version that handled the first ('' if it is on record), n, the n ids that it settles; number of puts, name and value of each; number of removals, their names;
--            number of emits, eight values of each: category, key, key field, id, type, version, headers, data
-- Answer:    OK, more, released, place, entries; FENCED; NOT_HEAD and the head or ''; REFUSED and why
-- Prevents:  effects of an owner that lost its lease, or of an entry that is not the head or was settled already: state,
--            emits and settlement go together or not at all.

local VERSIONS_KEPT = 8

-- Puts on record from which entry on a version handles a key. Comes among the writes, so it must not fail.
local function note_version(collection, group, key, id, version, stream)
  local name = versions_name(collection, group)
  local lines = redis.pcall('HGET', name, key)
  if failure(lines) then return end
  local kept = {}
  for line in string.gmatch(lines or '', '[^\n]+') do kept[#kept + 1] = line end
  local last = kept[#kept] and string.match(kept[#kept], '^[^\t]*\t([^\t]*)\t')
  if last == version then return end
  if #kept == VERSIONS_KEPT then table.remove(kept, 1) end
  kept[#kept + 1] = id .. '\t' .. version .. '\t' .. stream
  redis.pcall('HSET', name, key, table.concat(kept, '\n'))
end

local function keyrail_commit(keys, args)
  local scope, collection, group, key, token = args[1], args[2], args[3], args[4], args[5]
  local place, max, release, keeps = tonumber(args[6]), tonumber(args[7]), args[8] == '1', retention_of(args[9])
  local version = args[10]
  local stream = keys[place]

  -- Checks.
  if not is_owner(scope, group, token) then return { FENCED } end
  local n = tonumber(args[11])
  local pending = redis.pcall('XPENDING', stream, group, '-', '+', n + 1)
  local failed = failure(pending)
  if failed then
    if is_missing_group(failed) then return { NOT_HEAD, '' } end
    return { REFUSED, stream .. ': ' .. failed }
  end
  local ids = {}
  for i = 1, n do
    ids[i] = args[11 + i]
    if not pending[i] or pending[i][1] ~= ids[i] then return { NOT_HEAD, pending[1] and pending[1][1] or '' } end
  end
  local at = 12 + n
  local puts, removals, pairs_from = {}, {}, at + 1
  for i = pairs_from, at + 2 * tonumber(args[at]) do puts[#puts + 1] = args[i] end
  at = at + 2 * tonumber(args[at]) + 1
  for i = at + 1, at + tonumber(args[at]) do removals[#removals + 1] = args[i] end
  at = at + tonumber(args[at]) + 1
  local emits = tonumber(args[at])
  local state = state_name(scope, group)
  if #removals > 0 and #puts == 0 then
    local kind = redis.call('TYPE', state).ok
    if kind ~= 'hash' and kind ~= 'none' then return { REFUSED, state .. ' holds a ' .. kind .. ', not a hash' } end
  end
  if emits > 0 then
    local kind = redis.call('TYPE', OUTBOX).ok
    if kind ~= 'stream' and kind ~= 'none' then return { REFUSED, OUTBOX .. ' holds a ' .. kind .. ', not a stream' } end
  end

  -- Writes. Only the first can fail, on a key of another type, and then it has changed nothing.
  if #puts > 0 then
    local added = 0
    for from = 1, #puts, CHUNK do
      local reply = redis.pcall('HSET', state, unpack(puts, from, math.min(from + CHUNK - 1, #puts)))
      if failure(reply) then return { REFUSED, state .. ': ' .. failure(reply) } end
      added = added + reply
    end
    -- Only a write that adds a name can be the key's first.
    if added > 0 then redis.pcall('SADD', states_name(collection, group), key) end
  end
  if #removals > 0 then call_in_chunks({ 'HDEL', state }, removals, 1) end
  emit_all(args, at, emits)
  if version ~= '' then note_version(collection, group, key, ids[1], version, stream) end
  call_in_chunks({ 'XACK', stream, group }, ids, 1)
  redis.call('DEL', attempts_name(scope, group))

  -- Reading on.
  local remains = #pending > n
  local more, from, entries, dry = true, 0, {}, false
  if max > 0 and not remains then
    from, entries = read_in_turn(keys, collection, group, key, token, max)
    more = #entries == max
    dry = #entries == 0
  elseif max > 0 and place == 1 and collection ~= PM then
    from, entries = 1, read_new(stream, group, token, max)
    more = #entries == max
  elseif not remains then
    dry = true
    for i = 1, #keys do dry = dry and not has_new(keys[i], group) end
  end
  local released = false
  if dry then
    local there = existing(keys)
    dry = run_dry(there, collection, group, key, keeps)
    more = not dry
    if dry and release then
      redis.call('DEL', lease_name(scope, group))
      -- Nothing is pending, so its name holds nothing.
      for i = 1, #there do redis.pcall('XGROUP', 'DELCONSUMER', there[i], group, token) end
      released = true
    end
  else
    local _, sequence = id_parts(ids[n])
    if sequence % TRIM_EVERY < n then trim(stream, keeps) end
  end
  return { OK, more and 1 or 0, released and 1 or 0, from, entries }
end

redis.register_function{ function_name = 'keyrail_4_commit', callback = keyrail_commit, flags = { 'allow-oom' } }
