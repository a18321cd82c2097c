# entry = rest-api: a REST API that passes the site on and asks Stile first.
# Only REST APIs can turn a denial into a 429 with a page; HTTP APIs answer a fixed
# 403.

resource "aws_api_gateway_rest_api" "site" {
  count                        = local.rest ? 1 : 0
  name                         = var.name
  description                  = "Passes ${var.origin} on, limited by Stile."
  disable_execute_api_endpoint = var.domain != null
  tags                         = local.tags

  # Without it API Gateway would read images as UTF-8 text.
  binary_media_types = ["*/*"]

  endpoint_configuration {
    types = ["REGIONAL"]
  }
}

# No identity source and no cache: with a source, a request without it is answered
# 401 unasked; with a cache, one decision would stand for many pages.
resource "aws_api_gateway_authorizer" "stile" {
  count                            = local.rest ? 1 : 0
  name                             = var.name
  rest_api_id                      = aws_api_gateway_rest_api.site[0].id
  type                             = "REQUEST"
  authorizer_uri                   = aws_lambda_function.stile.invoke_arn
  authorizer_result_ttl_in_seconds = 0
  identity_source                  = ""
}

resource "aws_lambda_permission" "authorizer" {
  count         = local.rest ? 1 : 0
  statement_id  = "api-gateway-authorizer"
  action        = "lambda:InvokeFunction"
  function_name = aws_lambda_function.stile.function_name
  principal     = "apigateway.amazonaws.com"
  source_arn    = "${aws_api_gateway_rest_api.site[0].execution_arn}/authorizers/${aws_api_gateway_authorizer.stile[0].id}"
}

resource "aws_api_gateway_resource" "rest_of_path" {
  count       = local.rest ? 1 : 0
  rest_api_id = aws_api_gateway_rest_api.site[0].id
  parent_id   = aws_api_gateway_rest_api.site[0].root_resource_id
  path_part   = "{proxy+}"
}

locals {
  # The root and everything below it.
  routes = local.rest ? {
    root = { resource = aws_api_gateway_rest_api.site[0].root_resource_id, path = "" }
    rest = { resource = aws_api_gateway_resource.rest_of_path[0].id, path = "/{proxy}" }
  } : {}

  # A REST authorizer cannot add fields to an allowed answer. The site gets them
  # and may copy them into its own; docs/deploy-aws.md shows how.
  to_origin = merge(
    { "integration.request.header.X-Forwarded-Host" = "context.domainName" },
    local.detached ? {} : {
      "integration.request.header.X-Stile-RateLimit"        = "context.authorizer.rateLimit"
      "integration.request.header.X-Stile-RateLimit-Policy" = "context.authorizer.rateLimitPolicy"
    },
    # The site hands the cookie on; the gateway cannot add a field to its answers.
    local.detached || !var.visitor_cookie ? {} : { "integration.request.header.X-Stile-Set-Cookie" = "context.authorizer.setCookie" },
  )
}

resource "aws_api_gateway_method" "any" {
  for_each           = local.routes
  rest_api_id        = aws_api_gateway_rest_api.site[0].id
  resource_id        = each.value.resource
  http_method        = "ANY"
  authorization      = local.detached ? "NONE" : "CUSTOM"
  authorizer_id      = local.detached ? null : aws_api_gateway_authorizer.stile[0].id
  request_parameters = each.key == "rest" ? { "method.request.path.proxy" = true } : {}
}

resource "aws_api_gateway_integration" "origin" {
  for_each                = local.routes
  rest_api_id             = aws_api_gateway_rest_api.site[0].id
  resource_id             = each.value.resource
  http_method             = aws_api_gateway_method.any[each.key].http_method
  type                    = "HTTP_PROXY"
  integration_http_method = "ANY"
  uri                     = "${var.origin}${each.value.path == "" ? "/" : each.value.path}"
  timeout_milliseconds    = 29000
  request_parameters = merge(
    local.to_origin,
    each.key == "rest" ? { "integration.request.path.proxy" = "method.request.path.proxy" } : {},
  )
}

