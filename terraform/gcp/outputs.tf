output "url" {
  description = "Where the limited site answers; null while the address is unknown."
  value       = var.domain != null ? "https://${var.domain}/" : try("http://${google_compute_global_address.site.address}/", null)
}

output "address" {
  description = "What the site's public name has to point to (an A record)."
  value       = google_compute_global_address.site.address
}

output "service" {
  description = "The Cloud Run service; its environment is the fastest switch (docs/deploy-gcp.md, kill switch)."
  value       = local.service
}

output "store_url" {
  description = "The store, as --store of stile takes it; null while it is unknown."
  value       = local.store_url
}

output "hit_log_bucket" {
  description = "Where the hit log is kept for stile size and report."
  value       = google_storage_bucket.hits.name
}

output "service_account" {
  description = "Whom the service runs as."
  value       = google_service_account.stile.email
}
