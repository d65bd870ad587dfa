-- keyrail_4_take: reads for the owner.
--
-- Keys:      the partition's streams
-- Arguments: scope, collection, group, key, token, how many, recover (1 or 0), what is kept
-- Answer:    OK, whether there may be more, attempts or nil, entries (place, list, …); FENCED
-- Prevents:  a read whose answer was lost hiding its entries: with recover everything pending comes first; and an owner
--            that lost its lease moving the group on.

-- The place of the last stream of which something is pending; 0 for none.
local function held_place(streams, group)
  for i = #streams, 1, -1 do
    if has_pending(streams[i], group) then return i end
  end
  return 0
end

local function keyrail_take(keys, args)
  local scope, collection, group, key, token = args[1], args[2], args[3], args[4], args[5]
  local max, recover, keeps = tonumber(args[6]), args[7] == '1', retention_of(args[8])
  if not is_owner(scope, group, token) then return { FENCED } end
  local segments, total, attempts = {}, 0, false
  if recover then
    attempts = attempts_of(scope, group)
    segments, total = recall(keys, group, attempts and attempts[1])
  else
    local held = held_place(keys, group)
    -- Only what continues the first stream of a key may join what is in hand: another stream would be a second head.
    if held > 1 or (held == 1 and collection == PM) then return { OK, 0, false, {} } end
    if held == 1 then
      local entries = read_new(keys[1], group, token, max)
      return { OK, #entries == max and 1 or 0, false, { 1, entries } }
    end
  end
  local more = fill(segments, total, keys, collection, group, key, token, max)
  if #segments == 0 and not more then run_dry(existing(keys), collection, group, key, keeps) end
  return { OK, more and 1 or 0, attempts, segments }
end

redis.register_function{ function_name = 'keyrail_4_take', callback = keyrail_take, flags = { 'allow-oom' } }
