# Runs without an account: plans and applies against a mocked provider. What AWS
# itself makes of it is in internal tests (moto) and in docs/deploy-aws.md.

mock_provider "aws" {
  mock_data "aws_iam_policy_document" {
    defaults = { json = "{\"Version\":\"2012-10-17\",\"Statement\":[]}" }
  }
  mock_data "aws_ssm_parameter" {
    defaults = { value = "from-ssm" }
  }
  mock_data "aws_region" {
    defaults = { id = "eu-central-1", name = "eu-central-1" }
  }
  mock_data "aws_caller_identity" {
    defaults = { account_id = "123456789012" }
  }
  mock_data "aws_partition" {
    defaults = { partition = "aws" }
  }
  mock_resource "aws_iam_role" {
    defaults = { arn = "arn:aws:iam::123456789012:role/stile" }
  }
  mock_resource "aws_lambda_function" {
    defaults = {
      arn        = "arn:aws:lambda:eu-central-1:123456789012:function:stile"
      invoke_arn = "arn:aws:apigateway:eu-central-1:lambda:path/2015-03-31/functions/arn:aws:lambda:eu-central-1:123456789012:function:stile/invocations"
    }
  }
  mock_resource "aws_api_gateway_rest_api" {
    defaults = { id = "abc123", execution_arn = "arn:aws:execute-api:eu-central-1:123456789012:abc123" }
  }
  mock_resource "aws_cloudwatch_log_group" {
    defaults = { arn = "arn:aws:logs:eu-central-1:123456789012:log-group:/aws/lambda/stile" }
  }
  mock_resource "aws_dynamodb_table" {
    defaults = { arn = "arn:aws:dynamodb:eu-central-1:123456789012:table/stile-counters" }
  }
  mock_resource "aws_lambda_function_url" {
    defaults = { function_url = "https://abcdefgh.lambda-url.eu-central-1.on.aws/" }
  }
  mock_resource "aws_cloudfront_distribution" {
    defaults = { arn = "arn:aws:cloudfront::123456789012:distribution/E123", domain_name = "d123.cloudfront.net" }
  }
  mock_resource "aws_cloudfront_function" {
    defaults = { arn = "arn:aws:cloudfront::123456789012:function/stile-viewer" }
  }
  mock_resource "aws_elasticache_replication_group" {
    defaults = { primary_endpoint_address = "master.stile.abc.euc1.cache.amazonaws.com" }
  }
}

variables {
  # Any zip will do: the mocked provider uploads nothing.
  bundle  = "tests/empty.zip"
  origin  = "https://www.example.org"
  contact = "mailto:ops@example.org"
  policy  = <<-YAML
    # a comment, which is left out
    version: 1
    site: example
    client: {from: platform}
    buckets:
      - {name: hour, key: address, limit: 60, window: 1h}
  YAML
}

