data "aws_region" "current" {}
data "aws_caller_identity" "current" {}
data "aws_partition" "current" {}

# Lambda itself has no reference from a variable to a secret. Stile reads what is
# written as ssm:/path when an instance starts; of a plain /path Terraform reads the
# value, which is then in its state and in the function's configuration.
data "aws_ssm_parameter" "secret" {
  for_each        = { for variable, path in local.secrets : variable => path if !startswith(path, "ssm:") }
  name            = each.value
  with_decryption = true
}

locals {
  rest       = var.entry == "rest-api"
  cloudfront = var.entry == "cloudfront"
  detached   = var.mode == "off"

  account = "${data.aws_region.current.id}:${data.aws_caller_identity.current.account_id}"
  tags    = merge({ service = var.name }, var.tags)

  # CloudFront writes the viewer's address into this field itself and overwrites
  # what the viewer sent; only CloudFront can call the function (see cloudfront.tf).
  client_header = "X-Stile-Client"

  secrets = merge(var.secrets, var.doctor_secret == null ? {} : { STILE_DOCTOR_SECRET = var.doctor_secret })
  # By reference, without a version or label behind the name.
  references = { for variable, path in local.secrets : variable => split(":", path)[1] if startswith(path, "ssm:") }

  # As text, without its comment lines: Lambda has 4 KB for all variables. The
  # question of stile doctor needs a line in it.
  written = strcontains(var.policy, "\n")
  asked   = var.doctor_secret != null && local.written ? !can(yamldecode(var.policy).doctor) : false
  policy = join("\n", concat(
    [for line in split("\n", var.policy) : line if !can(regex("^\\s*(#|$)", line))],
    local.asked ? ["doctor: {secrets: env:STILE_DOCTOR_SECRET}"] : [],
  ))

  environment = merge(
    {
      STILE_POLICY      = local.written ? "${local.policy}\n" : var.policy
      STILE_STORE       = local.store_url
      STILE_MODE        = var.mode
      STILE_SCALE       = tostring(var.scale)
      STILE_CLIENT_FROM = local.rest ? "platform" : "header:${local.client_header}"
    },
    local.cloudfront ? { STILE_ORIGIN = var.origin, STILE_RESPONSES = "streamed" } : {},
    { for variable, path in local.secrets : variable => path if startswith(path, "ssm:") },
    { for variable, secret in data.aws_ssm_parameter.secret : variable => secret.value },
  )
}

# Created before the function, so that Lambda does not create it without a
# retention.
resource "aws_cloudwatch_log_group" "function" {
  name              = "/aws/lambda/${var.name}"
  retention_in_days = var.log_retention_days
  tags              = local.tags
}

resource "aws_lambda_function" "stile" {
  function_name    = var.name
  description      = "Limits page navigations (${var.entry})."
  filename         = var.bundle
  source_code_hash = filebase64sha256(var.bundle)
  runtime          = "provided.al2023"
  handler          = "bootstrap"
  architectures    = ["arm64"]
  role             = aws_iam_role.function.arn
  memory_size      = var.memory_mb
  # The authorizer answers within its own deadline of about a second; API Gateway
  # would wait 10 s at most. A proxied page may take as long as CloudFront waits.
  timeout                        = local.rest ? 5 : 30
  reserved_concurrent_executions = var.reserved_concurrency
  tags                           = local.tags

  environment {
    variables = local.environment
  }

  dynamic "vpc_config" {
    for_each = local.elasticache ? [var.vpc] : []
    content {
      subnet_ids         = vpc_config.value.subnet_ids
      security_group_ids = [aws_security_group.function[0].id]
    }
  }

  depends_on = [aws_cloudwatch_log_group.function, aws_iam_role_policy.function]
}
