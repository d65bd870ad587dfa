-- keyrail_6_halt: lets a partition stand still on its head, and gives the lease up.
--
-- Keys:      the partition's streams
-- Arguments: scope, collection, group, key, token, place of the stream, id, the record, failed tries, error
-- Answer:    OK; FENCED; NOT_HEAD and the head or ''; REFUSED and why
-- Prevents:  a partition that is halted and owned, or halted by an owner that lost its lease.

local function keyrail_halt(keys, args)
  local scope, collection, group, key, token = args[1], args[2], args[3], args[4], args[5]
  local place, id = tonumber(args[6]), args[7]
  local stream, lease = keys[place], lease_of(scope, group)
  if not is_held_by(lease, token) then return { FENCED } end
  -- Where the stream began anew the head that was seen may be gone.
  local serving, settled = parts_of(lease, token)
  local fault = head_fault(keys, serving, settled, place, id)
  if fault and fault[2] ~= '' and id_less(fault[2], id) then return fault end
  local halt, halted = halt_name(scope, group), halted_name(collection, group)
  if failure(redis.pcall('SCARD', halted)) then return { REFUSED, halted .. ' is not a set' } end

  redis.call('DEL', halt)
  redis.call('HSET', halt, 'stream', stream, 'id', id, 'record', args[8], 'attempts', args[9], 'error', args[10])
  redis.call('SADD', halted, key)
  redis.pcall('ZREM', ready_name(collection, group), key)
  give_up(scope, collection, group, key, token)
  return { OK }
end

redis.register_function{ function_name = 'keyrail_6_halt', callback = keyrail_halt, flags = { 'allow-oom' } }
