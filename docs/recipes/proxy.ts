// proxy.ts (Next.js 16; middleware.ts with a function middleware before): asks a
// Stile with every page, where nothing can stand before the site.
// Settings: STILE_URL=https://stile.example.org, STILE_PEER_SECRET (16 characters
// or more, which Stile has too), STILE_DEADLINE_MS. docs/placement.md has Stile's side.
import { NextResponse, type NextRequest } from "next/server";

// What Stile decides by. Nothing else of the visitor's leaves the site.
const passed = ["accept", "authorization", "cookie", "purpose", "sec-fetch-dest", "sec-fetch-mode", "sec-fetch-site",
  "sec-fetch-user", "sec-purpose", "signature", "signature-agent", "signature-input", "upgrade-insecure-requests", "user-agent"];

// The connection's own fields, and those of a body that fetch has unpacked.
const kept = ["connection", "content-encoding", "content-length", "date", "keep-alive", "transfer-encoding"];

// How long a page waits for Stile before it goes out unasked, in milliseconds.
const deadline = Number(process.env.STILE_DEADLINE_MS ?? 300);

export async function proxy(request: NextRequest) {
  const headers = new Headers({
    "x-forwarded-method": request.method,
    "x-forwarded-uri": request.nextUrl.pathname + request.nextUrl.search,
    "x-forwarded-host": request.headers.get("host") ?? "",
    // The platform's own word on the client, which it overwrites: x-real-ip at
    // Vercel. A field that visitors can write would let them choose their address.
    "x-stile-client": request.headers.get("x-real-ip") ?? "",
    "x-stile-peer": process.env.STILE_PEER_SECRET ?? "",
  });
  for (const name of passed) {
    const value = request.headers.get(name);
    if (value !== null) headers.set(name, value);
  }
  try {
    const answer = await fetch(process.env.STILE_URL + "/check", { headers, redirect: "manual", cache: "no-store", signal: AbortSignal.timeout(deadline) });
    if (answer.status === 429 || (answer.status === 503 && answer.headers.get("retry-after"))) {
      const refusal = new Headers(answer.headers);
      for (const name of kept) refusal.delete(name);
      return new Response(await answer.text(), { status: answer.status, headers: refusal });
    }
    const response = NextResponse.next();
    for (const cookie of answer.headers.getSetCookie()) response.headers.append("set-cookie", cookie);
    return response;
  } catch {
    return NextResponse.next(); // Stile does not answer: let the visitor in
  }
}

// Assets never ask. Keep it in agreement with count.exclude.
export const config = { matcher: ["/((?!_next/static|_next/image|api/|.*\\.[a-z0-9]+$).*)"] };
