-- What a worker tells without asking: how much runs there (the header), and in ARGV[3] one of
--   tell         ARGV[4] on: the sleepers that have left, each «arrival at_most key»
--   hello        ARGV[4] on: all who sleep there, each «rank arrival at_most key»; instead of what was known of them
--   bye          it stops
--   pause        ARGV[4] microseconds, 0 for no end; ARGV[5] 1 to answer early
--   resume
-- Each renews the worker's lease, corrects the load, and wakes who may. Answers what `answer` says.
local REPORTED = 1
local about = ARGV[3]

if about == 'hello' or about == 'bye' then
  remove_sleepers_of({[ME] = true})
end
if about == 'bye' then
  running, share, admitted, taken = 0, 0, 0, 0
end
recount()

if about == 'tell' then
  for i = 4, #ARGV do
    redis.call('ZREM', CALLED, ME .. ' ' .. ARGV[i])
    redis.call('ZREM', WAITING, ME .. ' ' .. ARGV[i])
  end
elseif about == 'hello' then
  for i = 4, #ARGV do
    local order, arrival, at_most, key = string.match(ARGV[i], '^(-?%d+) (%d+) (%d+) (%S+)$')
    put_to_sleep(tonumber(order), tonumber(arrival), tonumber(at_most), key)
    arrivals = math.max(arrivals, tonumber(arrival))
  end
  is_known = 1
elseif about == 'pause' then
  local length = tonumber(ARGV[4])
  if length > 0 then
    found[2] = string.format('%.0f %s', now + length, ARGV[5])
    redis.call('SET', PAUSE, found[2], 'PX', string.format('%.0f', math.ceil(length / 1000) + 1000))
  else
    found[2] = '0 ' .. ARGV[5]
    redis.call('SET', PAUSE, found[2])
  end
elseif about == 'resume' then
  redis.call('DEL', PAUSE)
  found[2] = false
end
call_next()

local reply = answer(REPORTED, 0)
if about == 'bye' then
  redis.call('HDEL', WORKERS, ME)
end
return reply
