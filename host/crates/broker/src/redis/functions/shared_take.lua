-- keyrail_6_shared_take: gives a host entries of a category that is not partitioned.
--
-- Keys:      the stream
-- Arguments: group, owner, how many, idle time in ms after which an entry is taken from whoever has it
-- Answer:    OK, whether there may be more, in how many ms another may be due or '', then of each delivery: entry, count,
--            attempts, crashes; REFUSED and why
-- Prevents:  an entry being given to two hosts at one count; an entry of a host that died being nobody's for ever; names
--            of hosts that are gone piling up.

-- Claims entries for the owner; those without a body are set aside, and left out. `given` is a
-- list of entries, and knows their ids.
local function claim_shared(stream, group, owner, ids, given)
  if #ids == 0 then return end
  local call = { 'XCLAIM', stream, group, owner, '0' }
  for i = 1, #ids do call[#call + 1] = ids[i] end
  local rows, there = redis.call(unpack(call)), {}
  for i = 1, #rows do
    if rows[i] then
      there[rows[i][1]] = true
      given[#given + 1] = rows[i]
      given[rows[i][1]] = true
    end
  end
  for i = 1, #ids do
    redis.call('ZREM', waiting_name(stream, group), ids[i])
    if not there[ids[i]] then
      local attempts = failures_of(stream, group, ids[i])
      set_aside(stream, group, ids[i], attempts, GONE)
    end
  end
end

-- The names that hold entries, without the one of entries that are nobody's. Names that hold nothing and were not heard
-- of for the idle time go.
local function holders_of(stream, group, owner, idle_min)
  local rows, names = redis.pcall('XINFO', 'CONSUMERS', stream, group), {}
  if failure(rows) then return names end
  for i = 1, #rows do
    local consumer = {}
    for j = 1, #rows[i], 2 do consumer[rows[i][j]] = rows[i][j + 1] end
    if consumer.name == HANDED_BACK then
      -- Its entries are in the waiting list.
    elseif consumer.pending > 0 then
      names[#names + 1] = consumer.name
    elseif consumer.name ~= owner and consumer.idle >= idle_min then
      redis.call('XGROUP', 'DELCONSUMER', stream, group, consumer.name)
    end
  end
  return names
end

-- The first time when something that is pending or waiting now is due, in ms from now.
local function next_due(stream, group, owner, idle_min, now)
  local soonest
  local first = redis.call('ZRANGE', waiting_name(stream, group), '0', '0', 'WITHSCORES')
  if first[2] then soonest = tonumber(first[2]) - now end
  local holders = holders_of(stream, group, owner, idle_min)
  for i = 1, #holders do
    local rows = redis.call('XPENDING', stream, group, '-', '+', PAGE, holders[i])
    for j = 1, #rows do
      local wait = idle_min - rows[j][3]
      if not soonest or wait < soonest then soonest = wait end
    end
  end
  return soonest and text(math.max(soonest, 1)) or ''
end

local function keyrail_shared_take(keys, args)
  local stream, group, owner, max, idle_min = keys[1], args[1], args[2], tonumber(args[3]), tonumber(args[4])

  -- Checks.
  local fault = shared_fault(stream, group)
  if fault then return fault end
  if is_paused(stream, '') or not exists(stream) then return { OK, 0, '' } end

  local now, given, ids = now_ms(), {}, {}
  local due = redis.call('ZRANGEBYSCORE', waiting_name(stream, group), '-inf', text(now), 'LIMIT', '0', text(max))
  for i = 1, #due do
    if delivery_of(stream, group, due[i]) then
      ids[#ids + 1] = due[i]
    else
      redis.call('ZREM', waiting_name(stream, group), due[i])
    end
  end
  claim_shared(stream, group, owner, ids, given)

  local holders = holders_of(stream, group, owner, idle_min)
  for i = 1, #holders do
    local left = max - #given
    if left <= 0 then break end
    local rows = redis.call('XPENDING', stream, group, 'IDLE', text(idle_min), '-', '+', text(left), holders[i])
    ids = {}
    for j = 1, #rows do
      -- What was just claimed has been idle for no time, which is enough when the idle time is none.
      if not given[rows[j][1]] then
        ids[#ids + 1] = rows[j][1]
        local attempts, crashes, failed = failures_of(stream, group, rows[j][1])
        put_failures(stream, group, rows[j][1], attempts, crashes + 1, failed)
      end
    end
    claim_shared(stream, group, owner, ids, given)
  end

  if #given < max then
    local entries = read_new(stream, group, owner, max - #given)
    for i = 1, #entries do given[#given + 1] = entries[i] end
  end

  local answer = { OK, #given == max and 1 or 0, next_due(stream, group, owner, idle_min, now) }
  for i = 1, #given do
    local id = given[i][1]
    local attempts, crashes = failures_of(stream, group, id)
    answer[#answer + 1] = given[i]
    answer[#answer + 1] = text(delivery_of(stream, group, id)[4])
    answer[#answer + 1] = text(attempts)
    answer[#answer + 1] = text(crashes)
  end
  return answer
end

redis.register_function{ function_name = 'keyrail_6_shared_take', callback = keyrail_shared_take, flags = { 'allow-oom' } }
