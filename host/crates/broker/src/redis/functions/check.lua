-- keyrail_6_check: what this user may not do, asked once at start.
--
-- Keys:      none
-- Arguments: none
-- Answer:    the commands that are refused, then the patterns that are missing; both empty when all is well
-- Prevents:  a partition that is leased and then left idle for want of a permission. What it writes, it removes.

local function keyrail_check()
  local probe = '__check__'
  -- Permissions are looked at after the number of arguments and before the type of the key.
  local calls = {
    { 'DEL', probe }, { 'TIME' }, { 'EXISTS', probe }, { 'TYPE', probe }, { 'GET', probe }, { 'INCR', probe },
    { 'SET', probe, '1' }, { 'PEXPIRE', probe, '1000' }, { 'PTTL', probe }, { 'HGET', probe, 'f' }, { 'HEXISTS', probe, 'f' }, { 'HMGET', probe, 'f' },
    { 'HGETALL', probe }, { 'HKEYS', probe }, { 'HLEN', probe }, { 'MEMORY', 'USAGE', probe }, { 'HSET', probe, 'f', '1' },
    { 'HSETNX', probe, 'f', '1' }, { 'HDEL', probe, 'f' }, { 'HINCRBY', probe, 'f', '1' }, { 'SADD', probe, 'm' },
    { 'SREM', probe, 'm' }, { 'SCARD', probe }, { 'SMEMBERS', probe }, { 'SISMEMBER', probe, 'm' }, { 'ZADD', probe, '0', 'm' }, { 'ZREM', probe, 'm' },
    { 'ZSCORE', probe, 'm' }, { 'ZRANGE', probe, '0', '0' },
    { 'ZRANGEBYSCORE', probe, '-inf', '0' }, { 'ZCARD', probe }, { 'PUBLISH', probe, '' },
    { 'XADD', probe, '*', 'f', '1' }, { 'XDEL', probe, '1-1' }, { 'XLEN', probe }, { 'XRANGE', probe, '-', '+' }, { 'XREVRANGE', probe, '+', '-' },
    { 'XTRIM', probe, 'MAXLEN', '0' }, { 'XACK', probe, 'g', '1-1' }, { 'XCLAIM', probe, 'g', 'c', '0', '1-1' },
    { 'XPENDING', probe, 'g' }, { 'XREADGROUP', 'GROUP', 'g', 'c', 'STREAMS', probe, '>' },
    { 'XGROUP', 'CREATE', probe, 'g', '0' }, { 'XGROUP', 'SETID', probe, 'g', '0' },
    { 'XGROUP', 'DESTROY', probe, 'g' }, { 'XINFO', 'GROUPS', probe }, { 'XINFO', 'CONSUMERS', probe, 'g' },
    { 'XINFO', 'STREAM', probe }, { 'DEL', probe },
  }
  local refused, names = {}, {}
  for i = 1, #calls do
    local failed = failure(redis.pcall(unpack(calls[i])))
    -- The texts of 7.0, then those of later releases.
    if failed and (string.find(failed, "can't run this command") or string.find(failed, 'permissions to run')) then
      refused[#refused + 1] = calls[i][1]
    elseif failed and (string.find(failed, "can't publish") or string.find(failed, 'access the channel')
      or string.find(failed, "a channel")) then
      names[1] = names[1] or '&*'
    end
  end
  if failure(redis.pcall('EXISTS', probe)) then names[#names + 1] = '~__*' end
  -- What is called outside of functions, some of it not allowed inside of one: so it is asked about, and not tried.
  local direct = {
    { 'SUBSCRIBE', probe }, { 'MULTI' }, { 'EXEC' }, { 'STRLEN', probe }, { 'GETRANGE', probe, '0', '0' },
    { 'SETRANGE', probe, '0', '' }, { 'RENAME', probe, probe }, { 'PERSIST', probe }, { 'HVALS', probe },
    { 'HSCAN', probe, '0' }, { 'SSCAN', probe, '0' }, { 'ZSCAN', probe, '0' },
  }
  for i = 1, #direct do
    -- A user without the keys of Keyrail, or its channels, was named above.
    if #names == 0 and not redis.acl_check_cmd(unpack(direct[i])) then refused[#refused + 1] = direct[i][1] end
  end
  return { refused, names }
end

redis.register_function{ function_name = 'keyrail_6_check', callback = keyrail_check, flags = { 'allow-oom' } }
