-- At most N in any window, exactly. KEYS 1: the times of the last N granted, oldest first.
-- ARGV  1 N   2 the window in µs   3 now in µs, 0: the server's clock
-- Answers 0 if this one is granted, or the µs until one would be.
local at_most, window, now = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
if now == 0 then
  local time = redis.call('TIME')
  now = time[1] * 1000000 + time[2]
end
now = math.max(now, tonumber(redis.call('LINDEX', KEYS[1], -1) or 0)) -- a clock that went back grants nothing twice
local oldest = redis.call('LINDEX', KEYS[1], -at_most)
if oldest and tonumber(oldest) + window > now then
  return tonumber(oldest) + window - now
end
redis.call('RPUSH', KEYS[1], string.format('%.0f', now))
redis.call('LTRIM', KEYS[1], -at_most, -1)
redis.call('PEXPIRE', KEYS[1], math.ceil(window / 1000) + 1000)
return 0
