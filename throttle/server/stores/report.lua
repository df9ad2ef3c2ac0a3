-- What a worker tells without asking: how much runs there (the header), and in ARGV[3] one of
--   tell         ARGV[4] on: the sleepers that have left, each «arrival at_most key»
--   hello        ARGV[4] on: all who sleep there, each «rank arrival at_most key»; instead of what was known of them
--   hold         ARGV[4] on, for each of KEYS[6] on: hits that were refused there, packed: at most how many count,
--                microseconds for which one does, the worker's clock, and when by that clock each leaves
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
elseif about == 'hold' then
  for i = 4, #ARGV do
    local at_most, window, worker_now, position = struct.unpack('>I4I8I8', ARGV[i])
    local held, leaves = found[i - 1] or '', {}
    for at = 1, #held, STAMP do
      leaves[#leaves + 1] = struct.unpack('>I8', held, at)
    end
    for at = position, #ARGV[i], STAMP do
      leaves[#leaves + 1] = struct.unpack('>I8', ARGV[i], at) + now - worker_now
    end
    table.sort(leaves)
    local log = {}
    for at = math.max(1, #leaves - at_most + 1), #leaves do
      if leaves[at] > now then
        log[#log + 1] = struct.pack('>I8', leaves[at])
      end
    end
    if #log > 0 then
      write_hits(KEYS[i + 2], table.concat(log), at_most, window, leaves[#leaves])
    end
  end
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
