-- keyrail_6_take: reads for the owner.
--
-- Keys:      the partition's streams
-- Arguments: scope, collection, group, key, token, place and id of the last entry in hand (0 and '' for none), how many,
--            recover (1 or 0), what is kept
-- Answer:    OK, whether there may be more, attempts or nil, how far each stream is settled, place and entries; FENCED
-- Prevents:  an owner that lost its lease, or went on with one stream while another has the head.

local function keyrail_take(keys, args)
  local scope, collection, group, key, token = args[1], args[2], args[3], args[4], args[5]
  local hand, after, max, recover = tonumber(args[6]), args[7], tonumber(args[8]), args[9] == '1'
  local keeps, lease = retention_of(args[10]), lease_of(scope, group)
  if not is_held_by(lease, token) then return { FENCED } end
  local serving, settled = parts_of(lease, token)
  if not recover and hand > 0 and id_less(settled[hand], after) then
    -- Only what continues the first stream of a key may join what is in hand: another stream would be a second head.
    if hand > 1 or collection == PM then return { OK, 0, false, settled, hand, {} } end
    local entries = read_after(keys[1], after, max)
    return { OK, #entries == max and 1 or 0, false, settled, hand, entries }
  end
  local attempts = recover and attempts_of(scope, group)
  local pinned = recover and pinned_place(keys, settled, attempts, serving) or 0
  local place, entries = read_in_turn(keys, settled, pinned, collection, group, key, max)
  if place == 0 then run_dry(keys, settled, collection, group, key, keeps) end
  serve(scope, collection, group, key, token, place, settled)
  return { OK, #entries == max and 1 or 0, attempts, settled, place, entries }
end

redis.register_function{ function_name = 'keyrail_6_take', callback = keyrail_take, flags = { 'allow-oom' } }
