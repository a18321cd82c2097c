# Written by stile edge for aws-waf.
#
# What this product cannot do:
#   - The limit is not exact by AWS's own word, and is noticed up to minutes late.
#   - The longest window is ten minutes. No visitor's day.
#   - Every request that the ACL sees is paid for, assets included, not pages alone.
#   - Retry-After is the whole window: the rule does not know when the client may go on.
#   - Only requests whose Accept names text/html are counted: what asks for */* alone (curl, most
#     libraries) passes here, and counts in the policy.
#   - search: 30 in 10m here, 30 in 1h in the policy; who stays just below gets 4320 pages a day
#     here, where the policy's day allows 200, which no rule here can say.
#   - hour: 60 in 10m here, 60 in 1h in the policy; who stays just below gets 8640 pages a day
#     here, where the policy's day allows 200, which no rule here can say.
#   - Attach it: aws_wafv2_web_acl_association, or web_acl_id of the CloudFront distribution.
#
# Not in this rule:
#   - network-day: counts by network, which this rule cannot.
#   - burst: 60 in 10m; the longest window here is 10m, in which hour is stricter.
#   - day: 200 in 1d; the longest window here is 10m, in which hour is stricter.
#   - exempt.networks 2001:db8::/32: the rule exempts it where the policy multiplies its limits by
#     5.
#   - exempt.crawlers (search, preview): this rule limits them; let stile answer for them, or
#     exempt their ranges by hand.
#   - Redirect chains count once per hop; a RateLimit field, a reference id and the hit log are
#     stile's.

resource "aws_wafv2_ip_set" "exempt_ipv4" {
  name               = "stile-example-exempt-ipv4"
  scope              = var.scope
  ip_address_version = "IPV4"
  addresses          = ["192.0.2.0/24"]
}

resource "aws_wafv2_ip_set" "exempt_ipv6" {
  name               = "stile-example-exempt-ipv6"
  scope              = var.scope
  ip_address_version = "IPV6"
  addresses          = ["2001:db8::/32"]
}

