-- Categories that are not partitioned: what their functions share. The fence is the delivery: the entry is pending for
-- this consumer at this count, which the server raises with every claim. Entries that are nobody's (failed, or given back)
-- are pending for HANDED_BACK and stand in the waiting list with the time when they are due.
--
-- A claim silently drops the pending mark of an entry whose body is gone; such an entry is told as a dead letter.

local GONE = 'the entry was deleted or trimmed by somebody else'
local HOST = { 'keyrail', 'set aside by the host' }

-- What keeps a source from being worked on, as an answer; nil when nothing does.
local function shared_fault(stream, group)
  local fault = type_fault({ { stream, 'stream' }, { entry_attempts_name(stream, group), 'hash' },
    { waiting_name(stream, group), 'zset' }, { dlq_name(stream, ''), 'stream' }, { dlqs_name(stream), 'zset' },
    { EPOCH, 'string' } })
  if fault then return { REFUSED, fault } end
end

-- The row of XPENDING of one entry: id, consumer, idle time in ms, count. Nothing when it is settled.
local function delivery_of(stream, group, id)
  local rows = redis.pcall('XPENDING', stream, group, id, id, 1)
  local failed = failure(rows)
  if failed then
    if is_missing_group(failed) then return end
    error(rows)
  end
  return rows[1]
end

-- Whether an entry is this consumer's at this count.
local function is_delivered(stream, group, consumer, id, count)
  local row = delivery_of(stream, group, id)
  return row and row[2] == consumer and text(row[4]) == count or false
end

-- Failed tries, crashes and the last error of an entry.
local function failures_of(stream, group, id)
  local value = redis.call('HGET', entry_attempts_name(stream, group), id)
  if not value then return 0, 0, '' end
  local attempts, crashes, failed = string.match(value, '^(%d+):(%d+):(.*)$')
  return tonumber(attempts) or 0, tonumber(crashes) or 0, failed or ''
end

local function put_failures(stream, group, id, attempts, crashes, failed)
  redis.call('HSET', entry_attempts_name(stream, group), id, text(attempts) .. ':' .. text(crashes) .. ':' .. failed)
end

local function settle_delivery(stream, group, id)
  redis.call('XACK', stream, group, id)
  redis.call('HDEL', entry_attempts_name(stream, group), id)
  redis.call('ZREM', waiting_name(stream, group), id)
end

-- Keeps what is known of an entry, and settles it.
local function set_aside(stream, group, id, attempts, failed)
  keep_letter(stream, '', group, stream, id, body_of(stream, id), text(attempts), failed, HOST)
  settle_delivery(stream, group, id)
end

-- Makes an entry nobody's, due at a time. One without a body is set aside in place of it.
local function put_back(stream, group, id, due)
  if body_of(stream, id) then
    redis.call('XCLAIM', stream, group, HANDED_BACK, '0', id, 'JUSTID')
    redis.call('ZADD', waiting_name(stream, group), text(due), id)
    return
  end
  local attempts = failures_of(stream, group, id)
  set_aside(stream, group, id, attempts, GONE)
end

-- After something was settled: at once when nothing is pending, else once in so many entries.
local function trim_shared(stream, group, id, keeps)
  local _, sequence = id_parts(id)
  if sequence % TRIM_EVERY == 0 or not has_pending(stream, group) then trim(stream, keeps) end
end
