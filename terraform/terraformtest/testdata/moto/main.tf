# The AWS module against a local server that speaks the AWS API.

terraform {
  required_version = ">= 1.9.0"
  required_providers {
    aws = { source = "hashicorp/aws" }
  }
}

variable "endpoint" {
  description = "The server's URL."
  type        = string
}

variable "bundle" {
  description = "A zip with a bootstrap."
  type        = string
}

variable "mode" {
  description = "observe, enforce or off."
  type        = string
  default     = "observe"
}

variable "entry" {
  description = "rest-api or cloudfront."
  type        = string
  default     = "rest-api"
}

variable "store" {
  description = "dynamodb or elasticache."
  type        = string
  default     = "dynamodb"
}

provider "aws" {
  region                      = "eu-central-1"
  access_key                  = "test"
  secret_key                  = "test"
  skip_credentials_validation = true
  skip_metadata_api_check     = true
  skip_region_validation      = true
  max_retries                 = 1

  endpoints {
    apigateway     = var.endpoint
    cloudwatch     = var.endpoint
    cloudwatchlogs = var.endpoint
    dynamodb       = var.endpoint
    iam            = var.endpoint
    lambda         = var.endpoint
    ssm            = var.endpoint
    sts            = var.endpoint
  }
}

module "stile" {
  source  = "../../../aws"
  name    = "stile-moto"
  origin  = "https://www.example.org"
  contact = "mailto:ops@example.org"
  bundle  = var.bundle
  policy  = file("${path.module}/../../../aws/examples/rest-api/stile.yaml")
  mode    = var.mode
  entry   = var.entry
  store   = var.store
  vpc     = var.store == "elasticache" ? { id = "vpc-00000000", subnet_ids = ["subnet-00000001", "subnet-00000002"] } : null
  secrets = { STILE_COOKIE_SECRETS = "/stile/cookie", STILE_KEY_SECRETS = "ssm:/stile/keys" }

  visitor_cookie = var.entry == "rest-api"
}

output "url" {
  description = "Where the limited site answers."
  value       = module.stile.url
}
