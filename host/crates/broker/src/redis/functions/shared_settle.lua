-- keyrail_6_shared_commit: settles a delivery with the events that it emits; keyrail_6_shared_fail: puts a failed try on
-- record; keyrail_6_shared_aside: settles it and keeps it with the dead letters.
--
-- Keys:      the stream
-- Arguments: group, owner, id, count; then to commit: what is kept, number of emits, eight values of each as in commit.lua;
--            to fail: wait in ms until the next try, error; to set aside: what is kept, error
-- Answer:    OK; FENCED; REFUSED and why
-- Prevents:  the effects of a host that was too slow, after its entry was given to another or settled.

local function delivery_fault(stream, args)
  local fault = shared_fault(stream, args[1])
  if fault then return fault end
  if not is_delivered(stream, args[1], args[2], args[3], args[4]) then return { FENCED } end
end

local function keyrail_shared_commit(keys, args)
  local stream, group, id, keeps, emits = keys[1], args[1], args[3], retention_of(args[5]), tonumber(args[6])
  local fault = delivery_fault(stream, args)
  if fault then return fault end
  fault = emits > 0 and type_fault({ { OUTBOX, 'stream' } })
  if fault then return { REFUSED, fault } end

  emit_all(args, 6, emits)
  settle_delivery(stream, group, id)
  trim_shared(stream, group, id, keeps)
  return { OK }
end

local function keyrail_shared_fail(keys, args)
  local stream, group, id, after = keys[1], args[1], args[3], tonumber(args[5])
  local fault = delivery_fault(stream, args)
  if fault then return fault end
  local attempts, crashes = failures_of(stream, group, id)

  put_failures(stream, group, id, attempts + 1, crashes, args[6])
  put_back(stream, group, id, now_ms() + after)
  if after == 0 then redis.call('PUBLISH', ready_name(stream, group), '') end
  return { OK }
end

local function keyrail_shared_aside(keys, args)
  local stream, group, id, keeps = keys[1], args[1], args[3], retention_of(args[5])
  local fault = delivery_fault(stream, args)
  if fault then return fault end

  local attempts = failures_of(stream, group, id)
  set_aside(stream, group, id, attempts + 1, args[6])
  trim_shared(stream, group, id, keeps)
  return { OK }
end

redis.register_function{ function_name = 'keyrail_6_shared_commit', callback = keyrail_shared_commit, flags = { 'allow-oom' } }
redis.register_function{ function_name = 'keyrail_6_shared_fail', callback = keyrail_shared_fail, flags = { 'allow-oom' } }
redis.register_function{ function_name = 'keyrail_6_shared_aside', callback = keyrail_shared_aside, flags = { 'allow-oom' } }
