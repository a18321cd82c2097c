# Written by stile edge for cloudflare, plan business.
#
# What this product cannot do:
#   - Counting is per data centre, and by Cloudflare's own word not made for a precise number.
#   - No visitor's day: a client is forgotten after the window.
#   - It counts requests for pages, also those that the cache answers.
#   - On this plan a rule cannot read Accept and Sec-Fetch-Dest: prefetches and framework fetches
#     of pages are counted like clicks.
#   - search: 30 in 10m here, 30 in 1h in the policy; who stays just below gets 4320 pages a day
#     here, where the policy's day allows 200, which no rule here can say.
#   - hour: 60 in 10m here, 60 in 1h in the policy; who stays just below gets 8640 pages a day
#     here, where the policy's day allows 200, which no rule here can say.
#   - A * inside of a path also stands for slashes here.
#   - A zone has one ruleset of this phase: if there is one already, put the rules into it.
#
# Not in this rule:
#   - network-day: counts by network, which this rule cannot.
#   - burst: 60 in 10m; the longest window here is 10m, in which hour is stricter.
#   - day: 200 in 1d; the longest window here is 10m, in which hour is stricter.
#   - exempt.networks 2001:db8::/32: the rule exempts it where the policy multiplies its limits by
#     5.
#   - exempt.crawlers (search, preview): the rule exempts what the product itself calls a verified
#     bot, which is another list and has no classes.
#   - Redirect chains count once per hop; a RateLimit field, a reference id and the hit log are
#     stile's.