run "first_apply_observes" {
  assert {
    condition     = aws_lambda_function.stile.environment[0].variables.STILE_MODE == "observe" && aws_lambda_function.stile.environment[0].variables.STILE_SCALE == "10"
    error_message = "The first apply must refuse nobody and have wide limits."
  }
  assert {
    condition     = aws_lambda_function.stile.environment[0].variables.STILE_STORE == "dynamodb://stile-counters?region=eu-central-1"
    error_message = "Store URL: ${aws_lambda_function.stile.environment[0].variables.STILE_STORE}"
  }
  assert {
    condition     = aws_lambda_function.stile.environment[0].variables.STILE_CLIENT_FROM == "platform" && !can(aws_lambda_function.stile.environment[0].variables.STILE_ORIGIN)
    error_message = "An authorizer takes the platform's own address field and has no origin."
  }
  assert {
    condition     = !strcontains(aws_lambda_function.stile.environment[0].variables.STILE_POLICY, "#") && strcontains(aws_lambda_function.stile.environment[0].variables.STILE_POLICY, "\n")
    error_message = "The policy goes in as text without comments."
  }
  assert {
    condition     = aws_api_gateway_authorizer.stile[0].authorizer_result_ttl_in_seconds == 0 && aws_api_gateway_authorizer.stile[0].identity_source == ""
    error_message = "A cached decision would stand for many pages; an identity source would answer 401."
  }
  assert {
    condition     = alltrue([for m in aws_api_gateway_method.any : m.authorization == "CUSTOM" && m.http_method == "ANY"]) && length(aws_api_gateway_method.any) == 2
    error_message = "Every route asks Stile."
  }
  assert {
    condition     = aws_api_gateway_gateway_response.answer["ACCESS_DENIED"].status_code == "429" && aws_api_gateway_gateway_response.answer["ACCESS_DENIED"].response_parameters["gatewayresponse.header.Retry-After"] == "context.authorizer.retryAfter" && aws_api_gateway_gateway_response.answer["ACCESS_DENIED"].response_parameters["gatewayresponse.header.Cache-Control"] == "'no-store'"
    error_message = "A denial is an honest 429."
  }
  assert {
    condition     = alltrue([for k, r in aws_api_gateway_gateway_response.answer : r.status_code == "503" if k != "ACCESS_DENIED"]) && length(aws_api_gateway_gateway_response.answer) == 4
    error_message = "A failure must never look like a limit."
  }
  assert {
    # API Gateway reads every dollar sign as a variable.
    condition     = alltrue(flatten([for r in aws_api_gateway_gateway_response.answer : [for t in values(r.response_templates) : !strcontains(replace(replace(t, "$context.authorizer.", ""), "$context.requestId", ""), "$")]]))
    error_message = "A page has a dollar sign that is no known variable."
  }
  assert {
    condition     = alltrue([for r in aws_api_gateway_gateway_response.answer : length(r.response_templates["text/html"]) < 2048 && !strcontains(r.response_templates["text/html"], "noindex")])
    error_message = "Pages stay below 2 KB and say nothing to search engines."
  }
  assert {
    condition     = aws_dynamodb_table.counters[0].billing_mode == "PAY_PER_REQUEST" && aws_dynamodb_table.counters[0].hash_key == "pk" && one(aws_dynamodb_table.counters[0].ttl).attribute_name == "ttl" && one(aws_dynamodb_table.counters[0].ttl).enabled
    error_message = "The table is what package stores/dynamodb expects."
  }
  assert {
    condition     = length(aws_cloudfront_distribution.site) == 0 && length(aws_lambda_function_url.stile) == 0
    error_message = "The other entry must not exist."
  }
}

run "every_fault_has_its_alarm" {
  assert {
    condition     = length(setsubtract(["store-errors", "fails-open", "hot-key", "spending-limit", "crawlers-old", "nothing-limited", "other-mode", "function-errors", "function-throttled", "cost-invocations", "cost-writes"], keys(aws_cloudwatch_metric_alarm.signal))) == 0 && alltrue([for a in aws_cloudwatch_metric_alarm.signal : length(a.alarm_description) > 20])
    error_message = "An alarm is missing, or does not say what to do."
  }
  assert {
    condition     = aws_cloudwatch_metric_alarm.limited.threshold == 20 && !contains(keys(aws_cloudwatch_metric_alarm.signal), "lifted")
    error_message = "The share of refusals is watched, and would-be refusals are the rule while it observes."
  }
  assert {
    condition     = aws_cloudwatch_log_metric_filter.signal["OtherMode"].pattern == "{ ($.message = \"stile: started\") && ($.mode != \"observe\") }"
    error_message = "Another mode than Terraform's is a kill switch that was thrown by hand."
  }
}

run "enforce_keeps_everything_else" {
  variables {
    mode  = "enforce"
    scale = 1
  }
  assert {
    condition     = aws_lambda_function.stile.environment[0].variables.STILE_MODE == "enforce" && aws_lambda_function.stile.environment[0].variables.STILE_SCALE == "1"
    error_message = "Enforcement is two variables."
  }
  assert {
    condition     = contains(keys(aws_cloudwatch_metric_alarm.signal), "lifted")
    error_message = "A lift of refusals that was forgotten must be seen."
  }
}

