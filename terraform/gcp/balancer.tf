# The only way in.

resource "google_compute_global_address" "site" {
  project = var.project
  name    = var.name

  depends_on = [google_project_service.needed]
}

resource "google_compute_region_network_endpoint_group" "stile" {
  project               = var.project
  region                = var.region
  name                  = var.name
  network_endpoint_type = "SERVERLESS"

  cloud_run {
    service = local.service
  }
}

resource "google_compute_backend_service" "stile" {
  project               = var.project
  name                  = var.name
  description           = "Pages of ${var.origin}, through Stile"
  load_balancing_scheme = "EXTERNAL_MANAGED"
  protocol              = "HTTPS"
  # A page that Cloud CDN served would not be counted.
  enable_cdn = false

  backend {
    group = google_compute_region_network_endpoint_group.stile.id
  }

  log_config {
    enable = false # the hit log has what is needed, without every asset
  }
}

# The way back: where the site is a backend of the balancer, mode = "off" sends
# visitors to it. That is one change of the URL map, which depends on nothing of
# Stile's; until then the backend stands ready and costs nothing.

locals {
  site_service = var.site_backend == null ? null : (startswith(var.site_backend, "run:") ? trimprefix(var.site_backend, "run:") : null)
  site_backend = local.site_service == null ? var.site_backend : google_compute_backend_service.site[0].id
}

resource "google_compute_region_network_endpoint_group" "site" {
  count                 = local.site_service == null ? 0 : 1
  project               = var.project
  region                = var.region
  name                  = "${var.name}-site"
  network_endpoint_type = "SERVERLESS"

  cloud_run {
    service = local.site_service
  }
}

resource "google_compute_backend_service" "site" {
  count                 = local.site_service == null ? 0 : 1
  project               = var.project
  name                  = "${var.name}-site"
  description           = "${local.site_service} without Stile, for mode = off"
  load_balancing_scheme = "EXTERNAL_MANAGED"
  protocol              = "HTTPS"
  enable_cdn            = false

  backend {
    group = google_compute_region_network_endpoint_group.site[0].id
  }

  log_config {
    enable = false
  }
}

resource "google_compute_url_map" "site" {
  project         = var.project
  name            = var.name
  default_service = var.mode == "off" && var.site_backend != null ? local.site_backend : google_compute_backend_service.stile.id
}

resource "google_compute_managed_ssl_certificate" "site" {
  count   = var.domain == null ? 0 : 1
  project = var.project
  name    = "${var.name}-${substr(sha1(var.domain), 0, 8)}"

  managed {
    domains = [var.domain]
  }

  lifecycle {
    create_before_destroy = true
  }
}

resource "google_compute_target_https_proxy" "site" {
  count            = var.domain == null ? 0 : 1
  project          = var.project
  name             = var.name
  url_map          = google_compute_url_map.site.id
  ssl_certificates = [google_compute_managed_ssl_certificate.site[0].id]
}

resource "google_compute_global_forwarding_rule" "https" {
  count                 = var.domain == null ? 0 : 1
  project               = var.project
  name                  = "${var.name}-https"
  load_balancing_scheme = "EXTERNAL_MANAGED"
  ip_address            = google_compute_global_address.site.id
  port_range            = "443"
  target                = google_compute_target_https_proxy.site[0].id
  labels                = local.labels
}

# Port 80 redirects before Stile sees it, so the hop is not counted; for a trial
# without a domain it serves.
resource "google_compute_url_map" "redirect" {
  count   = var.domain == null ? 0 : 1
  project = var.project
  name    = "${var.name}-redirect"

  default_url_redirect {
    https_redirect         = true
    strip_query            = false
    redirect_response_code = "MOVED_PERMANENTLY_DEFAULT"
  }
}

resource "google_compute_target_http_proxy" "site" {
  project = var.project
  name    = var.name
  url_map = var.domain == null ? google_compute_url_map.site.id : google_compute_url_map.redirect[0].id
}

resource "google_compute_global_forwarding_rule" "http" {
  project               = var.project
  name                  = "${var.name}-http"
  load_balancing_scheme = "EXTERNAL_MANAGED"
  ip_address            = google_compute_global_address.site.id
  port_range            = "80"
  target                = google_compute_target_http_proxy.site.id
  labels                = local.labels
}
