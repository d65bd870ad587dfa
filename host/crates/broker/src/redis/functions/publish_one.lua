-- Publishing one event: shared by `keyrail_publish` and by the router, so that both mean the same.
--
-- Race that it prevents: a publisher between "the entry is in the stream" and "the group knows of it". Entry, index,
-- ready sets and the memory of its id change in one step. Every check comes before the first write. That goes to the ready sets, and is
-- taken back if the entry is refused; what follows the entry cannot fail.

local PUBLISHED, DUPLICATE, STALE, UNWRITABLE = 0, 1, 2, 3
local KEY_MAX, ID_MAX = 256, 256
-- Ten years: the server refuses larger times, and would do so after the entry is written.
local WINDOW_MAX = 315360000000
-- What JSON takes for white space.
local BLANK = { [32] = true, [9] = true, [10] = true, [13] = true }

-- Why a key cannot be one, or nil. Normalization is the caller's to check; Lua cannot.
local function key_fault(key, backfill_word)
  -- Most keys are plain.
  if #key <= KEY_MAX and string.find(key, '^%w[%w_.-]*$') and key ~= 'dlq' and key ~= backfill_word then return end
  if #key == 0 then return 'the key is empty' end
  if #key > KEY_MAX then return 'the key has ' .. #key .. ' bytes; at most ' .. KEY_MAX .. ' are allowed' end
  if string.find(key, '[%c:{}]') or string.find(key, '\194[\128-\159]') then
    return 'the key contains `:`, `{`, `}` or a control character'
  end
  if string.find(key, '^%s') or string.find(key, '%s$') then return 'the key begins or ends with white space' end
  if key == 'dlq' or key == backfill_word or string.find(key, '^__.*__$') then return 'the key is a reserved word' end
end

-- Whether the data can be a JSON object: its first byte that is no white space is `{`, its last is `}`. Publishers of their own
-- make rubbish of other kinds mostly (a text, a list, nothing at all), and that would halt its key later. The rest is not
-- looked at: `cjson.decode` of every event would cost the server more than all else that is done here, and hosts check what
-- they publish, and what they read, in full.
local function is_object(data)
  if string.byte(data) == 123 and string.byte(data, -1) == 125 then return true end
  local last = #data
  while BLANK[string.byte(data, last)] do last = last - 1 end
  return string.byte(data, last) == 125 and string.find(data, '^[ \t\r\n]*{') ~= nil
end

