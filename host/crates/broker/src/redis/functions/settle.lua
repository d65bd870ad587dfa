-- keyrail_6_settle: a commit that has nothing to do but to settle entries and to write state, as most have on a key with a backlog.
--
-- Keys:      the stream
-- Arguments: scope, group, text of the lease now and afterwards, place of the stream, last id, its sequence plus 1, then name and
--            value of each put
-- Answer:    OK alone; FENCED; NOT_HEAD and ''; REFUSED and why
-- Prevents:  what commit does.

-- What stands against a commit by who knows the lease as `expected`, as an answer; nil for nothing. The owner tells how far each stream is
-- settled, and that is what the lease says: so its entries are the head and what follows it, as long as nothing was committed
-- since that it has not heard of.
local function fence_fault(name, expected)
  local lease = redis.call('GET', name)
  if lease == expected then return end
  return lease and is_held_by(lease, token_of(expected)) and { NOT_HEAD, '' } or { FENCED }
end

-- Settles a stream up to `last`. Nothing is changed if it answers with a fault.
local function settle_up_to(stream, group, last, read)
  local failed = failure(redis.pcall('XGROUP', 'SETID', stream, group, last, 'ENTRIESREAD', read))
  if not failed then return end
  if not is_missing_group(failed) then
    if exists(stream) then return { REFUSED, stream .. ': ' .. failed } end
    return { NOT_HEAD, '' }
  end
  -- The stream was deleted and began anew.
  redis.call('XGROUP', 'CREATE', stream, group, last)
end

-- The same with state, whose names and values are the arguments from one place to another.
local function settle_with(stream, scope, group, expected, place, last, read, args, from, to)
  local fault = settle_up_to(stream, group, last, read)
  if fault or from > to then return fault end
  local state, added = state_name(scope, group), 0
  for at = from, to, CHUNK do
    local reply = redis.pcall('HSET', state, unpack(args, at, math.min(at + CHUNK - 1, to)))
    if failure(reply) then
      local _, settled = parts_of(expected, token_of(expected))
      move_to(stream, group, settled[tonumber(place)])
      return { REFUSED, state .. ': ' .. failure(reply) }
    end
    added = added + reply
  end
  -- Only a write that adds a name can be the key's first.
  if added > 0 then
    local collection, key = string.match(scope, '^([^:]+):(.*)$')
    redis.pcall('SADD', states_name(collection, group), key)
  end
end

local function keyrail_settle(keys, args)
  local scope, group, expected = args[1], args[2], args[3]
  local name = lease_name(scope, group)
  local fault = fence_fault(name, expected)
    or settle_with(keys[1], scope, group, expected, args[5], args[6], args[7], args, 8, #args)
  if fault then return fault end
  redis.call('SET', name, args[4], 'KEEPTTL')
  return OK
end

redis.register_function{ function_name = 'keyrail_6_settle', callback = keyrail_settle, flags = { 'allow-oom' } }
