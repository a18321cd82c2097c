# Written by stile edge for cloud-armor.
#
# What this product cannot do:
#   - Counting is per backend service and location, and approximate.
#   - The longest window is an hour. No visitor's day.
#   - Every request that reaches the balancer is paid for, assets included, not pages alone.
#   - An expression has five parts, so Sec-Fetch-Dest is not asked: frames and framework fetches
#     that accept text/html count like clicks.
#   - The key is the connection's address (IP). XFF_IP would let a client choose its key, and count
#     all as one without the field.
#   - Only requests whose Accept names text/html are counted: what asks for */* alone (curl, most
#     libraries) passes here, and counts in the policy.
#   - hour: 60 in 1h here, 60 in 1h in the policy; who stays just below gets 1440 pages a day here,
#     where the policy's day allows 200, which no rule here can say.
#   - Attach it: security_policy of the google_compute_backend_service.
#
# Not in this rule:
#   - day: 200 in 1d; the longest window here is 1h, in which hour is stricter.
#   - exempt.crawlers (search, preview): this rule limits them; let stile answer for them, or
#     exempt their ranges by hand.
#   - Redirect chains count once per hop; a RateLimit field, a reference id and the hit log are
#     stile's.

resource "google_compute_security_policy" "stile_example" {
  name = "stile-example"

  rule {
    description = "stile hour: 60 pages in 3600 s"
    priority    = 1000
    action      = "throttle"
    preview     = false
    match {
      expr {
        expression = "request.method == 'GET' && request.headers['accept'].contains('text/html') && !has(request.headers['sec-purpose']) && !request.path.matches('\\\\.(css|js|mjs|map|json|xml|txt|wasm|webmanifest|png|jpg|jpeg|gif|webp|avif|svg|ico|bmp|tif|tiff|jxl|woff|woff2|ttf|otf|eot|mp3|mp4|m4a|ogg|oga|ogv|webm|wav|flac|m3u8|ts|mpd|vtt|pdf|epub|csv|doc|docx|xls|xlsx|ppt|pptx|odt|ods|zip|gz|tgz|bz2|xz|zst|7z|rar|rss|atom|rdf)$|^(/_next/static|/_nuxt|/_astro|/_app|/assets|/static|/images|/img|/fonts|/api|/wp-json|/\\\\.well-known|/feed|/feeds|/rss|/atom)(/|$)|^(/_next/image|/_image|/graphql|/robots\\\\.txt|/favicon\\\\.ico|/health|/healthz|/livez|/readyz|/ping|/status|/_health|/metrics|/-/healthy)/?$|^(/sitemap[^/]*|(/.*)?/sitemap[^/]*\\\\.xml|(/.*)?/feed|(/.*)?/rss|(/.*)?/atom)/?$')"
      }
    }
    rate_limit_options {
      conform_action = "allow"
      exceed_action  = "deny(429)"
      enforce_on_key = "IP"
      rate_limit_threshold {
        count        = 60
        interval_sec = 3600
      }
    }
  }

  rule {
    description = "everything else"
    priority    = 2147483647
    action      = "allow"
    match {
      versioned_expr = "SRC_IPS_V1"
      config {
        src_ip_ranges = ["*"]
      }
    }
  }
}