run "secrets_by_reference" {
  variables {
    entry               = "cloudfront"
    secrets             = { STILE_COOKIE_SECRETS = "ssm:/stile/cookie:3", STILE_KEY_SECRETS = "/stile/keys" }
    doctor_secret       = "ssm:/stile/doctor"
    secrets_kms_key_arn = "arn:aws:kms:eu-central-1:123456789012:key/00000000-0000-0000-0000-000000000000"
  }
  assert {
    condition     = aws_lambda_function.stile.environment[0].variables.STILE_COOKIE_SECRETS == "ssm:/stile/cookie:3" && aws_lambda_function.stile.environment[0].variables.STILE_DOCTOR_SECRET == "ssm:/stile/doctor" && aws_lambda_function.stile.environment[0].variables.STILE_KEY_SECRETS == "from-ssm"
    error_message = "A reference is handed on as it is; a plain path is read by Terraform."
  }
  assert {
    condition     = join(",", keys(data.aws_ssm_parameter.secret)) == "STILE_KEY_SECRETS"
    error_message = "What the function reads itself must not come into the state."
  }
  assert {
    condition     = jsonencode({ for s in data.aws_iam_policy_document.function.statement : s.sid => tolist(s.resources)[0] if contains(s.actions, "ssm:GetParameters") }) == jsonencode({ ReadStileCookieSecrets = "arn:aws:ssm:eu-central-1:123456789012:parameter/stile/cookie", ReadStileDoctorSecret = "arn:aws:ssm:eu-central-1:123456789012:parameter/stile/doctor" })
    error_message = "It may read these two parameters and no other."
  }
  assert {
    condition     = one([for s in data.aws_iam_policy_document.function.statement : tolist(s.resources)[0] if contains(s.actions, "kms:Decrypt")]) == var.secrets_kms_key_arn
    error_message = "It may decrypt with the one key."
  }
  assert {
    condition     = endswith(aws_lambda_function.stile.environment[0].variables.STILE_POLICY, "\ndoctor: {secrets: env:STILE_DOCTOR_SECRET}\n")
    error_message = "stile doctor may ask."
  }
}

run "visitor_cookie_is_handed_on" {
  variables {
    visitor_cookie = true
  }
  assert {
    condition     = aws_api_gateway_integration.origin["rest"].request_parameters["integration.request.header.X-Stile-Set-Cookie"] == "context.authorizer.setCookie" && aws_api_gateway_gateway_response.answer["ACCESS_DENIED"].response_parameters["gatewayresponse.header.Set-Cookie"] == "context.authorizer.setCookie"
    error_message = "An authorizer cannot set a cookie: the site and the gateway do."
  }
  assert {
    condition     = !contains(keys(aws_api_gateway_gateway_response.answer["AUTHORIZER_FAILURE"].response_parameters), "gatewayresponse.header.Set-Cookie")
    error_message = "A failure has no cookie to hand out."
  }
}

run "an_authorizer_has_no_doctor" {
  command = plan
  variables {
    doctor_secret = "ssm:/stile/doctor"
  }
  expect_failures = [var.doctor_secret]
}

run "way_back_takes_stile_out" {
  variables {
    mode = "off"
  }
  assert {
    condition     = alltrue([for m in aws_api_gateway_method.any : m.authorization == "NONE"])
    error_message = "mode = off must not depend on the function's health."
  }
}

