-- What a category without partitions keeps pending: entries that were given to hosts. Its streams are read with
-- XREADGROUP; those of partitions are not (reading.lua).

-- Where entries are that are nobody's at the moment.
local HANDED_BACK = '-'

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

local function has_pending(stream, group)
  local summary = redis.pcall('XPENDING', stream, group)
  return not failure(summary) and summary[1] > 0
end
