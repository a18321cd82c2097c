# entry = cloudfront: CloudFront asks the function for pages, and the function
# passes them on to the site. Assets go to the site directly.

locals {
  edge = local.cloudfront ? { this = true } : {}
}

# Only this distribution can call the function: it signs its requests, and the
# function's URL refuses what is not signed. So what CloudFront says of the viewer
# can be believed, and nobody goes round it at the site's expense.
resource "aws_lambda_function_url" "stile" {
  for_each           = local.edge
  function_name      = aws_lambda_function.stile.function_name
  authorization_type = "AWS_IAM"
  invoke_mode        = "RESPONSE_STREAM"
}

resource "aws_cloudfront_origin_access_control" "function" {
  for_each                          = local.edge
  name                              = var.name
  description                       = "Signs requests to ${var.name}"
  origin_access_control_origin_type = "lambda"
  signing_behavior                  = "always"
  signing_protocol                  = "sigv4"
}

# Function URLs made since October 2025 ask for both permissions.
resource "aws_lambda_permission" "cloudfront" {
  for_each               = local.cloudfront ? toset(["lambda:InvokeFunctionUrl", "lambda:InvokeFunction"]) : toset([])
  statement_id           = "cloudfront-${replace(each.key, "lambda:", "")}"
  action                 = each.key
  function_name          = aws_lambda_function.stile.function_name
  principal              = "cloudfront.amazonaws.com"
  source_arn             = aws_cloudfront_distribution.site["this"].arn
  function_url_auth_type = each.key == "lambda:InvokeFunctionUrl" ? "AWS_IAM" : null
}

# The viewer's address. CloudFront's own field, CloudFront-Viewer-Address, can be
# added to a request only together with all of the viewer's fields, Host included,
# and a function URL refuses another Host; naming the fields one by one stops at
# ten. This function has the same address from the same place.
resource "aws_cloudfront_function" "viewer" {
  for_each = local.edge
  name     = "${var.name}-viewer"
  runtime  = "cloudfront-js-2.0"
  comment  = "Writes the viewer's address and host for Stile"
  publish  = true
  code     = templatefile("${path.module}/files/viewer.js", { client_header = lower(local.client_header) })
}

resource "aws_cloudfront_cache_policy" "never" {
  for_each    = local.edge
  name        = "${var.name}-never"
  comment     = "Pages: a page served from the cache would not be counted"
  min_ttl     = 0
  default_ttl = 0
  max_ttl     = 0

  parameters_in_cache_key_and_forwarded_to_origin {
    cookies_config {
      cookie_behavior = "none"
    }
    headers_config {
      header_behavior = "none"
    }
    query_strings_config {
      query_string_behavior = "none"
    }
  }
}

resource "aws_cloudfront_cache_policy" "assets" {
  for_each    = local.edge
  name        = "${var.name}-assets"
  comment     = "What the site itself says"
  min_ttl     = 0
  default_ttl = 0
  max_ttl     = 31536000

  parameters_in_cache_key_and_forwarded_to_origin {
    enable_accept_encoding_brotli = true
    enable_accept_encoding_gzip   = true
    cookies_config {
      cookie_behavior = "none"
    }
    headers_config {
      header_behavior = "none"
    }
    query_strings_config {
      query_string_behavior = "all"
    }
  }
}

resource "aws_cloudfront_origin_request_policy" "all_but_host" {
  for_each = local.edge
  name     = "${var.name}-all-but-host"
  comment  = "Everything of the viewer but Host"

  cookies_config {
    cookie_behavior = "all"
  }
  headers_config {
    header_behavior = "allExcept"
    headers {
      items = ["Host"]
    }
  }
  query_strings_config {
    query_string_behavior = "all"
  }
}

resource "aws_cloudfront_distribution" "site" {
  for_each        = local.edge
  comment         = "${var.origin}, limited by Stile"
  enabled         = true
  is_ipv6_enabled = true
  http_version    = "http2and3"
  price_class     = "PriceClass_All"
  aliases         = var.domain == null ? [] : [var.domain.name]
  tags            = local.tags

  origin {
    origin_id                = "stile"
    domain_name              = trimsuffix(trimprefix(aws_lambda_function_url.stile["this"].function_url, "https://"), "/")
    origin_access_control_id = aws_cloudfront_origin_access_control.function["this"].id

    custom_origin_config {
      http_port              = 80
      https_port             = 443
      origin_protocol_policy = "https-only"
      origin_ssl_protocols   = ["TLSv1.2"]
      origin_read_timeout    = 30
    }
  }

  origin {
    origin_id   = "site"
    domain_name = trimprefix(var.origin, "https://")

    custom_origin_config {
      http_port              = 80
      https_port             = 443
      origin_protocol_policy = "https-only"
      origin_ssl_protocols   = ["TLSv1.2"]
      origin_read_timeout    = 30
    }
  }

  dynamic "ordered_cache_behavior" {
    for_each = var.direct_paths
    content {
      path_pattern             = ordered_cache_behavior.value
      target_origin_id         = "site"
      viewer_protocol_policy   = "redirect-to-https"
      allowed_methods          = ["GET", "HEAD", "OPTIONS", "PUT", "POST", "PATCH", "DELETE"]
      cached_methods           = ["GET", "HEAD"]
      compress                 = true
      cache_policy_id          = aws_cloudfront_cache_policy.assets["this"].id
      origin_request_policy_id = aws_cloudfront_origin_request_policy.all_but_host["this"].id
    }
  }

  # mode = off sends pages to the site as if Stile were not there. Signed requests
  # to a function URL take no body from a browser, so pages are read-only here:
  # what takes POST is a direct path.
  default_cache_behavior {
    target_origin_id         = local.detached ? "site" : "stile"
    viewer_protocol_policy   = "redirect-to-https"
    allowed_methods          = local.detached ? ["GET", "HEAD", "OPTIONS", "PUT", "POST", "PATCH", "DELETE"] : ["GET", "HEAD", "OPTIONS"]
    cached_methods           = ["GET", "HEAD"]
    compress                 = true
    cache_policy_id          = aws_cloudfront_cache_policy.never["this"].id
    origin_request_policy_id = aws_cloudfront_origin_request_policy.all_but_host["this"].id

    function_association {
      event_type   = "viewer-request"
      function_arn = aws_cloudfront_function.viewer["this"].arn
    }
  }

  # CloudFront keeps errors for ten seconds unless told otherwise, and one
  # visitor's refusal must never be another's.
  dynamic "custom_error_response" {
    for_each = [500, 502, 503, 504]
    content {
      error_code            = custom_error_response.value
      error_caching_min_ttl = 0
    }
  }

  restrictions {
    geo_restriction {
      restriction_type = "none"
    }
  }

  viewer_certificate {
    cloudfront_default_certificate = var.domain == null
    acm_certificate_arn            = var.domain == null ? null : var.domain.certificate_arn
    ssl_support_method             = var.domain == null ? null : "sni-only"
    minimum_protocol_version       = var.domain == null ? "TLSv1" : "TLSv1.2_2021"
  }
}