run "cloudfront" {
  variables {
    entry = "cloudfront"
  }
  assert {
    condition     = aws_lambda_function_url.stile["this"].authorization_type == "AWS_IAM" && one([for o in aws_cloudfront_distribution.site["this"].origin : o if o.origin_id == "stile"]).origin_access_control_id != ""
    error_message = "Nobody may go round CloudFront."
  }
  assert {
    condition     = aws_lambda_function.stile.environment[0].variables.STILE_CLIENT_FROM == "header:X-Stile-Client" && aws_lambda_function.stile.environment[0].variables.STILE_ORIGIN == "https://www.example.org" && aws_lambda_function.stile.environment[0].variables.STILE_RESPONSES == "streamed" && aws_lambda_function_url.stile["this"].invoke_mode == "RESPONSE_STREAM"
    error_message = "The client is whom CloudFront saw."
  }
  assert {
    condition     = strcontains(aws_cloudfront_function.viewer["this"].code, "request.headers['x-stile-client'] = { value: event.viewer.ip }")
    error_message = "CloudFront must overwrite what a viewer sent."
  }
  assert {
    condition     = aws_cloudfront_cache_policy.never["this"].max_ttl == 0 && aws_cloudfront_distribution.site["this"].default_cache_behavior[0].target_origin_id == "stile"
    error_message = "Pages go through Stile and are never served from the cache."
  }
  assert {
    condition     = length(aws_api_gateway_rest_api.site) == 0 && length(aws_lambda_permission.cloudfront) == 2
    error_message = "The other entry must not exist."
  }
}

run "cloudfront_way_back" {
  variables {
    entry = "cloudfront"
    mode  = "off"
  }
  assert {
    condition     = aws_cloudfront_distribution.site["this"].default_cache_behavior[0].target_origin_id == "site" && contains(aws_cloudfront_distribution.site["this"].default_cache_behavior[0].allowed_methods, "POST")
    error_message = "mode = off sends pages to the site."
  }
}

run "elasticache" {
  variables {
    store = "elasticache"
    vpc   = { id = "vpc-1", subnet_ids = ["subnet-1", "subnet-2"] }
  }
  assert {
    condition     = aws_lambda_function.stile.environment[0].variables.STILE_STORE == "rediss://master.stile.abc.euc1.cache.amazonaws.com:6379"
    error_message = "Valkey is spoken to in TLS."
  }
  assert {
    condition     = length(aws_dynamodb_table.counters) == 0 && aws_elasticache_replication_group.counters[0].transit_encryption_enabled && aws_vpc_security_group_ingress_rule.cache[0].referenced_security_group_id == aws_security_group.function[0].id
    error_message = "Only the function reaches the counters."
  }
}

run "upstash_by_secret" {
  variables {
    store        = "upstash"
    upstash_host = "name.upstash.io"
    secrets      = { STILE_STORE_TOKEN = "/stile/upstash-token" }
  }
  assert {
    condition     = aws_lambda_function.stile.environment[0].variables.STILE_STORE == "upstash://name.upstash.io" && aws_lambda_function.stile.environment[0].variables.STILE_STORE_TOKEN == "from-ssm"
    error_message = "The token comes from its parameter."
  }
}

run "bad_values_fail_early" {
  command = plan
  variables {
    mode                  = "on"
    scale                 = 0
    origin                = "http://www.example.org/"
    contact               = "mailto:$ops"
    store                 = "redis"
    entry                 = "alb"
    policy                = "/etc/stile.yaml"
    name                  = "Stile"
    direct_paths          = ["/*"]
    reserved_concurrency  = 0
    log_retention_days    = 31
    max_writes_per_second = 1.5
    secrets               = { token = "x" }
  }
  expect_failures = [
    var.mode, var.scale, var.origin, var.contact, var.store, var.entry, var.policy, var.name, var.direct_paths,
    var.reserved_concurrency, var.log_retention_days, var.max_writes_per_second, var.secrets,
  ]
}

run "a_store_needs_its_own_part" {
  command = plan
  variables {
    store = "elasticache"
  }
  expect_failures = [var.vpc]
}

run "another_stores_part_is_refused" {
  command = plan
  variables {
    store        = "dynamodb"
    upstash_host = "name.upstash.io"
  }
  expect_failures = [var.upstash_host]
}
