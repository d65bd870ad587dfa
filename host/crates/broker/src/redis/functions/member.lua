-- keyrail_6_member: who is there; tells of oneself, leaves, or only looks.
--
-- Keys:      the members: a hash of owner → `{until}:{signature}:{record}`
-- Arguments: `announce`, owner, TTL in ms, signature (what others have to know at once), record; or `leave`, owner; or `look`
-- Answer:    the records of all whose time is not over
-- Prevents:  clocks of two hosts being compared: only the server's says whose time is over. And a member that vanished
--            without a word staying unnoticed: whoever comes next drops it and rings.

local function keyrail_member(keys, args)
  local members, action, owner = keys[1], args[1], args[2]
  local rows, now = redis.call('HGETALL', members), now_ms()
  local rings, gone, records, before = false, {}, {}, nil
  for i = 1, #rows, 2 do
    local till, signature, record = string.match(rows[i + 1], '^(%d+):([^:]*):(.*)$')
    if not till or tonumber(till) <= now then
      gone[#gone + 1] = rows[i]
    elseif rows[i] == owner and action ~= 'look' then
      before = signature
      if action == 'leave' then gone[#gone + 1] = rows[i] end
    else
      records[#records + 1] = record
    end
  end

  call_in_chunks({ 'HDEL', members }, gone, 1)
  rings = #gone > 0
  if action == 'announce' then
    redis.call('HSET', members, owner, text(now + tonumber(args[3])) .. ':' .. args[4] .. ':' .. args[5])
    records[#records + 1] = args[5]
    rings = rings or before ~= args[4]
  end
  if rings then redis.call('PUBLISH', members, '') end
  return records
end

redis.register_function{ function_name = 'keyrail_6_member', callback = keyrail_member, flags = { 'allow-oom' } }
