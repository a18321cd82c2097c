// Runs proxy.ts without Next.js, for its test: the two names of next/server are
// stood in for by what Next documents of them, and a page is the word "page".
// Usage: node harness.mjs MODULE (proxy.ts without its types). Prints its port.
import http from "node:http";
import { pathToFileURL } from "node:url";

const { proxy, config } = await import(pathToFileURL(process.argv[2]));
// Next's matcher is a path pattern that is anchored at both ends.
const matcher = new RegExp("^" + config.matcher[0] + "$");

const server = http.createServer(async (req, res) => {
  const url = new URL(req.url, "http://" + req.headers.host);
  let answer = new Response("page", { headers: { "x-middleware-next": "1" } });
  if (matcher.test(url.pathname)) {
    const headers = new Headers();
    for (let i = 0; i < req.rawHeaders.length; i += 2) headers.append(req.rawHeaders[i], req.rawHeaders[i + 1]);
    const request = new Request(url, { method: req.method, headers });
    Object.defineProperty(request, "nextUrl", { value: url });
    answer = await proxy(request);
  }
  const passes = answer.headers.get("x-middleware-next") === "1";
  for (const [name, value] of answer.headers) {
    if (name === "set-cookie") res.appendHeader(name, value);
    else if (name !== "x-middleware-next") res.setHeader(name, value);
  }
  res.statusCode = answer.status;
  res.end(passes ? "page" : Buffer.from(await answer.arrayBuffer()));
});
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