-- What is registered on a category, read once a call: its key field ('' for none), its backfill word, its groups with
-- their ready sets; and which types and versions were found good in this call. Nil and a reason when the name is none.
local function category_of(category, cache)
  local known = cache[category]
  if known then return known end
  if #category > 64 or not string.find(category, '^[a-z][a-z0-9_.-]*$') then return nil, 'it is no category name' end
  local fields = redis.pcall('HGETALL', groups_name(category))
  if failure(fields) then return nil, failure(fields) end
  known = { key_field = '', word = 'backfill', groups = {}, ready = {}, index = index_name(category), types = {}, versions = {}, count = 0 }
  for i = 1, #fields, 2 do
    if fields[i] == KEY_FIELD then
      known.key_field = fields[i + 1]
    elseif fields[i] == BACKFILL then
      known.word = fields[i + 1]
    else
      known.groups[#known.groups + 1] = fields[i]
      known.ready[#known.ready + 1] = fields[i + 1]
    end
  end
  cache[category] = known
  return known
end

-- A group's ready set tells whether it reads the category's keys, or is a process manager.
local function collection_of_group(known, i, category)
  return known.ready[i] == ready_name(category, known.groups[i]) and category or PM
end

-- Whether the key stands still for a group: then nobody is to be woken.
local function is_halted(known, i, category, key)
  return redis.pcall('SISMEMBER', halted_name(collection_of_group(known, i, category), known.groups[i]), key) == 1
end

local function make_unready(key, sets)
  for i = 1, #sets do redis.call('ZREM', sets[i], key) end
end

-- Makes a key ready for every group for which it is not, and does not stand still. Answers with the ready sets that it joined, or nil and why.
local function make_ready(known, category, key)
  local joined = {}
  for i = 1, #known.ready do
    local added = redis.pcall('ZADD', known.ready[i], 'NX', '0', key)
    if failure(added) then
      make_unready(key, joined)
      return nil, known.ready[i] .. ': ' .. failure(added)
    end
    if added == 1 then
      if is_halted(known, i, category, key) then
        redis.call('ZREM', known.ready[i], key)
      else
        joined[#joined + 1] = known.ready[i]
      end
    end
  end
  return joined
end

-- The epoch of the stream's last id: the index was lost, or an older one was restored.
local function epoch_of(stream)
  local info = redis.pcall('XINFO', 'STREAM', stream)
  if failure(info) then return nil, failure(info) end
  local epoch = id_parts(field_of(info, 'last-generated-id'))
  return text(math.max(epoch, 1))
end

-- Appends to a stream that is there; answers with nothing when it is not.
local function append(stream, epoch, event, at)
  if event.headers == '' then
    return redis.pcall('XADD', stream, 'NOMKSTREAM', epoch .. '-*', 'id', event.id, 'type', event.type,
      'version', event.version, 'at', at, 'data', event.data)
  end
  return redis.pcall('XADD', stream, 'NOMKSTREAM', epoch .. '-*', 'id', event.id, 'type', event.type,
    'version', event.version, 'at', at, 'headers', event.headers, 'data', event.data)
end

local function begin(stream, epoch, event, at)
  local call = { 'XADD', stream, epoch .. '-*', 'id', event.id, 'type', event.type, 'version', event.version, 'at', at }
  if event.headers ~= '' then
    call[#call + 1] = 'headers'
    call[#call + 1] = event.headers
  end
  call[#call + 1] = 'data'
  call[#call + 1] = event.data
  return redis.pcall(unpack(call))
end

-- A stream that begins anew has nothing to do with what an earlier one of that name left behind. A group that stood
-- still on it joins those that are to be woken.
local function forget(stream, category, key, known, wake)
  for i = 1, #known.groups do
    local group = known.groups[i]
    if key == '' then
      redis.call('DEL', entry_attempts_name(category, group), waiting_name(category, group))
    else
      local collection = collection_of_group(known, i, category)
      local scope = scope_name(collection, key)
      if redis.pcall('HGET', attempts_name(scope, group), 'stream') == stream then
        redis.call('DEL', attempts_name(scope, group))
      end
      if redis.pcall('HGET', halt_name(scope, group), 'stream') == stream then
        redis.call('DEL', halt_name(scope, group))
        redis.pcall('SREM', halted_name(collection, group), key)
        redis.pcall('ZADD', known.ready[i], 'NX', '0', key)
        wake[#wake + 1] = known.ready[i]
      end
    end
  end
end

-- Appends where the index does not tell the epoch: to a stream that lost its row of it, or one that begins. Answers with the
-- entry's id, or nil and why.
local function append_anew(stream, category, key, field, event, at, known, wake)
  if exists(stream) then
    local last, fault = epoch_of(stream)
    if not last then return nil, stream .. ': ' .. fault end
    local id = append(stream, last, event, at)
    if not id or failure(id) then return nil, stream .. ': ' .. (failure(id) or 'it is gone') end
    redis.call('HSET', known.index, field, last)
    return id
  end
  local epoch = redis.pcall('INCR', EPOCH)
  if failure(epoch) then return nil, EPOCH .. ': ' .. failure(epoch) end
  epoch = text(epoch)
  local id = begin(stream, epoch, event, at)
  if failure(id) then return nil, stream .. ': ' .. failure(id) end
  -- So the server counts from the first entry on what a group has before it, and its first owner need not look for that. One that a
  -- publisher may not make is made by that owner.
  for i = 1, key == '' and 0 or #known.groups do
    redis.pcall('XGROUP', 'CREATE', stream, known.groups[i], NOTHING, 'ENTRIESREAD', '0')
  end
  redis.call('HSET', known.index, field, epoch)
  if field ~= key and key ~= '' then redis.call('HSETNX', known.index, key, '0') end
  forget(stream, category, key, known, wake)
  return id
end

-- `event`: stream, category, key ('' for none), key_field ('' for none), backfill, window (ms, a number), id, type,
-- version, headers ('' for none), data. Answers with PUBLISHED or DUPLICATE and the entry's id, STALE and the key field
-- in force, or UNWRITABLE and the reason.
local function publish_one(event, cache, now)
  local category, key = event.category, event.key
  local known, fault = category_of(category, cache)
  if not known then return UNWRITABLE, 'category ' .. category .. ': ' .. fault end
  if event.key_field ~= known.key_field then return STALE, known.key_field end

  -- Checks.
  if #event.id == 0 or #event.id > ID_MAX then
    return UNWRITABLE, 'the event id has ' .. #event.id .. ' bytes, not 1 to ' .. ID_MAX
  end
  if not known.types[event.type] or not known.versions[event.version] then
    if not string.find(event.type, '^%a[%w_.-]*$') or not string.find(event.version, '^%d+$') then
      return UNWRITABLE, 'the type or the version is not one'
    end
    known.types[event.type], known.versions[event.version] = true, true
  end
  if not is_object(event.data) then
    return UNWRITABLE, 'the data is not a JSON object: it must begin with `{` and end with `}`'
  end
  local stream = category
  local field = key
  if known.key_field ~= '' then
    fault = key_fault(key, known.word)
    if fault then return UNWRITABLE, fault end
    stream = scope_name(category, key)
  elseif key ~= '' then
    return UNWRITABLE, 'category ' .. category .. ' is not partitioned, and the event has a key'
  elseif event.backfill then
    -- Nothing would read it: such a category promises no order, so it has no second lane.
    return UNWRITABLE, 'category ' .. category .. ' is not partitioned, so it has no backfill lane'
  end
  if event.backfill then
    stream = stream .. ':' .. known.word
    field = field .. ':' .. known.word
  end
  if event.stream and event.stream ~= stream then
    return UNWRITABLE, 'the event belongs into ' .. stream .. ', not into ' .. event.stream
  end
  local seen = event.window > 0 and seen_name(category, event.id)
  if seen then
    local first = redis.pcall('GET', seen)
    if failure(first) then return UNWRITABLE, seen .. ': ' .. failure(first) end
    if first then return DUPLICATE, first end
  end
  local epoch = redis.pcall('HGET', known.index, field)
  if failure(epoch) then return UNWRITABLE, known.index .. ': ' .. failure(epoch) end
  local wake = {}
  if key ~= '' then
    wake, fault = make_ready(known, category, key)
    if not wake then return UNWRITABLE, fault end
  end

  -- The entry may be refused: a key of another type, an id that is not above the last one.
  local at = text(now)
  local id = false
  if epoch and epoch ~= '0' then
    id = append(stream, epoch, event, at)
  end
  if not id or failure(id) then
    id, fault = append_anew(stream, category, key, field, event, at, known, wake)
    if not id then
      make_unready(key, wake)
      return UNWRITABLE, fault
    end
  end
  for i = 1, #wake do redis.call('PUBLISH', wake[i], key) end
  -- Without a key there is only "look", and no set that says who has been told.
  for i = 1, key == '' and #known.ready or 0 do redis.call('PUBLISH', known.ready[i], '') end
  if seen then redis.call('SET', seen, id, 'PX', text(math.min(event.window, WINDOW_MAX))) end
  known.count = known.count + 1
  return PUBLISHED, id
end

-- Adds what a call published to the counts that are shown: one write a category, whatever the call holds. It comes last and
-- may fail (somebody put another type there): the events are published all the same.
local function count_published(cache)
  for category, known in pairs(cache) do
    if known.count > 0 then redis.pcall('HINCRBY', PUBLISHED_COUNTS, category, text(known.count)) end
  end
end