locals {
  pages = {
    contact = var.contact
    words   = trimprefix(trimprefix(var.contact, "mailto:"), "https://")
  }
  limited_html     = templatefile("${path.module}/files/limited.html", local.pages)
  limited_json     = templatefile("${path.module}/files/limited.json", local.pages)
  unavailable_html = templatefile("${path.module}/files/unavailable.html", local.pages)
  unavailable_json = templatefile("${path.module}/files/unavailable.json", local.pages)

  # These templates know $context variables and nothing else. What they insert is
  # made by the authorizer of digits and plain tokens, so nothing needs escaping.
  answers = {
    ACCESS_DENIED = { status = "429", html = local.limited_html, json = local.limited_json, fields = merge({
      "gatewayresponse.header.Retry-After"           = "context.authorizer.retryAfter"
      "gatewayresponse.header.RateLimit"             = "context.authorizer.rateLimit"
      "gatewayresponse.header.RateLimit-Policy"      = "context.authorizer.rateLimitPolicy"
      "gatewayresponse.header.X-RateLimit-Limit"     = "context.authorizer.xRateLimitLimit"
      "gatewayresponse.header.X-RateLimit-Remaining" = "context.authorizer.xRateLimitRemaining"
      "gatewayresponse.header.X-RateLimit-Reset"     = "context.authorizer.xRateLimitReset"
    }, var.visitor_cookie ? { "gatewayresponse.header.Set-Cookie" = "context.authorizer.setCookie" } : {}) }
    # The first is also how Stile says that its store failed and the policy is
    # closed. None of them may look like a limit.
    AUTHORIZER_FAILURE             = { status = "503", html = local.unavailable_html, json = local.unavailable_json, fields = local.later }
    UNAUTHORIZED                   = { status = "503", html = local.unavailable_html, json = local.unavailable_json, fields = local.later }
    AUTHORIZER_CONFIGURATION_ERROR = { status = "503", html = local.unavailable_html, json = local.unavailable_json, fields = local.later }
  }
  later = { "gatewayresponse.header.Retry-After" = "'5'" }
}

resource "aws_api_gateway_gateway_response" "answer" {
  for_each      = local.rest ? local.answers : {}
  rest_api_id   = aws_api_gateway_rest_api.site[0].id
  response_type = each.key
  status_code   = each.value.status
  response_parameters = merge(each.value.fields, {
    "gatewayresponse.header.Cache-Control" = "'no-store'"
  })
  response_templates = {
    "text/html"        = each.value.html
    "application/json" = each.value.json
  }
}

resource "aws_api_gateway_deployment" "site" {
  count       = local.rest ? 1 : 0
  rest_api_id = aws_api_gateway_rest_api.site[0].id

  # What a deployment freezes. Whole resources would differ between plan and
  # refresh, so the file and what goes into it are hashed instead.
  triggers = {
    frozen = sha1(jsonencode([filesha1("${path.module}/rest.tf"), var.origin, local.detached, local.to_origin, local.answers,
    aws_api_gateway_authorizer.stile[0].id, aws_api_gateway_resource.rest_of_path[0].id]))
  }

  lifecycle {
    create_before_destroy = true
  }

  depends_on = [aws_api_gateway_method.any, aws_api_gateway_integration.origin, aws_api_gateway_gateway_response.answer]
}

resource "aws_api_gateway_stage" "site" {
  count         = local.rest ? 1 : 0
  rest_api_id   = aws_api_gateway_rest_api.site[0].id
  deployment_id = aws_api_gateway_deployment.site[0].id
  stage_name    = "site"
  tags          = local.tags
}

resource "aws_api_gateway_method_settings" "all" {
  count       = local.rest ? 1 : 0
  rest_api_id = aws_api_gateway_rest_api.site[0].id
  stage_name  = aws_api_gateway_stage.site[0].stage_name
  method_path = "*/*"

  settings {
    throttling_rate_limit  = var.requests_per_second
    throttling_burst_limit = max(1, floor(var.requests_per_second))
    # The hit log has what access logs would have; execution logs would hold
    # visitors' headers, and both need an account-wide role.
    logging_level = "OFF"
  }
}

resource "aws_api_gateway_domain_name" "site" {
  count                    = local.rest && var.domain != null ? 1 : 0
  domain_name              = var.domain.name
  regional_certificate_arn = var.domain.certificate_arn
  security_policy          = "TLS_1_2"
  tags                     = local.tags

  endpoint_configuration {
    types = ["REGIONAL"]
  }
}

resource "aws_api_gateway_base_path_mapping" "site" {
  count       = local.rest && var.domain != null ? 1 : 0
  api_id      = aws_api_gateway_rest_api.site[0].id
  stage_name  = aws_api_gateway_stage.site[0].stage_name
  domain_name = aws_api_gateway_domain_name.site[0].domain_name
}
