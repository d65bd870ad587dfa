-- keyrail_1_ready: keys of a ready set that are due and have no owner.
--
-- Keys:      the ready set
-- Arguments: collection, group, cursor (a rank), limit
-- Answer:    the next cursor or '', the keys
-- Prevents:  nothing: a look. Ranks move while keys come and go, so a look can miss one; the next one finds it.

local function keyrail_ready(keys, args)
  local collection, group, cursor, limit = args[1], args[2], tonumber(args[3]), tonumber(args[4])
  local rows = redis.call('ZRANGE', keys[1], text(cursor), text(cursor + PAGE - 1), 'WITHSCORES')
  local now, found, seen = now_ms(), {}, 0
  while seen * 2 < #rows and #found < limit do
    local key, due = rows[seen * 2 + 1], tonumber(rows[seen * 2 + 2])
    seen = seen + 1
    if due <= now and not exists(lease_name(scope_name(collection, key), group)) then found[#found + 1] = key end
  end
  local ended = seen * 2 == #rows and seen < PAGE
  return { ended and '' or text(cursor + seen), found }
end

redis.register_function{ function_name = 'keyrail_1_ready', callback = keyrail_ready, flags = { 'no-writes' } }
