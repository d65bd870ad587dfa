-- keyrail_6_pause: sets or ends the pause of a category or of one key of it. Owners are sent away by keyrail_6_evict.
--
-- Keys:      what is paused in the category
-- Arguments: category, key ('' for the whole category), `pause` or `resume`, who, reason, target for the record, who and
--            why as bytes
-- Answer:    1, or 0 when it was so already
-- Prevents:  a partition that was resumed and that nobody hears of.

local function keyrail_pause(keys, args)
  local paused, category, key, action, by = keys[1], args[1], args[2], args[3], { args[4], args[5] }
  local pausing = action == 'pause'
  local fault = type_fault({ { paused, 'hash' }, { PAUSED_CATEGORIES, 'set' }, { AUDIT, 'stream' } })
  if fault then return redis.error_reply('WRONGTYPE ' .. fault) end
  if pausing == (redis.call('HEXISTS', paused, key) == 1) then return 0 end
  local groups = redis.call('HGETALL', groups_name(category))

  if pausing then
    redis.call('HSET', paused, key, text(now_ms()) .. ':' .. args[7])
    redis.call('SADD', PAUSED_CATEGORIES, category)
  else
    redis.call('HDEL', paused, key)
    if not exists(paused) then redis.call('SREM', PAUSED_CATEGORIES, category) end
    -- An empty payload for a whole category: look through the set.
    for i = 1, #groups, 2 do
      if groups[i] ~= KEY_FIELD and groups[i] ~= BACKFILL then redis.call('PUBLISH', groups[i + 1], key) end
    end
  end
  record(action, args[6], '', by)
  return 1
end

redis.register_function{ function_name = 'keyrail_6_pause', callback = keyrail_pause, flags = { 'allow-oom' } }
