# The hit log is kept for stile size and report; Cloud Logging itself keeps it for
# the 30 days of its default bucket.

resource "google_storage_bucket" "hits" {
  project                     = var.project
  name                        = "${var.project}-${var.name}-hits"
  location                    = var.region
  uniform_bucket_level_access = true
  public_access_prevention    = "enforced"
  force_destroy               = true
  labels                      = local.labels

  lifecycle_rule {
    action {
      type = "Delete"
    }
    condition {
      age = var.log_retention_days
    }
  }
}

locals {
  from_service = "resource.type=\"cloud_run_revision\" AND resource.labels.service_name=\"${var.name}\""
}

resource "google_logging_project_sink" "hits" {
  project                = var.project
  name                   = "${var.name}-hits"
  destination            = "storage.googleapis.com/${google_storage_bucket.hits.name}"
  filter                 = "${local.from_service} AND jsonPayload.event=(\"hit\" OR \"limited\" OR \"would-limit\")"
  unique_writer_identity = true
}

resource "google_storage_bucket_iam_member" "hits" {
  bucket = google_storage_bucket.hits.name
  role   = "roles/storage.objectCreator"
  member = google_logging_project_sink.hits.writer_identity
}

# Metrics from the log. Their names are the program's events and reasons; nothing a
# visitor sends becomes a name or a label. The operator's lines carry their text in
# message under the Functions Framework, as plain text in the container.

locals {
  signals = {
    pages           = "jsonPayload.event=(\"hit\" OR \"limited\" OR \"would-limit\")"
    limited         = "jsonPayload.event=(\"limited\" OR \"would-limit\")"
    store-errors    = "jsonPayload.event=\"store-error\""
    failed-open     = "jsonPayload.reason=\"store-error-open\""
    hot-key         = "jsonPayload.event=\"store-error\" AND jsonPayload.error:(\"Aborted\" OR \"ResourceExhausted\")"
    spending-limit  = "(jsonPayload.message:\"the store's spending limit is reached\" OR textPayload:\"the store's spending limit is reached\")"
    nothing-limited = "jsonPayload.message:\"stile: NOTHING IS LIMITED\""
    would-limit     = "jsonPayload.event=\"would-limit\""
    other-mode      = local.function ? "jsonPayload.message=\"stile: started\" AND jsonPayload.mode!=\"${var.mode}\"" : "textPayload:\"msg=serving\" AND NOT textPayload:\"mode=${var.mode}\""
    crawlers-old    = "(jsonPayload.message:\"crawler ranges are old\" OR textPayload:\"crawler ranges are old\")"
  }
}

resource "google_logging_metric" "signal" {
  for_each    = local.signals
  project     = var.project
  name        = "${var.name}/${each.key}"
  description = "Stile: ${each.key}"
  filter      = "${local.from_service} AND ${each.value}"

  metric_descriptor {
    metric_kind = "DELTA"
    value_type  = "INT64"
    unit        = "1"
  }

  depends_on = [google_project_service.needed]
}

locals {
  metric = { for k, m in google_logging_metric.signal : k => "metric.type=\"logging.googleapis.com/user/${m.name}\" AND resource.type=\"cloud_run_revision\"" }

  always = {
    store-errors = { filter = local.metric["store-errors"], over = 300, above = 5,
    says = "The store fails. What that means for visitors says store.on_error of the policy." }
    fails-open = { filter = local.metric["failed-open"], over = 300, above = 20,
    says = "Pages are let through uncounted because the store fails (store.on_error: open)." }
    spending-limit = { filter = local.metric["spending-limit"], over = 300, above = 0,
    says = "store.max_ops_per_second or max_ops_per_day is reached: each instance counts for itself, and limits are softer." }
    nothing-limited = { filter = local.metric["nothing-limited"], over = 300, above = 0,
    says = "The configuration cannot be used (or mode is off), and every page passes unlimited. The log's line says why." }
    crawlers-old = { filter = local.metric["crawlers-old"], over = 86400, above = 0,
    says = "The table of crawlers' addresses is old: real crawlers may be limited. Deploy a build with a fresh one (stile crawlers update)." }
    other-mode = { filter = local.metric["other-mode"], over = 300, above = 0,
    says = "An instance started in another mode than Terraform's ${var.mode}: a kill switch was thrown by hand. The next apply takes it back." }
    hot-key = { filter = local.metric["hot-key"], over = 300, above = 0,
    says = "The store refuses a key for its rate: an outer bucket without flush_every, most likely." }
    server-errors = { filter = "metric.type=\"run.googleapis.com/request_count\" AND resource.type=\"cloud_run_revision\" AND resource.labels.service_name=\"${var.name}\" AND metric.labels.response_code_class=\"5xx\"", over = 300, above = 20,
    says = "Visitors get 5xx: the site behind, the function, or a closed failure policy. Way back: mode = \"off\"." }
    cost-requests = { filter = "metric.type=\"run.googleapis.com/request_count\" AND resource.type=\"cloud_run_revision\" AND resource.labels.service_name=\"${var.name}\"", over = 3600, above = var.alert_requests_per_hour,
    says = "Cost guard: more requests in an hour than alert_requests_per_hour." }
  }

  by_store = {
    firestore = {
      cost-writes = { filter = "metric.type=\"firestore.googleapis.com/document/write_count\" AND resource.type=\"firestore_instance\"", over = 3600, above = var.alert_writes_per_hour,
      says = "Cost guard: more Firestore writes in an hour than alert_writes_per_hour." }
    }
    redis = {
      busy = { filter = "metric.type=\"redis.googleapis.com/stats/evicted_keys\" AND resource.type=\"redis_instance\"", over = 3600, above = 0,
      says = "The instance throws keys out, and with them counts: raise memory_gb." }
    }
    valkey  = {}
    upstash = {}
    memory  = {}
  }

  # Who enforces and sees would-be refusals has lifted them by hand.
  by_mode = var.mode != "enforce" ? {} : {
    lifted = { filter = local.metric["would-limit"], over = 300, above = 0,
    says = "Refusals are lifted (stile key lift --all) although the mode is enforce. It ends by itself; stile key show --all says when." }
  }

  alerts = merge(local.always, local.by_mode, local.by_store[var.store])
}

