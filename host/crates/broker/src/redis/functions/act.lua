-- keyrail_6_act: retries, skips or sets aside the head of a partition.
--
-- Keys:      the partition's streams
-- Arguments: scope, collection, group, key, `retry` or `skip` or `set-aside`, place of the stream, id, who, reason, target
--            for the record, what is kept
-- Answer:    OK; NOT_HEAD, place and id of the head, or 0 and ''; REFUSED and why
-- Prevents:  an operator settling another entry than the one looked at; an owner that goes on beside the action: its
--            lease goes in the same step, so the event that it runs is fenced.

-- Settles the head, whether it is there or gone. Where it is gone, so is everything up to the next one that is there.
local function settle_head(stream, group, id)
  if not exists(stream) then return end
  local settled, to_make = standing_of(stream, group, group_info(stream, group))
  if to_make then make_group(stream, group, settled, to_make) end
  if not id_less(settled, id) then return end
  if not body_of(stream, id) then
    local next = read_after(stream, id, 1)[1]
    local before = next and id_before(next[1]) or id
    if id_less(id, before) then id = before end
  end
  move_to(stream, group, id)
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
  local token = token_of(lease_of(scope, group))
  local failures = redis.call('HMGET', halt_name(scope, group), 'stream', 'id', 'attempts', 'error')
  if not failures[1] then
    failures = redis.call('HMGET', attempts_name(scope, group), 'stream', 'id', 'attempts', 'error')
  end
  if failures[1] ~= stream or failures[2] ~= id then failures = {} end

  if action == 'set-aside' then
    keep_letter(category, key, group, stream, id, fields, failures[3] or '0', failures[4] or '', by)
  end
  if action ~= 'retry' then settle_head(stream, group, id) end
  redis.call('DEL', attempts_name(scope, group), halt_name(scope, group))
  redis.call('SREM', halted, key)
  if token ~= '' then give_up(scope, collection, group, key, token) end
  local settled, left = {}, false
  for i = 1, #keys do
    settled[i] = settled_id(keys[i], group)
    left = left or #read_after(keys[i], settled[i], 1) > 0
  end
  if left then
    redis.call('ZADD', ready, '0', key)
    redis.call('PUBLISH', ready, key)
  else
    run_dry(keys, settled, collection, group, key, keeps)
  end
  record(action, args[10], stream .. ' ' .. id, by)
  return { OK }
end

redis.register_function{ function_name = 'keyrail_6_act', callback = keyrail_act, flags = { 'allow-oom' } }