resource "cloudflare_ruleset" "stile_example" {
  zone_id = var.zone_id
  name    = "default"
  kind    = "zone"
  phase   = "http_ratelimit"

  rules = [
    {
      ref         = "stile_search"
      description = "stile search: 30 pages in 600 s"
      expression  = "http.request.method in {\"GET\" \"POST\"} and (starts_with(http.request.uri.path, \"/search/\") or http.request.uri.path eq \"/search\" or http.request.uri.path strict wildcard \"/find*\") and not (http.request.uri.path.extension in {\"css\" \"js\" \"mjs\" \"map\" \"json\" \"xml\" \"txt\" \"wasm\" \"webmanifest\" \"png\" \"jpg\" \"jpeg\" \"gif\" \"webp\" \"avif\" \"svg\" \"ico\" \"bmp\" \"tif\" \"tiff\" \"jxl\" \"woff\" \"woff2\" \"ttf\" \"otf\" \"eot\" \"mp3\" \"mp4\" \"m4a\" \"ogg\" \"oga\" \"ogv\" \"webm\" \"wav\" \"flac\" \"m3u8\" \"ts\" \"mpd\" \"vtt\" \"pdf\" \"epub\" \"csv\" \"doc\" \"docx\" \"xls\" \"xlsx\" \"ppt\" \"pptx\" \"odt\" \"ods\" \"zip\" \"gz\" \"tgz\" \"bz2\" \"xz\" \"zst\" \"7z\" \"rar\" \"rss\" \"atom\" \"rdf\"} or http.request.uri.path in {\"/_next/image\" \"/_image\" \"/graphql\" \"/robots.txt\" \"/favicon.ico\" \"/health\" \"/healthz\" \"/livez\" \"/readyz\" \"/ping\" \"/status\" \"/_health\" \"/metrics\" \"/-/healthy\"} or starts_with(http.request.uri.path, \"/_next/static/\") or http.request.uri.path eq \"/_next/static\" or starts_with(http.request.uri.path, \"/_nuxt/\") or http.request.uri.path eq \"/_nuxt\" or starts_with(http.request.uri.path, \"/_astro/\") or http.request.uri.path eq \"/_astro\" or starts_with(http.request.uri.path, \"/_app/\") or http.request.uri.path eq \"/_app\" or starts_with(http.request.uri.path, \"/assets/\") or http.request.uri.path eq \"/assets\" or starts_with(http.request.uri.path, \"/static/\") or http.request.uri.path eq \"/static\" or starts_with(http.request.uri.path, \"/images/\") or http.request.uri.path eq \"/images\" or starts_with(http.request.uri.path, \"/img/\") or http.request.uri.path eq \"/img\" or starts_with(http.request.uri.path, \"/fonts/\") or http.request.uri.path eq \"/fonts\" or starts_with(http.request.uri.path, \"/api/\") or http.request.uri.path eq \"/api\" or starts_with(http.request.uri.path, \"/wp-json/\") or http.request.uri.path eq \"/wp-json\" or starts_with(http.request.uri.path, \"/.well-known/\") or http.request.uri.path eq \"/.well-known\" or starts_with(http.request.uri.path, \"/feed/\") or http.request.uri.path eq \"/feed\" or starts_with(http.request.uri.path, \"/feeds/\") or http.request.uri.path eq \"/feeds\" or starts_with(http.request.uri.path, \"/rss/\") or http.request.uri.path eq \"/rss\" or starts_with(http.request.uri.path, \"/atom/\") or http.request.uri.path eq \"/atom\" or http.request.uri.path strict wildcard \"/sitemap*\" or http.request.uri.path strict wildcard \"*/sitemap*.xml\" or http.request.uri.path strict wildcard \"*/feed\" or http.request.uri.path strict wildcard \"*/rss\" or http.request.uri.path strict wildcard \"*/atom\") and not ip.src in {192.0.2.0/24 2001:db8::/32} and not cf.client.bot"
      action      = "block"
      enabled     = true
      ratelimit = {
        characteristics     = ["cf.colo.id", "ip.src"]
        period              = 600
        requests_per_period = 30
        mitigation_timeout  = 600
      }
    },
    {
      ref         = "stile_hour"
      description = "stile hour: 60 pages in 600 s"
      expression  = "http.request.method in {\"GET\" \"POST\"} and not (http.request.uri.path.extension in {\"css\" \"js\" \"mjs\" \"map\" \"json\" \"xml\" \"txt\" \"wasm\" \"webmanifest\" \"png\" \"jpg\" \"jpeg\" \"gif\" \"webp\" \"avif\" \"svg\" \"ico\" \"bmp\" \"tif\" \"tiff\" \"jxl\" \"woff\" \"woff2\" \"ttf\" \"otf\" \"eot\" \"mp3\" \"mp4\" \"m4a\" \"ogg\" \"oga\" \"ogv\" \"webm\" \"wav\" \"flac\" \"m3u8\" \"ts\" \"mpd\" \"vtt\" \"pdf\" \"epub\" \"csv\" \"doc\" \"docx\" \"xls\" \"xlsx\" \"ppt\" \"pptx\" \"odt\" \"ods\" \"zip\" \"gz\" \"tgz\" \"bz2\" \"xz\" \"zst\" \"7z\" \"rar\" \"rss\" \"atom\" \"rdf\"} or http.request.uri.path in {\"/_next/image\" \"/_image\" \"/graphql\" \"/robots.txt\" \"/favicon.ico\" \"/health\" \"/healthz\" \"/livez\" \"/readyz\" \"/ping\" \"/status\" \"/_health\" \"/metrics\" \"/-/healthy\"} or starts_with(http.request.uri.path, \"/_next/static/\") or http.request.uri.path eq \"/_next/static\" or starts_with(http.request.uri.path, \"/_nuxt/\") or http.request.uri.path eq \"/_nuxt\" or starts_with(http.request.uri.path, \"/_astro/\") or http.request.uri.path eq \"/_astro\" or starts_with(http.request.uri.path, \"/_app/\") or http.request.uri.path eq \"/_app\" or starts_with(http.request.uri.path, \"/assets/\") or http.request.uri.path eq \"/assets\" or starts_with(http.request.uri.path, \"/static/\") or http.request.uri.path eq \"/static\" or starts_with(http.request.uri.path, \"/images/\") or http.request.uri.path eq \"/images\" or starts_with(http.request.uri.path, \"/img/\") or http.request.uri.path eq \"/img\" or starts_with(http.request.uri.path, \"/fonts/\") or http.request.uri.path eq \"/fonts\" or starts_with(http.request.uri.path, \"/api/\") or http.request.uri.path eq \"/api\" or starts_with(http.request.uri.path, \"/wp-json/\") or http.request.uri.path eq \"/wp-json\" or starts_with(http.request.uri.path, \"/.well-known/\") or http.request.uri.path eq \"/.well-known\" or starts_with(http.request.uri.path, \"/feed/\") or http.request.uri.path eq \"/feed\" or starts_with(http.request.uri.path, \"/feeds/\") or http.request.uri.path eq \"/feeds\" or starts_with(http.request.uri.path, \"/rss/\") or http.request.uri.path eq \"/rss\" or starts_with(http.request.uri.path, \"/atom/\") or http.request.uri.path eq \"/atom\" or http.request.uri.path strict wildcard \"/sitemap*\" or http.request.uri.path strict wildcard \"*/sitemap*.xml\" or http.request.uri.path strict wildcard \"*/feed\" or http.request.uri.path strict wildcard \"*/rss\" or http.request.uri.path strict wildcard \"*/atom\") and not ip.src in {192.0.2.0/24 2001:db8::/32} and not cf.client.bot"
      action      = "block"
      enabled     = true
      ratelimit = {
        characteristics     = ["cf.colo.id", "ip.src"]
        period              = 600
        requests_per_period = 60
        mitigation_timeout  = 600
      }
    },
  ]
}

variable "zone_id" {
  description = "Cloudflare's id of the zone."
  type        = string
}