resource "google_monitoring_alert_policy" "signal" {
  for_each              = local.alerts
  project               = var.project
  display_name          = "${var.name} ${each.key}"
  combiner              = "OR"
  notification_channels = var.notification_channels
  user_labels           = local.labels

  documentation {
    content   = each.value.says
    mime_type = "text/markdown"
  }

  conditions {
    display_name = each.key
    condition_threshold {
      filter          = each.value.filter
      comparison      = "COMPARISON_GT"
      threshold_value = each.value.above
      duration        = "0s"

      aggregations {
        alignment_period     = "${each.value.over}s"
        per_series_aligner   = "ALIGN_SUM"
        cross_series_reducer = "REDUCE_SUM"
      }
    }
  }
}

resource "google_monitoring_alert_policy" "limited" {
  project               = var.project
  display_name          = "${var.name} limited"
  combiner              = "OR"
  notification_channels = var.notification_channels
  user_labels           = local.labels

  documentation {
    content   = "More than ${var.alert_limited_percent} % of counted pages are (or would be) refused. stile report says who."
    mime_type = "text/markdown"
  }

  conditions {
    display_name = "refused pages of counted pages"
    condition_threshold {
      filter             = local.metric["limited"]
      denominator_filter = local.metric["pages"]
      comparison         = "COMPARISON_GT"
      threshold_value    = var.alert_limited_percent / 100
      duration           = "900s"

      aggregations {
        alignment_period     = "300s"
        per_series_aligner   = "ALIGN_SUM"
        cross_series_reducer = "REDUCE_SUM"
      }
      denominator_aggregations {
        alignment_period     = "300s"
        per_series_aligner   = "ALIGN_SUM"
        cross_series_reducer = "REDUCE_SUM"
      }
    }
  }
}

resource "google_billing_budget" "project" {
  count           = var.budget == null ? 0 : 1
  billing_account = var.budget.billing_account
  display_name    = "${var.name}: ${var.project}"

  budget_filter {
    projects = ["projects/${var.project}"]
  }

  amount {
    specified_amount {
      units = tostring(floor(var.budget.units))
    }
  }

  dynamic "threshold_rules" {
    for_each = [0.5, 0.9, 1.0]
    content {
      threshold_percent = threshold_rules.value
    }
  }

  dynamic "all_updates_rule" {
    for_each = length(var.notification_channels) > 0 ? [1] : []
    content {
      monitoring_notification_channels = slice(var.notification_channels, 0, min(5, length(var.notification_channels)))
    }
  }
}

locals {
  graphs = concat(
    [
      { title = "Pages: counted and refused", filters = { pages = local.metric["pages"], refused = local.metric["limited"] } },
      { title = "Store: errors, failed open, refused for rate", filters = { errors = local.metric["store-errors"], open = local.metric["failed-open"], hot = local.metric["hot-key"] } },
      { title = "Requests", filters = { requests = "metric.type=\"run.googleapis.com/request_count\" AND resource.type=\"cloud_run_revision\" AND resource.labels.service_name=\"${var.name}\"" } },
    ],
    var.store == "firestore" ? [
      { title = "Firestore: writes", filters = { writes = "metric.type=\"firestore.googleapis.com/document/write_count\" AND resource.type=\"firestore_instance\"" } },
    ] : [],
  )
}

resource "google_monitoring_dashboard" "stile" {
  project = var.project
  dashboard_json = jsonencode({
    displayName = "Stile: ${var.name}"
    labels      = { (var.name) = "" }
    mosaicLayout = {
      columns = 12
      tiles = [for i, g in local.graphs : {
        xPos = 6 * (i % 2), yPos = 4 * floor(i / 2), width = 6, height = 4
        widget = {
          title = g.title
          xyChart = {
            dataSets = [for name, filter in g.filters : {
              plotType       = "LINE"
              targetAxis     = "Y1"
              legendTemplate = name
              timeSeriesQuery = { timeSeriesFilter = {
                filter      = filter
                aggregation = { alignmentPeriod = "300s", perSeriesAligner = "ALIGN_SUM", crossSeriesReducer = "REDUCE_SUM" }
              } }
            }]
          }
        }
      }]
    }
  })
}
