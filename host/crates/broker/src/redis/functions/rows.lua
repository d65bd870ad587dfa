-- keyrail_6_rows: partitions as an operator sees them.
--
-- Keys:      none: a look
-- Arguments: collection, group, number of streams a partition, then of each: key, its streams
-- Answer:    of each: last id or '', settled id or '', waiting, lease or '', last owner or '', attempts, halt record or '',
--            from where on which version handled it or ''
-- Prevents:  rows whose columns do not belong together.

-- Entries after a group's last one, where the server cannot say.
local COUNTED_MAX = 10000

-- How far a group has settled a stream that is there, '' for nothing, and how many entries it has not.
local function standing(stream, group)
  local mine = group_info(stream, group)
  if not mine then return '', redis.call('XLEN', stream) end
  local settled = standing_of(stream, group, mine)
  -- Pending is what hosts were given of a category without partitions.
  local waiting = field_of(mine, 'lag')
    or #redis.call('XRANGE', stream, '(' .. field_of(mine, 'last-delivered-id'), '+', 'COUNT', COUNTED_MAX)
  if settled == NOTHING then settled = '' end
  return settled, waiting + field_of(mine, 'pending')
end

local function look(stream, group)
  if not is_stream(stream) then return '', '', 0 end
  return field_of(redis.call('XINFO', 'STREAM', stream), 'last-generated-id'), standing(stream, group)
end

local function keyrail_rows(_, args)
  local collection, group, streams = args[1], args[2], tonumber(args[3])
  local rows = {}
  for at = 4, #args, streams + 1 do
    local key = args[at]
    local scope = scope_name(collection, key)
    local last, settled, waiting = '', '', 0
    for i = 1, streams do
      local l, s, w = look(args[at + i], group)
      if i == 1 then last, settled = l, s end
      waiting = waiting + w
    end
    rows[#rows + 1] = {
      last, settled, text(waiting),
      token_of(lease_of(scope, group)),
      token_of(redis.call('HGET', owners_name(collection, group), key) or ''),
      redis.call('HGET', attempts_name(scope, group), 'attempts') or '0',
      redis.call('HGET', halt_name(scope, group), 'record') or '',
      redis.call('HGET', versions_name(collection, group), key) or '',
    }
  end
  return rows
end

redis.register_function{ function_name = 'keyrail_6_rows', callback = keyrail_rows, flags = { 'no-writes' } }
