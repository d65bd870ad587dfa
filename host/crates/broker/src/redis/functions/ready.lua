-- keyrail_6_ready: keys of a ready set that are due, not paused, and have no owner.
--
-- Keys:      the ready set
-- Arguments: collection, group, cursor (a rank), limit
-- Answer:    the next cursor or '', in how many ms the first key that was passed over may be due or '', the keys
-- Prevents:  nothing: a look. Ranks move while keys come and go, so a look can miss one; the next one finds it.

local function keyrail_ready(keys, args)
  local collection, group, cursor, limit = args[1], args[2], tonumber(args[3]), tonumber(args[4])
  -- A resume rings, so what is paused needs no time when it is due.
  local paused = paused_categories(collection, group)
  for i = 1, #paused do
    if redis.call('HEXISTS', paused_name(paused[i]), '') == 1 then return { '', '', {} } end
  end
  local rows = redis.call('ZRANGE', keys[1], text(cursor), text(cursor + PAGE - 1), 'WITHSCORES')
  local now, found, seen, soonest = now_ms(), {}, 0, nil
  while seen * 2 < #rows and #found < limit do
    local key, due = rows[seen * 2 + 1], tonumber(rows[seen * 2 + 2])
    seen = seen + 1
    local wait = due - now
    if wait <= 0 then
      -- -2 without lease, -1 for one without end, which is not ours.
      wait = redis.call('PTTL', lease_name(scope_name(collection, key), group))
    end
    local passed_over = wait ~= -2
    for i = 1, #paused do
      if redis.call('HEXISTS', paused_name(paused[i]), key) == 1 then passed_over, wait = true, -1 end
    end
    if not passed_over then
      found[#found + 1] = key
    elseif wait >= 0 and (not soonest or wait < soonest) then
      soonest = wait
    end
  end
  local ended = seen * 2 == #rows and seen < PAGE
  return { ended and '' or text(cursor + seen), soonest and text(math.max(soonest, 1)) or '', found }
end

redis.register_function{ function_name = 'keyrail_6_ready', callback = keyrail_ready, flags = { 'no-writes' } }
