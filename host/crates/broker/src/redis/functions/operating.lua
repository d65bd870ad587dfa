-- What operators' functions share: the head, the record of what was done, dead letters.

local AUDIT_KEEP = 10000

-- What holds another type than is due, as a text; nil when all are right or absent. Rows of name and type.
local function type_fault(rows)
  for i = 1, #rows do
    local name, due = rows[i][1], rows[i][2]
    local kind = redis.call('TYPE', name).ok
    if kind ~= due and kind ~= 'none' then return name .. ' holds a ' .. kind .. ', not a ' .. due end
  end
end

-- Comes after the action's writes, so it must not fail: the epoch is that of whatever was recorded last. Sequences in the audit and in dead letters are contiguous, so that pages can go on from a number. `by` is who and why.
local function record(action, target, entry, by)
  local epoch = exists(AUDIT) and epoch_of(AUDIT) or '1'
  redis.call('XADD', AUDIT, 'MAXLEN', '~', text(AUDIT_KEEP), epoch .. '-*', 'at', text(now_ms()), 'action', action,
    'target', target, 'entry', entry, 'who', by[1], 'reason', by[2])
end

local LETTER_FIELDS = { id = true, type = true, version = true, headers = true, data = true }

-- Keeps an entry, of which `fields` may be missing, with the dead letters of its category and key. Types are checked. The
-- epoch is one of its own, so that the id of a letter that was dropped never comes again.
local function keep_letter(category, key, group, stream, id, fields, attempts, failed, by)
  local dlq = dlq_name(category, key)
  local epoch, kept = exists(dlq) and epoch_of(dlq) or text(redis.call('INCR', EPOCH)), {}
  local call = { 'XADD', dlq, epoch .. '-*', 'group', group, 'stream', stream, 'entry', id, 'attempts', attempts,
    'error', failed, 'who', by[1], 'reason', by[2], 'at', text(now_ms()) }
  for i = 1, fields and #fields or 0, 2 do
    -- Each once: an entry of others may have any number of fields.
    if LETTER_FIELDS[fields[i]] and not kept[fields[i]] then
      kept[fields[i]] = true
      call[#call + 1] = fields[i]
      call[#call + 1] = fields[i + 1]
    end
  end
  redis.call(unpack(call))
  redis.call('ZADD', dlqs_name(category), '0', key)
end

local function drop_letter(category, key, id)
  local dlq = dlq_name(category, key)
  redis.call('XDEL', dlq, id)
  if redis.call('XLEN', dlq) == 0 then
    redis.call('DEL', dlq)
    redis.call('ZREM', dlqs_name(category), key)
  end
end

local function place_of(streams, name)
  for i = 1, #streams do
    if streams[i] == name then return i end
  end
end

local function body_of(stream, id)
  local row = exists(stream) and redis.call('XRANGE', stream, id, id)[1]
  return row and row[2] or false
end

-- The head: place of its stream, id, fields or false. What it stands still on; else, in the stream of the failures on record
-- before others, the oldest that is not settled. Nothing when all is settled.
local function head_of(streams, scope, group)
  local halt = redis.call('HMGET', halt_name(scope, group), 'stream', 'id')
  local place = halt[1] and place_of(streams, halt[1])
  if place then return place, halt[2], body_of(streams[place], halt[2]) end
  local known = place_of(streams, redis.call('HGET', attempts_name(scope, group), 'stream')) or 1
  for step = 0, #streams do
    local i = step == 0 and known or step
    local id, fields = first_behind(streams[i], settled_id(streams[i], group))
    if id then return i, id, fields end
  end
end
