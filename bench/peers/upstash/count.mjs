// Asks @upstash/ratelimit for decisions (an hour and a day of one client) and
// prints how many were allowed. The test beside this file counts the commands at
// the server. Usage: node count.mjs FIRST COUNT
import { createRequire } from "node:module";
import path from "node:path";

const require = createRequire(path.join(process.env.UPSTASH_MODULES, "x.js"));
const { Ratelimit } = require("@upstash/ratelimit");
const { Redis } = require("@upstash/redis");

const [first, count] = process.argv.slice(2).map(Number);
const redis = Redis.fromEnv({ enableTelemetry: false });
const hour = new Ratelimit({ redis, limiter: Ratelimit.slidingWindow(1000, "1 h"), prefix: "hour", analytics: false });
const day = new Ratelimit({ redis, limiter: Ratelimit.fixedWindow(5000, "1 d"), prefix: "day", analytics: false });
let allowed = 0;
for (let n = first; n < first + count; n++) {
  const [a, b] = await Promise.all([hour.limit(`client-${n}`), day.limit(`client-${n}`)]);
  if (a.success && b.success) allowed++;
}
console.log(allowed);
