-- keyrail_6_lag: what a group has before it in some partitions.
--
-- Keys:      none: a look
-- Arguments: group, number of streams a partition, then of each partition: its streams
-- Answer:    of each partition: how many entries are not settled, and when the oldest of them was recorded, in ms since 1970
--            by the server's clock, or ''
-- Prevents:  nothing: a look. The caller asks for a few partitions at a time, so that nobody waits for it.

-- When the first entry behind `settled` was recorded; nil if there is none, or it does not say.
local function recorded_at(stream, settled)
  local row = redis.call('XRANGE', stream, settled == '' and '-' or '(' .. settled, '+', 'COUNT', 1)[1]
  return row and tonumber(field_of(row[2], 'at'))
end

local function keyrail_lag(_, args)
  local group, streams = args[1], tonumber(args[2])
  local answer = {}
  for at = 3, #args, streams do
    local waiting, oldest = 0, nil
    for i = 0, streams - 1 do
      local stream = args[at + i]
      local settled, unsettled = '', 0
      if is_stream(stream) then settled, unsettled = standing(stream, group) end
      if unsettled > 0 then
        waiting = waiting + unsettled
        local recorded = recorded_at(stream, settled)
        if recorded and (not oldest or recorded < oldest) then oldest = recorded end
      end
    end
    answer[#answer + 1] = text(waiting)
    answer[#answer + 1] = oldest and text(oldest) or ''
  end
  return answer
end

redis.register_function{ function_name = 'keyrail_6_lag', callback = keyrail_lag, flags = { 'no-writes' } }