resource "aws_wafv2_web_acl" "stile_example" {
  name  = "stile-example"
  scope = var.scope

  default_action {
    allow {}
  }

  rule {
    name     = "stile-search"
    priority = 1

    action {
      block {
        custom_response {
          response_code = 429
          response_header {
            name  = "Retry-After"
            value = "600"
          }
          response_header {
            name  = "Cache-Control"
            value = "no-store"
          }
        }
      }
    }

    statement {
      rate_based_statement {
        limit                 = 30
        evaluation_window_sec = 600
        aggregate_key_type    = "IP"

        scope_down_statement {
          and_statement {
            statement {
              or_statement {
                statement {
                  byte_match_statement {
                    positional_constraint = "EXACTLY"
                    search_string         = "GET"
                    field_to_match {
                      method {}
                    }
                    text_transformation {
                      priority = 0
                      type     = "NONE"
                    }
                  }
                }
                statement {
                  byte_match_statement {
                    positional_constraint = "EXACTLY"
                    search_string         = "POST"
                    field_to_match {
                      method {}
                    }
                    text_transformation {
                      priority = 0
                      type     = "NONE"
                    }
                  }
                }
              }
            }
            statement {
              byte_match_statement {
                positional_constraint = "CONTAINS"
                search_string         = "text/html"
                field_to_match {
                  single_header {
                    name = "accept"
                  }
                }
                text_transformation {
                  priority = 0
                  type     = "LOWERCASE"
                }
              }
            }
            statement {
              not_statement {
                statement {
                  regex_match_statement {
                    regex_string = "^(audio|audioworklet|embed|empty|fencedframe|font|frame|iframe|image|json|manifest|object|paintworklet|report|script|serviceworker|sharedworker|style|track|video|webidentity|worker|xslt)$"
                    field_to_match {
                      single_header {
                        name = "sec-fetch-dest"
                      }
                    }
                    text_transformation {
                      priority = 0
                      type     = "LOWERCASE"
                    }
                  }
                }
              }
            }
            statement {
              not_statement {
                statement {
                  byte_match_statement {
                    positional_constraint = "CONTAINS"
                    search_string         = "prefetch"
                    field_to_match {
                      single_header {
                        name = "sec-purpose"
                      }
                    }
                    text_transformation {
                      priority = 0
                      type     = "LOWERCASE"
                    }
                  }
                }
              }
            }
            statement {
              regex_match_statement {
                regex_string = "^(/search)(/|$)|^(/find[^/]*)/?$"
                field_to_match {
                  uri_path {}
                }
                text_transformation {
                  priority = 0
                  type     = "URL_DECODE"
                }
              }
            }
            statement {
              not_statement {
                statement {
                  regex_match_statement {
                    regex_string = "\\.(css|js|mjs|map|json|xml|txt|wasm|webmanifest|png|jpg|jpeg|gif|webp|avif|svg|ico|bmp|tif|tiff|jxl|woff|woff2|ttf|otf|eot|mp3|mp4|m4a|ogg|oga|ogv|webm|wav|flac|m3u8|ts|mpd|vtt|pdf|epub|csv|doc|docx|xls|xlsx|ppt|pptx|odt|ods|zip|gz|tgz|bz2|xz|zst|7z|rar|rss|atom|rdf)$|^(/_next/static|/_nuxt|/_astro|/_app|/assets|/static|/images|/img|/fonts|/api|/wp-json|/\\.well-known|/feed|/feeds|/rss|/atom)(/|$)"
                    field_to_match {
                      uri_path {}
                    }
                    text_transformation {
                      priority = 0
                      type     = "URL_DECODE"
                    }
                  }
                }
              }
            }
            statement {
              not_statement {
                statement {
                  regex_match_statement {
                    regex_string = "^(/_next/image|/_image|/graphql|/robots\\.txt|/favicon\\.ico|/health|/healthz|/livez|/readyz|/ping|/status|/_health|/metrics|/-/healthy)/?$|^(/sitemap[^/]*|(/.*)?/sitemap[^/]*\\.xml|(/.*)?/feed|(/.*)?/rss|(/.*)?/atom)/?$"
                    field_to_match {
                      uri_path {}
                    }
                    text_transformation {
                      priority = 0
                      type     = "URL_DECODE"
                    }
                  }
                }
              }
            }
            statement {
              not_statement {
                statement {
                  ip_set_reference_statement {
                    arn = aws_wafv2_ip_set.exempt_ipv4.arn
                  }
                }
              }
            }
            statement {
              not_statement {
                statement {
                  ip_set_reference_statement {
                    arn = aws_wafv2_ip_set.exempt_ipv6.arn
                  }
                }
              }
            }
          }
        }
      }
    }

    visibility_config {
      cloudwatch_metrics_enabled = true
      metric_name                = "stile-search"
      sampled_requests_enabled   = true
    }
  }

  rule {
    name     = "stile-hour"
    priority = 2

    action {
      block {
        custom_response {
          response_code = 429
          response_header {
            name  = "Retry-After"
            value = "600"
          }
          response_header {
            name  = "Cache-Control"
            value = "no-store"
          }
        }
      }
    }

    statement {
      rate_based_statement {
        limit                 = 60
        evaluation_window_sec = 600
        aggregate_key_type    = "IP"

        scope_down_statement {
          and_statement {
            statement {
              or_statement {
                statement {
                  byte_match_statement {
                    positional_constraint = "EXACTLY"
                    search_string         = "GET"
                    field_to_match {
                      method {}
                    }
                    text_transformation {
                      priority = 0
                      type     = "NONE"
                    }
                  }
                }
                statement {
                  byte_match_statement {
                    positional_constraint = "EXACTLY"
                    search_string         = "POST"
                    field_to_match {
                      method {}
                    }
                    text_transformation {
                      priority = 0
                      type     = "NONE"
                    }
                  }
                }
              }
            }
            statement {
              byte_match_statement {
                positional_constraint = "CONTAINS"
                search_string         = "text/html"
                field_to_match {
                  single_header {
                    name = "accept"
                  }
                }
                text_transformation {
                  priority = 0
                  type     = "LOWERCASE"
                }
              }
            }
            statement {
              not_statement {
                statement {
                  regex_match_statement {
                    regex_string = "^(audio|audioworklet|embed|empty|fencedframe|font|frame|iframe|image|json|manifest|object|paintworklet|report|script|serviceworker|sharedworker|style|track|video|webidentity|worker|xslt)$"
                    field_to_match {
                      single_header {
                        name = "sec-fetch-dest"
                      }
                    }
                    text_transformation {
                      priority = 0
                      type     = "LOWERCASE"
                    }
                  }
                }
              }
            }
            statement {
              not_statement {
                statement {
                  byte_match_statement {
                    positional_constraint = "CONTAINS"
                    search_string         = "prefetch"
                    field_to_match {
                      single_header {
                        name = "sec-purpose"
                      }
                    }
                    text_transformation {
                      priority = 0
                      type     = "LOWERCASE"
                    }
                  }
                }
              }
            }
            statement {
              not_statement {
                statement {
                  regex_match_statement {
                    regex_string = "\\.(css|js|mjs|map|json|xml|txt|wasm|webmanifest|png|jpg|jpeg|gif|webp|avif|svg|ico|bmp|tif|tiff|jxl|woff|woff2|ttf|otf|eot|mp3|mp4|m4a|ogg|oga|ogv|webm|wav|flac|m3u8|ts|mpd|vtt|pdf|epub|csv|doc|docx|xls|xlsx|ppt|pptx|odt|ods|zip|gz|tgz|bz2|xz|zst|7z|rar|rss|atom|rdf)$|^(/_next/static|/_nuxt|/_astro|/_app|/assets|/static|/images|/img|/fonts|/api|/wp-json|/\\.well-known|/feed|/feeds|/rss|/atom)(/|$)"
                    field_to_match {
                      uri_path {}
                    }
                    text_transformation {
                      priority = 0
                      type     = "URL_DECODE"
                    }
                  }
                }
              }
            }
            statement {
              not_statement {
                statement {
                  regex_match_statement {
                    regex_string = "^(/_next/image|/_image|/graphql|/robots\\.txt|/favicon\\.ico|/health|/healthz|/livez|/readyz|/ping|/status|/_health|/metrics|/-/healthy)/?$|^(/sitemap[^/]*|(/.*)?/sitemap[^/]*\\.xml|(/.*)?/feed|(/.*)?/rss|(/.*)?/atom)/?$"
                    field_to_match {
                      uri_path {}
                    }
                    text_transformation {
                      priority = 0
                      type     = "URL_DECODE"
                    }
                  }
                }
              }
            }
            statement {
              not_statement {
                statement {
                  ip_set_reference_statement {
                    arn = aws_wafv2_ip_set.exempt_ipv4.arn
                  }
                }
              }
            }
            statement {
              not_statement {
                statement {
                  ip_set_reference_statement {
                    arn = aws_wafv2_ip_set.exempt_ipv6.arn
                  }
                }
              }
            }
          }
        }
      }
    }

    visibility_config {
      cloudwatch_metrics_enabled = true
      metric_name                = "stile-hour"
      sampled_requests_enabled   = true
    }
  }

  visibility_config {
    cloudwatch_metrics_enabled = true
    metric_name                = "stile-example"
    sampled_requests_enabled   = true
  }
}

variable "scope" {
  description = "REGIONAL for API Gateway and load balancers; CLOUDFRONT (in us-east-1) for CloudFront."
  type        = string
}
