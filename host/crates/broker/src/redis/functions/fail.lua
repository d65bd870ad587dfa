-- keyrail_4_fail: puts one failed try of the head on record.
--
-- Keys:      the head's stream
-- Arguments: scope, collection, group, key, token, id, which try, wait in ms until the next, error
-- Answer:    OK; FENCED; NOT_HEAD and the head or ''; REFUSED and why
-- Prevents:  one try being counted twice when its answer was lost, and a try of an owner that lost its lease being counted
--            against its successor.

-- The head as {status, …} if it is not `id`, nil if it is.
local function head_fault(stream, group, id)
  local pending = redis.pcall('XPENDING', stream, group, '-', '+', 1)
  local failed = failure(pending)
  if failed and not is_missing_group(failed) then return { REFUSED, stream .. ': ' .. failed } end
  if failed or not pending[1] then return { NOT_HEAD, '' } end
  if pending[1][1] ~= id then return { NOT_HEAD, pending[1][1] } end
end

local function keyrail_fail(keys, args)
  local scope, collection, group, key, token = args[1], args[2], args[3], args[4], args[5]
  local stream, id, attempt, after = keys[1], args[6], tonumber(args[7]), tonumber(args[8])
  if not is_owner(scope, group, token) then return { FENCED } end
  local fault = head_fault(stream, group, id)
  if fault then return fault end
  local name = attempts_name(scope, group)
  local record = redis.call('HMGET', name, 'stream', 'id', 'attempts')
  local same = record[1] == stream and record[2] == id
  local counted = same and tonumber(record[3]) or 0
  if attempt == counted then return { OK } end
  if attempt ~= counted + 1 then
    return { REFUSED, 'try ' .. args[7] .. ' of ' .. stream .. ' ' .. id .. ' does not follow try ' .. text(counted) }
  end

  if not same then
    redis.call('DEL', name)
    redis.call('HSET', name, 'stream', stream, 'id', id, 'crashes', '0')
  end
  local next_at = text(now_ms() + after)
  redis.call('HSET', name, 'attempts', args[7], 'next_at', next_at, 'error', args[9])
  redis.pcall('ZADD', ready_name(collection, group), 'XX', next_at, key)
  return { OK }
end

redis.register_function{ function_name = 'keyrail_4_fail', callback = keyrail_fail, flags = { 'allow-oom' } }
