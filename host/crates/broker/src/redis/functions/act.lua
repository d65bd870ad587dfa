-- keyrail_4_act: retries, skips or sets aside the head of a partition.
--
-- Keys:      the partition's streams
-- Arguments: scope, collection, group, key, `retry` or `skip` or `set-aside`, place of the stream, id, who, reason, target
--            for the record, what is kept
-- Answer:    OK; NOT_HEAD, place and id of the head, or 0 and ''; REFUSED and why
-- Prevents:  an operator settling another entry than the one looked at; an owner that goes on beside the action: its
--            lease goes in the same step, so the event that it runs is fenced.

-- Settles an entry that may be pending, not delivered yet, or gone: whichever, the group stands behind it afterwards.
local function settle_head(stream, group, id)
  if not exists(stream) then return end
  local info = group_info(stream, group)
  if not info then
    redis.call('XGROUP', 'CREATE', stream, group, '0')
    info = { ['last-delivered-id'] = '0-0' }
  end
  if id_less(info['last-delivered-id'], id) then
    local row = redis.call('XRANGE', stream, '(' .. info['last-delivered-id'], '+', 'COUNT', 1)[1]
    if row and row[1] == id then
      redis.call('XREADGROUP', 'GROUP', group, HANDED_BACK, 'COUNT', 1, 'STREAMS', stream, '>')
    elseif not row or id_less(id, row[1]) then
      redis.call('XGROUP', 'SETID', stream, group, id)
    end
  end
  redis.call('XACK', stream, group, id)
end

local function keyrail_act(keys, args)
  local scope, collection, group, key = args[1], args[2], args[3], args[4]
  local action, place, id, by = args[5], tonumber(args[6]), args[7], { args[8], args[9] }
  local keeps = retention_of(args[11])

  -- Checks.
  local head_place, head, fields = head_of(keys, scope, group)
  if head_place ~= place or head ~= id then return { NOT_HEAD, head_place or 0, head or '' } end
  local stream = keys[place]
  local category = category_of_stream(stream)
  local ready, halted = ready_name(collection, group), halted_name(collection, group)
  local fault = type_fault({ { AUDIT, 'stream' }, { ready, 'zset' }, { halted, 'set' }, { EPOCH, 'string' },
    { dlq_name(category, key), 'stream' }, { dlqs_name(category), 'zset' } })
  if fault then return { REFUSED, fault } end
  local token = redis.call('GET', lease_name(scope, group)) or ''
  local failures = redis.call('HMGET', halt_name(scope, group), 'stream', 'id', 'attempts', 'error')
  if not failures[1] then
    failures = redis.call('HMGET', attempts_name(scope, group), 'stream', 'id', 'attempts', 'error')
  end
  if failures[1] ~= stream or failures[2] ~= id then failures = {} end

  if action == 'set-aside' then
    keep_letter(category, key, group, stream, id, fields, failures[3] or '0', failures[4] or '', by)
  end
  if action ~= 'retry' then settle_head(stream, group, id) end
  redis.call('DEL', lease_name(scope, group), attempts_name(scope, group), halt_name(scope, group))
  redis.call('SREM', halted, key)
  local left = hand_back(keys, group, token)
  for i = 1, #keys do left = left or has_new(keys[i], group) end
  if left then
    redis.call('ZADD', ready, '0', key)
    redis.call('PUBLISH', ready, key)
  else
    run_dry(existing(keys), collection, group, key, keeps)
  end
  record(action, args[10], stream .. ' ' .. id, by)
  return { OK }
end

redis.register_function{ function_name = 'keyrail_4_act', callback = keyrail_act, flags = { 'allow-oom' } }
