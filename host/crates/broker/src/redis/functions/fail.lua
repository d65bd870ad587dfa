-- keyrail_6_fail: puts one failed try of the head on record.
--
-- Keys:      the partition's streams
-- Arguments: scope, collection, group, key, token, place of the stream, id, which try, wait in ms until the next, error
-- Answer:    OK; FENCED; NOT_HEAD and the head or ''; REFUSED and why
-- Prevents:  one try being counted twice when its answer was lost, and a try of an owner that lost its lease being counted
--            against its successor.

local function keyrail_fail(keys, args)
  local scope, collection, group, key, token = args[1], args[2], args[3], args[4], args[5]
  local place, id, attempt, after = tonumber(args[6]), args[7], tonumber(args[8]), tonumber(args[9])
  local stream = keys[place]
  local lease = lease_of(scope, group)
  if not is_held_by(lease, token) then return { FENCED } end
  local serving, settled = parts_of(lease, token)
  local fault = head_fault(keys, serving, settled, place, id)
  if fault then return fault end
  local name = attempts_name(scope, group)
  local record = redis.call('HMGET', name, 'stream', 'id', 'attempts')
  local same = record[1] == stream and record[2] == id
  local counted = same and tonumber(record[3]) or 0
  if attempt == counted then return { OK } end
  if attempt ~= counted + 1 then
    return { REFUSED, 'try ' .. args[8] .. ' of ' .. stream .. ' ' .. id .. ' does not follow try ' .. text(counted) }
  end

  if not same then
    redis.call('DEL', name)
    redis.call('HSET', name, 'stream', stream, 'id', id, 'crashes', '0')
  end
  local next_at = text(now_ms() + after)
  redis.call('HSET', name, 'attempts', args[8], 'next_at', next_at, 'error', args[10])
  redis.pcall('ZADD', ready_name(collection, group), 'XX', next_at, key)
  return { OK }
end

redis.register_function{ function_name = 'keyrail_6_fail', callback = keyrail_fail, flags = { 'allow-oom' } }
