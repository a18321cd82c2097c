output "url" {
  description = "Where the limited site answers."
  value = var.domain != null ? "https://${var.domain.name}/" : (
    local.rest ? "${one(aws_api_gateway_stage.site[*].invoke_url)}/" : "https://${aws_cloudfront_distribution.site["this"].domain_name}/"
  )
}

output "dns_target" {
  description = "What the site's public name has to point to (CNAME or alias); null without a domain."
  value = var.domain == null ? null : (
    local.rest ? aws_api_gateway_domain_name.site[0].regional_domain_name : aws_cloudfront_distribution.site["this"].domain_name
  )
}

output "function_name" {
  description = "The function; its configuration is the fastest switch (docs/deploy-aws.md, kill switch)."
  value       = aws_lambda_function.stile.function_name
}

output "log_group" {
  description = "The hit log, for stile report, size and replay."
  value       = aws_cloudwatch_log_group.function.name
}

output "store_url" {
  description = "The store, as --store of stile takes it; null while it is unknown."
  value       = local.store_url
}

output "dashboard" {
  description = "Name of the CloudWatch dashboard."
  value       = aws_cloudwatch_dashboard.stile.dashboard_name
}
