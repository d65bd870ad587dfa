-- keyrail_6_shared_keep: tells that deliveries are being worked on; keyrail_6_shared_return: gives them back untried;
-- keyrail_6_shared_evict: gives back what everybody has, a page of it, while the category is paused.
--
-- Keys:      the stream
-- Arguments: group; then, but to evict, owner, id and count of each delivery
-- Answer:    OK; to evict: 1 when there may be more; REFUSED and why
-- Prevents:  a host that went on after its entry was given to another taking it back; a commit after `pause` has answered.

local function keyrail_shared_keep(keys, args)
  local stream, group, owner = keys[1], args[1], args[2]
  local fault = shared_fault(stream, group)
  if fault then return fault end
  for i = 3, #args, 2 do
    -- Without its body a claim would end the delivery; the host may still commit it.
    if is_delivered(stream, group, owner, args[i], args[i + 1]) and body_of(stream, args[i]) then
      redis.call('XCLAIM', stream, group, owner, '0', args[i], 'JUSTID')
    end
  end
  return { OK }
end

local function keyrail_shared_return(keys, args)
  local stream, group, owner = keys[1], args[1], args[2]
  local fault = shared_fault(stream, group)
  if fault then return fault end
  local any = false
  for i = 3, #args, 2 do
    if is_delivered(stream, group, owner, args[i], args[i + 1]) then
      put_back(stream, group, args[i], 0)
      any = true
    end
  end
  if any then redis.call('PUBLISH', ready_name(stream, group), '') end
  return { OK }
end

local function keyrail_shared_evict(keys, args)
  local stream, group = keys[1], args[1]
  local fault = shared_fault(stream, group)
  if fault then return fault end
  if not exists(stream) or not is_paused(stream, '') then return { OK, 0 } end
  local consumers = redis.pcall('XINFO', 'CONSUMERS', stream, group)
  if failure(consumers) then return { OK, 0 } end
  local left = PAGE
  for i = 1, #consumers do
    local consumer = {}
    for j = 1, #consumers[i], 2 do consumer[consumers[i][j]] = consumers[i][j + 1] end
    if consumer.name ~= HANDED_BACK and consumer.pending > 0 and left > 0 then
      local rows = redis.call('XPENDING', stream, group, '-', '+', text(left), consumer.name)
      for j = 1, #rows do put_back(stream, group, rows[j][1], 0) end
      left = left - #rows
    end
  end
  return { OK, left == 0 and 1 or 0 }
end

redis.register_function{ function_name = 'keyrail_6_shared_keep', callback = keyrail_shared_keep, flags = { 'allow-oom' } }
redis.register_function{ function_name = 'keyrail_6_shared_return', callback = keyrail_shared_return, flags = { 'allow-oom' } }
redis.register_function{ function_name = 'keyrail_6_shared_evict', callback = keyrail_shared_evict, flags = { 'allow-oom' } }
