-- keyrail_6_route: takes the oldest outbox records and publishes them.
--
-- Keys:      the outbox
-- Arguments: how many, window in ms in which an event id is remembered
-- Answer:    how many were published, 1 if there are more, the reasons of those that never can be
-- Prevents:  two routers exchanging the order of a key: reading, publishing and dropping are one step, so whoever comes
--            takes the oldest. A record that cannot be written is set aside with its reason, and the rest goes on; a full
--            server refuses the whole step, since this function may not run out of memory.

local function keyrail_route(keys, args)
  local rows = redis.call('XRANGE', keys[1], '-', '+', 'COUNT', args[1])
  local kind = redis.call('TYPE', ABANDONED).ok
  if kind ~= 'stream' and kind ~= 'none' then return redis.error_reply('WRONGTYPE ' .. ABANDONED .. ' holds a ' .. kind) end
  local now, window, cache = now_ms(), tonumber(args[2]), {}
  local published, abandoned, ids = 0, {}, {}
  for i = 1, #rows do
    local record = { window = window, backfill = false }
    local fields = rows[i][2]
    for j = 1, #fields, 2 do record[fields[j]] = fields[j + 1] end
    local fault
    if record.category and record.key and record.key_field and record.id and record.type and record.version and record.data then
      record.headers = record.headers or ''
      local status, value = publish_one(record, cache, now)
      if status == STALE then
        fault = 'category ' .. record.category .. ' is partitioned by "' .. value .. '", not by "' .. record.key_field .. '"'
      elseif status == UNWRITABLE then
        fault = value
      end
    else
      fault = 'the record lacks a field'
    end
    if fault then
      fault = (record.category or '?') .. '/' .. (record.type or '?') .. ' ' .. (record.id or rows[i][1]) .. ': ' .. fault
      local call = { 'XADD', ABANDONED, '*', 'reason', fault }
      for j = 1, math.min(#fields, CHUNK) do call[#call + 1] = fields[j] end
      redis.call(unpack(call))
      abandoned[#abandoned + 1] = fault
    else
      published = published + 1
    end
    ids[i] = rows[i][1]
  end
  call_in_chunks({ 'XDEL', keys[1] }, ids, 1)
  count_published(cache)
  return { published, redis.call('XLEN', keys[1]) > 0 and 1 or 0, abandoned }
end

redis.register_function('keyrail_6_route', keyrail_route)
