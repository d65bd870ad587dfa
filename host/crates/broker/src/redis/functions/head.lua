-- keyrail_6_head: the oldest unsettled entry of a partition, with everything that is known of it.
--
-- Keys:      the partition's streams
-- Arguments: scope, collection, group, key
-- Answer:    nothing when all is settled; else place of the stream, entries (this one), attempts or nil, halt record or
--            '', lease or '', how many wait, 1 when it is paused
-- Prevents:  an operator deciding on columns that do not belong together.

local function keyrail_head(keys, args)
  local scope, group, key = args[1], args[3], args[4]
  local place, id, fields = head_of(keys, scope, group)
  if not place then return {} end
  local waiting = 0
  for i = 1, #keys do
    local _, _, count = look(keys[i], group)
    waiting = waiting + count
  end
  local halted = redis.call('HGET', halt_name(scope, group), 'record')
  local attempts = not halted and attempts_of(scope, group)
  if attempts and (attempts[1] ~= keys[place] or attempts[2] ~= id) then attempts = false end
  return {
    place, { { id, fields } }, attempts, halted or '',
    token_of(lease_of(scope, group)),
    text(math.max(waiting, 1)), is_partition_paused(keys, key) and 1 or 0,
  }
end

redis.register_function{ function_name = 'keyrail_6_head', callback = keyrail_head, flags = { 'no-writes' } }
