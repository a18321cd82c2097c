data "aws_iam_policy_document" "assume" {
  statement {
    actions = ["sts:AssumeRole"]
    principals {
      type        = "Service"
      identifiers = ["lambda.amazonaws.com"]
    }
  }
}

resource "aws_iam_role" "function" {
  name               = var.name
  assume_role_policy = data.aws_iam_policy_document.assume.json
  tags               = local.tags
}

# What the function may do, and nothing else: write to its own log group, and what
# the chosen store needs.
data "aws_iam_policy_document" "function" {
  statement {
    sid       = "Log"
    actions   = ["logs:CreateLogStream", "logs:PutLogEvents"]
    resources = ["${aws_cloudwatch_log_group.function.arn}:*"]
  }

  dynamic "statement" {
    for_each = aws_dynamodb_table.counters
    content {
      sid       = "Count"
      actions   = ["dynamodb:UpdateItem", "dynamodb:GetItem", "dynamodb:DescribeTable", "dynamodb:DescribeTimeToLive"]
      resources = [statement.value.arn]
    }
  }

  # One statement for each parameter, so that a plan shows what is given away.
  dynamic "statement" {
    for_each = local.references
    content {
      sid       = "Read${replace(title(replace(lower(statement.key), "_", " ")), " ", "")}"
      actions   = ["ssm:GetParameters"]
      resources = ["arn:${data.aws_partition.current.partition}:ssm:${local.account}:parameter${statement.value}"]
    }
  }

  # The account's own key for parameters lets everybody in who may read them.
  dynamic "statement" {
    for_each = var.secrets_kms_key_arn == null ? [] : [var.secrets_kms_key_arn]
    content {
      sid       = "DecryptSecrets"
      actions   = ["kms:Decrypt"]
      resources = [statement.value]
      condition {
        test     = "StringLike"
        variable = "kms:EncryptionContext:PARAMETER_ARN"
        values   = [for path in values(local.references) : "arn:${data.aws_partition.current.partition}:ssm:${local.account}:parameter${path}"]
      }
    }
  }

  # Lambda's own agent attaches the function to the VPC with these; EC2 takes no
  # resource for them.
  dynamic "statement" {
    for_each = local.elasticache ? [1] : []
    content {
      sid = "AttachToVPC"
      actions = [
        "ec2:CreateNetworkInterface", "ec2:DeleteNetworkInterface", "ec2:DescribeNetworkInterfaces", "ec2:DescribeSubnets",
        "ec2:AssignPrivateIpAddresses", "ec2:UnassignPrivateIpAddresses",
      ]
      resources = ["*"]
    }
  }
}

resource "aws_iam_role_policy" "function" {
  name   = "stile"
  role   = aws_iam_role.function.id
  policy = data.aws_iam_policy_document.function.json
}
