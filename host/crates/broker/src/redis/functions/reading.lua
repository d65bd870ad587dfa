-- Reading for an owner. How far a group has settled a stream is its last-delivered id: nothing is ever pending there, so
-- reading changes nothing, and order is that of the ids. Entries leave here as `{id, fields}`.

-- How many of a partition's streams are primary ones: they stand before the backfill lanes, of which each has one.
local function primaries_of(streams) return #streams / 2 end

-- A group's row, of a stream that exists.
local function group_info(stream, group) return row_of(redis.call('XINFO', 'GROUPS', stream), group) end

local function id_before(id)
  local epoch, sequence = id_parts(id)
  return sequence > 0 and text(epoch) .. '-' .. text(sequence - 1) or NOTHING
end

-- Where a group begins that was not there when the stream began: before what is left of it.
local function start_of(stream)
  local first = redis.call('XRANGE', stream, '-', '+', 'COUNT', 1)[1]
  if first then return id_before(first[1]) end
  return field_of(redis.call('XINFO', 'STREAM', stream), 'last-generated-id')
end

-- How far a group has settled a stream that is there, from its row, and whether it has to be made first: `new` or `anew`. What a release before
-- this one left pending is not settled.
local function standing_of(stream, group, info)
  local settled = info and field_of(info, 'last-delivered-id')
  if not info or settled == '0-0' then return start_of(stream), info and 'anew' or 'new' end
  if field_of(info, 'pending') == 0 then return settled end
  return id_before(redis.call('XPENDING', stream, group)[2]), 'anew'
end

local function is_stream(name) return redis.call('TYPE', name).ok == 'stream' end

local function settled_id(stream, group)
  if not is_stream(stream) then return NOTHING end
  return (standing_of(stream, group, group_info(stream, group)))
end

-- Makes a group that stands at `settled`.
local function make_group(stream, group, settled, how)
  if how == 'anew' then redis.call('XGROUP', 'DESTROY', stream, group) end
  redis.call('XGROUP', 'CREATE', stream, group, settled)
end

-- Moves a group. Answers with what the server refused, or nil. The second number is what makes the server tell the lag.
local function move_to(stream, group, id)
  local _, sequence = id_parts(id)
  return failure(redis.pcall('XGROUP', 'SETID', stream, group, id, 'ENTRIESREAD', text(sequence + 1)))
end

-- Entries behind an id. It also comes after writes, so another type in the way must not fail it: acquire tells of it.
local function read_after(stream, id, max)
  local rows = redis.pcall('XRANGE', stream, '(' .. id, '+', 'COUNT', max)
  return failure(rows) and {} or rows
end

-- The oldest unsettled entry behind `settled`: id and fields, or id and false for one that is gone, as redis/decode.rs
-- names it. Nothing when there is none.
local function first_behind(stream, settled)
  local row = read_after(stream, settled, 1)[1]
  if not row then return end
  if follows(settled, row[1]) then return row[1], row[2] end
  local epoch, id_epoch = id_parts(settled), id_parts(row[1])
  return epoch == id_epoch and id_after(settled) or text(id_epoch) .. '-0', false
end

-- Why an entry of the stream at `place` is not the head, as an answer; nil if it is.
local function head_fault(streams, serving, settled, place, id)
  if serving == place and follows(settled[place], id) then return end
  local head = serving > 0 and first_behind(streams[serving], settled[serving])
  if serving ~= place or head ~= id then return { NOT_HEAD, head or '' } end
end

-- Unsettled entries of the first stream that has any: its place in the list, and the entries. All primary streams come
-- before any backfill lane; within the two, those behind the place `last` (0 for none) come first, so that each has its
-- turn. Only one stream is ever read at a time, so that there is one head.
local function read_first(streams, settled, last, max)
  local primaries = primaries_of(streams)
  for step = 1, #streams do
    local base, count, turn = 0, primaries, step
    if step > primaries then
      base, count, turn = primaries, #streams - primaries, step - primaries
    end
    local from = (last > base and last <= base + count) and last - base or 0
    local i = base + (from + turn - 1) % count + 1
    local entries = read_after(streams[i], settled[i], max)
    if #entries > 0 then return i, entries end
  end
  return 0, {}
end

-- As read_first, `pinned` (0 for none) before all others: of a stream that has its turn only, no more than the head. Whose turn it is among a process manager's streams outlives its
-- owner; a turn that is lost costs fairness only, so nothing here may fail.
local function read_in_turn(streams, settled, pinned, collection, group, key, max)
  if pinned > 0 then
    local own = pinned == 1 and collection ~= PM
    local entries = read_after(streams[pinned], settled[pinned], own and max or 1)
    if #entries > 0 then return pinned, entries end
  end
  if collection ~= PM then return read_first(streams, settled, 0, max) end
  local turns = turns_name(collection, group)
  local last = redis.pcall('HGET', turns, key)
  last = type(last) == 'string' and tonumber(last) or 0
  local i, entries = read_first(streams, settled, last, max)
  if i > 0 and i ~= last then redis.pcall('HSET', turns, key, text(i)) end
  return i, entries
end

-- The place of the stream whose head stays the head: that which has failures on record, or was in somebody's hands.
local function pinned_place(streams, settled, attempts, serving)
  for i = 1, attempts and #streams or 0 do
    if streams[i] == attempts[1] and id_less(settled[i], attempts[2]) then return i end
  end
  return serving <= #streams and serving or 0
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

-- For an owner: what everybody has settled of its streams goes. A stream of which it has settled nothing keeps everything. That at
-- `place` (0 for none) was written to in this call, so it surely is a stream.
local function trim_all(streams, place, group, settled, keeps)
  for i = 1, #streams do
    if settled[i] ~= NOTHING and (i == place or is_stream(streams[i])) then trim(streams[i], keeps, group, settled[i]) end
  end
end

-- Nothing unsettled is left: the key leaves the ready set, and what everybody has settled goes.
local function run_dry(streams, settled, collection, group, key, keeps)
  redis.pcall('ZREM', ready_name(collection, group), key)
  trim_all(streams, 0, group, settled, keeps)
end

-- The lease goes, in order: whatever its owner had in hand was not begun, or is given up.
local function give_up(scope, collection, group, key, token)
  redis.call('DEL', lease_name(scope, group))
  redis.pcall('HSET', owners_name(collection, group), key, owner_text(token, 0))
end

-- Puts on record which stream has the head: it stays the head until it is settled, whoever owns it then.
local function serve(scope, collection, group, key, token, serving, settled)
  redis.call('SET', lease_name(scope, group), lease_text(token, serving, settled), 'KEEPTTL')
  redis.pcall('HSET', owners_name(collection, group), key, owner_text(token, serving))
end

-- The record of the head's failures, for an answer: stream, id, attempts, crashes, wait in ms, error. False for none.
local function attempts_of(scope, group)
  local record = redis.call('HMGET', attempts_name(scope, group), 'stream', 'id', 'attempts', 'crashes', 'next_at', 'error')
  if not record[1] then return false end
  local wait = math.max(0, (tonumber(record[5]) or 0) - now_ms())
  return { record[1], record[2], record[3] or '0', record[4] or '0', text(wait), record[6] or '' }
end
