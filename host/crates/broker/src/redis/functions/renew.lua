-- keyrail_6_renew: prolongs many leases in one call.
--
-- Keys:      the leases
-- Arguments: TTL in ms, then one token a lease
-- Answer:    1 or 0 for each: whether it is still held
-- Prevents:  an owner that lost its lease prolonging its successor's.

local function keyrail_renew(keys, args)
  local answer = {}
  for i = 1, #keys do
    local lease = redis.pcall('GET', keys[i])
    if type(lease) == 'string' and is_held_by(lease, args[i + 1]) then
      answer[i] = redis.call('PEXPIRE', keys[i], args[1])
    else
      answer[i] = 0
    end
  end
  return answer
end

redis.register_function{ function_name = 'keyrail_6_renew', callback = keyrail_renew, flags = { 'allow-oom' } }
