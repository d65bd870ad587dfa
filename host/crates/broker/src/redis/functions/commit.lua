-- keyrail_6_commit: settles entries from the head on with their effects, and reads on.
--
-- Keys:      the partition's streams
-- Arguments: scope, collection, group, key, token, text of the lease now and afterwards, place of the stream, first and last id, sequence of
--            the last plus 1, whether to trim (1 or 0), whether failures of the head are on record, whether the owner has nothing
--            else in hand, how many to read then, release (1 or 0), what is kept, version that handled the first ('' if it is on
--            record); number of puts, name and value of each; number of removals, their names; number of emits, eight values of
--            each: category, key, key field, id, type, version, headers, data
-- Answer:    OK alone if something else is in hand; DRY alone if nothing is left, RELEASED alone if the lease went then; OK, more, place,
--            entries; FENCED; NOT_HEAD and the head or ''; REFUSED and why
-- Prevents:  effects of an owner that lost its lease, or of an entry that is not the head or was settled already: state,
--            emits and settlement go together or not at all.

local VERSIONS_KEPT = 8

-- Puts on record from which entry on a version handles a key. Comes among the writes, so it must not fail.
local function note_version(collection, group, key, id, version, stream)
  local name = versions_name(collection, group)
  local lines = redis.pcall('HGET', name, key)
  if failure(lines) then return end
  -- As a rule it is the one that handled the last entry.
  local latest = '\t' .. version .. '\t' .. stream
  if lines and string.sub(lines, -#latest) == latest then return end
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
  local place, first, last = tonumber(args[8]), args[9], args[10]
  local max, release, keeps, version = tonumber(args[15]), args[16] == '1', args[17], args[18]
  local stream, name = keys[place], lease_name(scope, group)

  -- Checks.
  local fault = fence_fault(name, args[6])
  if fault then return fault end
  local puts_end = 19 + 2 * tonumber(args[19])
  local at, removals = puts_end + 1, {}
  for i = at + 1, at + tonumber(args[at]) do removals[#removals + 1] = args[i] end
  at = at + #removals + 1
  local emits = tonumber(args[at])
  local state = state_name(scope, group)
  if #removals > 0 and puts_end == 19 then
    local kind = redis.call('TYPE', state).ok
    if kind ~= 'hash' and kind ~= 'none' then return { REFUSED, state .. ' holds a ' .. kind .. ', not a hash' } end
  end
  if emits > 0 then
    local kind = redis.call('TYPE', OUTBOX).ok
    if kind ~= 'stream' and kind ~= 'none' then return { REFUSED, OUTBOX .. ' holds a ' .. kind .. ', not a stream' } end
  end

  -- Writes. The first two can fail, on a key of another type or one that is gone, and then nothing is changed.
  fault = settle_with(stream, scope, group, args[6], place, last, args[11], args, 20, puts_end)
  if fault then return fault end
  if #removals > 0 then call_in_chunks({ 'HDEL', state }, removals, 1) end
  emit_all(args, at, emits)
  if version ~= '' then note_version(collection, group, key, first, version, stream) end
  if args[13] == '1' then redis.call('DEL', attempts_name(scope, group)) end
  if args[12] == '1' then trim(stream, retention_of(keeps), group, last) end
  if args[14] == '0' then
    redis.call('SET', name, args[7], 'KEEPTTL')
    return OK
  end

  -- Reading on: nothing is in hand.
  local _, settled = parts_of(args[7], token)
  local from, entries, left = 0, {}, false
  if max > 0 then
    from, entries = read_in_turn(keys, settled, 0, collection, group, key, max)
  else
    left = read_first(keys, settled, 0, 1) > 0
  end
  if from == 0 and not left then
    redis.pcall('ZREM', ready_name(collection, group), key)
    if release then
      trim_all(keys, place, group, settled, retention_of(keeps))
      give_up(scope, collection, group, key, token)
      return RELEASED
    end
    redis.call('SET', name, args[7], 'KEEPTTL')
    -- A key that waits for more stays with its first stream, and so does the record of it.
    if place > 1 or collection == PM then
      redis.pcall('HSET', owners_name(collection, group), key, owner_text(token, 0))
    end
    return DRY
  end
  if from == place then
    redis.call('SET', name, args[7], 'KEEPTTL')
  else
    serve(scope, collection, group, key, token, from, settled)
  end
  return { OK, (left or #entries == max) and 1 or 0, from, entries }
end

redis.register_function{ function_name = 'keyrail_6_commit', callback = keyrail_commit, flags = { 'allow-oom' } }
