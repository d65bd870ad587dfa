-- keyrail_1_take: reads for the owner.
--
-- Keys:      the partition's streams
-- Arguments: scope, collection, group, key, token, how many, recover (1 or 0), trims (1 or 0)
-- Answer:    OK, whether there may be more, attempts or nil, entries (place, list, …); FENCED
-- Prevents:  a read whose answer was lost hiding its entries: with recover everything pending comes first; and an owner
--            that lost its lease moving the group on.

local function keyrail_take(keys, args)
  local scope, collection, group, key, token = args[1], args[2], args[3], args[4], args[5]
  local max, recover, trims = tonumber(args[6]), args[7] == '1', args[8] == '1'
  if not is_owner(scope, group, token) then return { FENCED } end
  local segments, total, attempts = {}, 0, false
  if recover then
    attempts = attempts_of(scope, group)
    segments, total = recall(keys, group, attempts and attempts[1])
  end
  local more = fill(segments, total, keys, collection, group, token, max)
  if #segments == 0 and not more then run_dry(existing(keys), collection, group, key, trims) end
  return { OK, more and 1 or 0, attempts, segments }
end

redis.register_function{ function_name = 'keyrail_1_take', callback = keyrail_take, flags = { 'allow-oom' } }
