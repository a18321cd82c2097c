# A site behind API Gateway, limited by Stile, counted in DynamoDB.
#
#   scripts/build-lambda.sh
#   terraform -chdir=terraform/aws/examples/rest-api init
#   terraform -chdir=terraform/aws/examples/rest-api apply -var origin=https://www.example.org -var contact=mailto:ops@example.org

terraform {
  required_version = ">= 1.9.0"

  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 5.80.0, < 7.0.0"
    }
  }
}

provider "aws" {
  region = var.region
}

variable "region" {
  description = "AWS region."
  type        = string
  default     = "eu-central-1"
}

variable "origin" {
  description = "The site behind, as https://host."
  type        = string
}

variable "contact" {
  description = "Printed on refusals: mailto:… or https://…"
  type        = string
}

variable "mode" {
  description = "observe, enforce or off."
  type        = string
  default     = "observe"
}

variable "scale" {
  description = "Multiplies every limit."
  type        = number
  default     = 10
}

variable "domain" {
  description = "The site's public name and its certificate's ARN; null for a trial."
  type        = object({ name = string, certificate_arn = string })
  default     = null
}

variable "bundle" {
  description = "What scripts/build-lambda.sh has built."
  type        = string
  default     = "../../../../dist/lambda-arm64.zip"
}

module "stile" {
  source  = "../.."
  name    = "stile-example"
  entry   = "rest-api"
  origin  = var.origin
  contact = var.contact
  bundle  = var.bundle
  domain  = var.domain
  policy  = file("${path.module}/stile.yaml")
  mode    = var.mode
  scale   = var.scale
  store   = "dynamodb"
}

output "url" {
  description = "Where the limited site answers."
  value       = module.stile.url
}

output "log_group" {
  description = "The hit log."
  value       = module.stile.log_group
}

output "function_name" {
  description = "The function."
  value       = module.stile.function_name
}

output "store_url" {
  description = "The store, for stile key and stile explain."
  value       = module.stile.store_url
}

output "dashboard" {
  description = "Name of the CloudWatch dashboard."
  value       = module.stile.dashboard
}

output "dns_target" {
  description = "What the public name has to point to; null without a domain."
  value       = module.stile.dns_target
}
