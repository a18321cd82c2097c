# Written by stile edge for vercel, plan pro.
#
# What this product cannot do:
#   - Counters are per region.
#   - No visitor's day.
#   - Every request that the rule lets through is paid for.
#   - The firewall stands before Vercel's cache, so it also counts pages that the cache answers.
#   - The longest window is ten minutes on this plan.
#   - Only requests whose Accept names text/html are counted: what asks for */* alone (curl, most
#     libraries) passes here, and counts in the policy.
#   - hour: 60 in 10m here, 60 in 1h in the policy; who stays just below gets 8640 pages a day
#     here, where the policy's day allows 200, which no rule here can say.
#   - A project has one firewall configuration: if there is one already, put the rules into it.
#
# Not in this rule:
#   - day: 200 in 1d; the longest window here is 10m, in which hour is stricter.
#   - exempt.crawlers (search, preview): this rule limits them; let stile answer for them, or
#     exempt their ranges by hand.
#   - Redirect chains count once per hop; a RateLimit field, a reference id and the hit log are
#     stile's.

resource "vercel_firewall_config" "stile_example" {
  project_id = var.project_id

  rules {
    rule {
      name        = "stile-hour"
      description = "60 pages in 600 s"
      # Groups are alternatives; within one, all conditions hold.
      condition_group = [
        { conditions = [
          { type = "header", key = "sec-fetch-dest", op = "eq", value = "document" },
          { type = "method", op = "eq", value = "GET" },
          { type = "header", key = "accept", op = "sub", value = "text/html" },
          { type = "header", key = "sec-purpose", op = "sub", value = "prefetch", neg = true },
          { type = "path", op = "re", value = "\\.(css|js|mjs|map|json|xml|txt|wasm|webmanifest|png|jpg|jpeg|gif|webp|avif|svg|ico|bmp|tif|tiff|jxl|woff|woff2|ttf|otf|eot|mp3|mp4|m4a|ogg|oga|ogv|webm|wav|flac|m3u8|ts|mpd|vtt|pdf|epub|csv|doc|docx|xls|xlsx|ppt|pptx|odt|ods|zip|gz|tgz|bz2|xz|zst|7z|rar|rss|atom|rdf)$|^(/_next/static|/_nuxt|/_astro|/_app|/assets|/static|/images|/img|/fonts|/api|/wp-json|/\\.well-known|/feed|/feeds|/rss|/atom)(/|$)|^(/_next/image|/_image|/graphql|/robots\\.txt|/favicon\\.ico|/health|/healthz|/livez|/readyz|/ping|/status|/_health|/metrics|/-/healthy)/?$|^(/sitemap[^/]*|(/.*)?/sitemap[^/]*\\.xml|(/.*)?/feed|(/.*)?/rss|(/.*)?/atom)/?$", neg = true },
        ] },
        { conditions = [
          { type = "header", key = "sec-fetch-dest", op = "ex", neg = true },
          { type = "method", op = "eq", value = "GET" },
          { type = "header", key = "accept", op = "sub", value = "text/html" },
          { type = "header", key = "sec-purpose", op = "sub", value = "prefetch", neg = true },
          { type = "path", op = "re", value = "\\.(css|js|mjs|map|json|xml|txt|wasm|webmanifest|png|jpg|jpeg|gif|webp|avif|svg|ico|bmp|tif|tiff|jxl|woff|woff2|ttf|otf|eot|mp3|mp4|m4a|ogg|oga|ogv|webm|wav|flac|m3u8|ts|mpd|vtt|pdf|epub|csv|doc|docx|xls|xlsx|ppt|pptx|odt|ods|zip|gz|tgz|bz2|xz|zst|7z|rar|rss|atom|rdf)$|^(/_next/static|/_nuxt|/_astro|/_app|/assets|/static|/images|/img|/fonts|/api|/wp-json|/\\.well-known|/feed|/feeds|/rss|/atom)(/|$)|^(/_next/image|/_image|/graphql|/robots\\.txt|/favicon\\.ico|/health|/healthz|/livez|/readyz|/ping|/status|/_health|/metrics|/-/healthy)/?$|^(/sitemap[^/]*|(/.*)?/sitemap[^/]*\\.xml|(/.*)?/feed|(/.*)?/rss|(/.*)?/atom)/?$", neg = true },
        ] },
      ]
      action = {
        action = "rate_limit"
        rate_limit = {
          limit  = 60
          window = 600
          keys   = ["ip"]
          algo   = "fixed_window"
          action = "rate_limit"
        }
      }
    }
  }
}

variable "project_id" {
  description = "Vercel's id of the project."
  type        = string
}
