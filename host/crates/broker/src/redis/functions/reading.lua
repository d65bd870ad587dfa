-- Reading for an owner: what is pending, what is new, and handing pending entries from one consumer to another.
--
-- Entries leave here as `{id, fields}`, or `{id, false}` when the body is gone: XCLAIM would silently drop the pending
-- mark of such an entry, so it is found before anything is claimed, and stays pending until an operator settles it.

-- Where a partition hands back what it did not handle. An entry that is pending on another name had an owner that died.
local HANDED_BACK = '-'

-- Every pending entry of a group on a stream, lowest id first: rows of id and consumer. None without stream or group.
local function pending_of(stream, group)
  local list, from = {}, '-'
  while true do
    local page = redis.pcall('XPENDING', stream, group, from, '+', PAGE)
    local failed = failure(page)
    if failed then
      if is_missing_group(failed) then return list end
      error(page)
    end
    for i = 1, #page do list[#list + 1] = page[i] end
    if #page < PAGE then return list end
    from = '(' .. page[#page][1]
  end
end

-- The bodies of pending entries, by id.
local function bodies_of(stream, pending)
  local bodies = {}
  for from = 1, #pending, PAGE do
    local to = math.min(from + PAGE - 1, #pending)
    local range = redis.call('XRANGE', stream, pending[from][1], pending[to][1], 'COUNT', PAGE)
    for i = 1, #range do bodies[range[i][1]] = range[i][2] end
  end
  -- Pending entries are neighbours, so this finds only holes.
  for i = 1, #pending do
    local id = pending[i][1]
    if not bodies[id] then
      local one = redis.call('XRANGE', stream, id, id)
      bodies[id] = one[1] and one[1][2]
    end
  end
  return bodies
end

-- Moves pending entries to a consumer, those with a body. Answers with the names that still hold entries without one.
local function claim(stream, group, consumer, pending, bodies)
  local ids, holders = {}, {}
  for i = 1, #pending do
    local id, holder = pending[i][1], pending[i][2]
    if not bodies[id] then
      holders[holder] = true
    elseif holder ~= consumer then
      ids[#ids + 1] = id
    end
  end
  call_in_chunks({ 'XCLAIM', stream, group, consumer, '0' }, ids, 1, 'JUSTID')
  return holders
end

local function drop_consumer(stream, group, consumer, holders)
  if not holders[consumer] then redis.call('XGROUP', 'DELCONSUMER', stream, group, consumer) end
end

local function as_entries(pending, bodies)
  local entries = {}
  for i = 1, #pending do
    local id = pending[i][1]
    entries[i] = { id, bodies[id] or false }
  end
  return entries
end

-- Up to `max` entries that the group was never given. Never BLOCK: a blocked reader cannot be fenced. A group that is
-- gone (the stream was deleted and began anew) is made again at the start.
local function read_new(stream, group, consumer, max)
  local reply = redis.pcall('XREADGROUP', 'GROUP', group, consumer, 'COUNT', max, 'STREAMS', stream, '>')
  local failed = failure(reply)
  if failed then
    if not is_missing_group(failed) then error(reply) end
    if not exists(stream) then return {} end
    redis.call('XGROUP', 'CREATE', stream, group, '0')
    reply = redis.call('XREADGROUP', 'GROUP', group, consumer, 'COUNT', max, 'STREAMS', stream, '>')
  end
  return reply and reply[1][2] or {}
end

-- How many of a partition's streams are primary ones; they stand before the backfill lanes, which have a third segment.
local function primaries_of(streams)
  local n = 0
  while n < #streams and not string.find(streams[n + 1], ':.*:') do n = n + 1 end
  return n
end

-- New entries of the first stream that has any: its place in the list, and the entries. All primary streams come before
-- any backfill lane; within the two, those behind the place `last` (0 for none) come first, so that each has its turn.
-- Only one stream is ever read at a time, so that there is one head.
local function read_first(streams, last, group, consumer, max)
  local primaries = primaries_of(streams)
  for step = 1, #streams do
    local base, count, turn = 0, primaries, step
    if step > primaries then
      base, count, turn = primaries, #streams - primaries, step - primaries
    end
    local from = (last > base and last <= base + count) and last - base or 0
    local i = base + (from + turn - 1) % count + 1
    if step == 1 or exists(streams[i]) then
      local entries = read_new(streams[i], group, consumer, max)
      if #entries > 0 then return i, entries end
    end
  end
  return 0, {}
end

-- As read_first. Whose turn it is among a process manager's streams outlives its owner; a turn that is lost costs fairness
-- only, so nothing here may fail.
local function read_in_turn(streams, collection, group, key, consumer, max)
  if collection ~= PM then return read_first(streams, 0, group, consumer, max) end
  local turns = turns_name(collection, group)
  local last = redis.pcall('HGET', turns, key)
  last = type(last) == 'string' and tonumber(last) or 0
  local i, entries = read_first(streams, last, group, consumer, max)
  if i > 0 and i ~= last then redis.pcall('HSET', turns, key, text(i)) end
  return i, entries
end

-- The group's row of XINFO GROUPS, by field; nil without group. The stream exists.
local function group_info(stream, group)
  local rows = redis.call('XINFO', 'GROUPS', stream)
  for i = 1, #rows do
    local row, info = rows[i], {}
    for j = 1, #row, 2 do info[row[j]] = row[j + 1] end
    if info.name == group then return info end
  end
end

local function has_pending(stream, group)
  local summary = redis.pcall('XPENDING', stream, group)
  return not failure(summary) and summary[1] > 0
end

-- Whether a stream holds anything that the group was never given.
local function has_new(stream, group)
  if not exists(stream) then return false end
  local info = group_info(stream, group)
  local after = info and '(' .. info['last-delivered-id'] or '-'
  return #redis.call('XRANGE', stream, after, '+', 'COUNT', 1) > 0
end

-- Puts `emits` events into the outbox; their values follow the place `at` in the arguments.
local EMIT_FIELDS = 8
local function emit_all(args, at, emits)
  for emit = 0, emits - 1 do
    local e = at + emit * EMIT_FIELDS
    redis.call('XADD', OUTBOX, '*', 'category', args[e + 1], 'key', args[e + 2], 'key_field', args[e + 3],
      'id', args[e + 4], 'type', args[e + 5], 'version', args[e + 6], 'headers', args[e + 7], 'data', args[e + 8])
  end
  if emits > 0 then redis.call('PUBLISH', OUTBOX, '') end
end

-- Those of a partition's streams that are there.
local function existing(streams)
  local there = {}
  for i = 1, #streams do
    if exists(streams[i]) then there[#there + 1] = streams[i] end
  end
  return there
end

-- Nothing new is left on these streams, all of which exist: unless something is pending, the key leaves the ready set.
-- False when something is.
local function run_dry(there, collection, group, key, keeps)
  for i = 1, #there do
    if has_pending(there[i], group) then return false end
  end
  redis.pcall('ZREM', ready_name(collection, group), key)
  for i = 1, #there do trim(there[i], keeps) end
  return true
end

-- Everything pending goes to the name that tells of an orderly end, and the owner's consumer goes. Whether there was any.
local function hand_back(streams, group, token)
  local any = false
  for i = 1, #streams do
    if exists(streams[i]) and group_info(streams[i], group) then
      local pending = pending_of(streams[i], group)
      local holders = claim(streams[i], group, HANDED_BACK, pending, bodies_of(streams[i], pending))
      drop_consumer(streams[i], group, token, holders)
      any = any or #pending > 0
    end
  end
  return any
end

-- The record of the head's failures, for an answer: stream, id, attempts, crashes, wait in ms, error. False for none.
local function attempts_of(scope, group)
  local record = redis.call('HMGET', attempts_name(scope, group), 'stream', 'id', 'attempts', 'crashes', 'next_at', 'error')
  if not record[1] then return false end
  local wait = math.max(0, (tonumber(record[5]) or 0) - now_ms())
  return { record[1], record[2], record[3] or '0', record[4] or '0', text(wait), record[6] or '' }
end

-- What is pending, by place of the stream, as segments of an answer: place and entries, the stream of the head on record
-- first. Also how many entries there are.
local function segments_of(streams, pending_by, bodies_by, head_stream)
  local segments, total = {}, 0
  for round = 1, 2 do
    for i = 1, #streams do
      if pending_by[i] and (round == 1) == (streams[i] == head_stream) then
        segments[#segments + 1] = i
        segments[#segments + 1] = as_entries(pending_by[i], bodies_by[i])
        total = total + #pending_by[i]
      end
    end
  end
  return segments, total
end

-- Everything pending on these streams, as segments.
local function recall(streams, group, head_stream)
  local pending_by, bodies_by = {}, {}
  for i = 1, #streams do
    if exists(streams[i]) then
      local pending = pending_of(streams[i], group)
      if #pending > 0 then
        pending_by[i], bodies_by[i] = pending, bodies_of(streams[i], pending)
      end
    end
  end
  return segments_of(streams, pending_by, bodies_by, head_stream)
end

-- Fills up after pending entries, or reads the first new ones: answers whether there may be more. New entries only join
-- pending ones of the first stream of a key: a backfill lane, and a process manager's streams, are drained first, so that
-- the primary lane goes before backfill and no stream of a correlation starves another.
local function fill(segments, total, streams, collection, group, key, token, max)
  if total == 0 then
    local i, entries = read_in_turn(streams, collection, group, key, token, max)
    if #entries > 0 then
      segments[1], segments[2] = i, entries
    end
    return #entries == max
  end
  if total >= max or segments[1] ~= 1 or #segments > 2 or collection == PM then return true end
  local entries, list = read_new(streams[1], group, token, max - total), segments[2]
  for i = 1, #entries do list[#list + 1] = entries[i] end
  return #entries == max - total
end
