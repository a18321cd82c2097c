# Metrics from the log. Their names are the program's events and reasons; nothing a
# visitor sends becomes a name.

locals {
  namespace = "Stile/${var.name}"

  # The operator's lines carry their text in message.
  signals = {
    Hits           = "{ $.event = \"hit\" }"
    Limited        = "{ $.event = \"limited\" }"
    WouldLimit     = "{ $.event = \"would-limit\" }"
    StoreErrors    = "{ $.event = \"store-error\" }"
    FailedOpen     = "{ $.reason = \"store-error-open\" }"
    SpendingLimit  = "{ $.message = \"the store's spending limit is reached*\" }"
    NothingLimited = "{ $.message = \"stile: NOTHING IS LIMITED*\" }"
    CrawlersOld    = "{ $.message = \"crawler ranges are old*\" }"
    OtherMode      = "{ ($.message = \"stile: started\") && ($.mode != \"${var.mode}\") }"
  }
}

resource "aws_cloudwatch_log_metric_filter" "signal" {
  for_each       = local.signals
  name           = "${var.name}-${each.key}"
  log_group_name = aws_cloudwatch_log_group.function.name
  pattern        = each.value

  metric_transformation {
    name      = each.key
    namespace = local.namespace
    value     = "1"
    unit      = "Count"
  }
}

locals {
  of_function = { FunctionName = aws_lambda_function.stile.function_name }
  of_table    = { TableName = one(aws_dynamodb_table.counters[*].name) }
  of_cache    = { ReplicationGroupId = one(aws_elasticache_replication_group.counters[*].id) }

  always = {
    store-errors = { metric = "StoreErrors", namespace = local.namespace, of = {}, over = 300, above = 5,
    says = "The store fails. What that means for visitors says store.on_error of the policy." }
    fails-open = { metric = "FailedOpen", namespace = local.namespace, of = {}, over = 300, above = 20,
    says = "Pages are let through uncounted because the store fails (store.on_error: open)." }
    spending-limit = { metric = "SpendingLimit", namespace = local.namespace, of = {}, over = 300, above = 0,
    says = "store.max_ops_per_second or max_ops_per_day is reached: each instance counts for itself, and limits are softer." }
    nothing-limited = { metric = "NothingLimited", namespace = local.namespace, of = {}, over = 300, above = 0,
    says = "The configuration cannot be used, and every page passes unlimited. The log's line says why." }
    crawlers-old = { metric = "CrawlersOld", namespace = local.namespace, of = {}, over = 86400, above = 0,
    says = "The table of crawlers' addresses is old: real crawlers may be limited. Build a bundle with a fresh one (stile crawlers update)." }
    other-mode = { metric = "OtherMode", namespace = local.namespace, of = {}, over = 300, above = 0,
    says = "An instance started in another mode than Terraform's ${var.mode}: a kill switch was thrown by hand. The next apply takes it back." }
    function-errors = { metric = "Errors", namespace = "AWS/Lambda", of = local.of_function, over = 300, above = 0,
    says = "The function fails or times out, or the store does and the policy is closed; visitors get 503. Way back: mode = \"off\"." }
    function-throttled = { metric = "Throttles", namespace = "AWS/Lambda", of = local.of_function, over = 300, above = 0,
    says = "More requests at once than the concurrency allows; visitors get 503. Raise reserved_concurrency or the account's limit." }
    cost-invocations = { metric = "Invocations", namespace = "AWS/Lambda", of = local.of_function, over = 3600, above = var.alarm_invocations_per_hour,
    says = "Cost guard: more calls in an hour than alarm_invocations_per_hour." }
  }

  # A hot key shows where the store refuses it.
  by_store = {
    dynamodb = {
      hot-key = { metric = "WriteThrottleEvents", namespace = "AWS/DynamoDB", of = local.of_table, over = 300, above = 0,
      says = "DynamoDB refuses writes: one key above 1,000 a second, or max_writes_per_second. Give outer buckets flush_every." }
      cost-writes = { metric = "ConsumedWriteCapacityUnits", namespace = "AWS/DynamoDB", of = local.of_table, over = 3600, above = var.alarm_writes_per_hour,
      says = "Cost guard: more write units in an hour than alarm_writes_per_hour." }
    }
    elasticache = {
      hot-key = { metric = "EngineCPUUtilization", namespace = "AWS/ElastiCache", of = local.of_cache, over = 300, above = 80,
      says = "The node's one thread is busy: one key or all of them are too hot for it." }
    }
    upstash = {}
    memory  = {}
  }

  # Who enforces and sees would-be refusals has lifted them by hand.
  by_mode = var.mode != "enforce" ? {} : {
    lifted = { metric = "WouldLimit", namespace = local.namespace, of = {}, over = 300, above = 0,
    says = "Refusals are lifted (stile key lift --all) although the mode is enforce. It ends by itself; stile key show --all says when." }
  }

  alarms = merge(local.always, local.by_mode, local.by_store[var.store])
}

resource "aws_cloudwatch_metric_alarm" "signal" {
  for_each            = local.alarms
  alarm_name          = "${var.name}-${each.key}"
  alarm_description   = each.value.says
  namespace           = each.value.namespace
  metric_name         = each.value.metric
  dimensions          = each.value.of
  statistic           = each.value.metric == "EngineCPUUtilization" ? "Average" : "Sum"
  period              = each.value.over
  evaluation_periods  = 1
  threshold           = each.value.above
  comparison_operator = "GreaterThanThreshold"
  treat_missing_data  = "notBreaching"
  alarm_actions       = var.alarm_topic_arns
  ok_actions          = var.alarm_topic_arns
  tags                = local.tags
}

resource "aws_cloudwatch_metric_alarm" "limited" {
  alarm_name          = "${var.name}-limited"
  alarm_description   = "More than ${var.alarm_limited_percent} % of counted pages are (or would be) refused. stile report says who."
  evaluation_periods  = 3
  threshold           = var.alarm_limited_percent
  comparison_operator = "GreaterThanThreshold"
  treat_missing_data  = "notBreaching"
  alarm_actions       = var.alarm_topic_arns
  ok_actions          = var.alarm_topic_arns
  tags                = local.tags

  metric_query {
    id          = "percent"
    expression  = "IF(FILL(h,0)+FILL(l,0)+FILL(w,0) < 33, 0, 100*(FILL(l,0)+FILL(w,0))/(FILL(h,0)+FILL(l,0)+FILL(w,0)))"
    label       = "refused, percent"
    return_data = true
  }

  dynamic "metric_query" {
    for_each = { h = "Hits", l = "Limited", w = "WouldLimit" }
    content {
      id = metric_query.key
      metric {
        namespace   = local.namespace
        metric_name = metric_query.value
        period      = 300
        stat        = "Sum"
      }
    }
  }
}

locals {
  graphs = [
    { title = "Pages: counted, refused, would be refused", metrics = [for m in ["Hits", "Limited", "WouldLimit"] : [local.namespace, m]], stat = "Sum" },
    { title = "Store: errors, failed open, spending limit", metrics = [for m in ["StoreErrors", "FailedOpen", "SpendingLimit"] : [local.namespace, m]], stat = "Sum" },
    { title = "Function: calls, errors, throttled", metrics = [for m in ["Invocations", "Errors", "Throttles"] : ["AWS/Lambda", m, "FunctionName", var.name]], stat = "Sum" },
    { title = "Function: duration p50 and p99 (ms)", metrics = [for s in ["p50", "p99"] : ["AWS/Lambda", "Duration", "FunctionName", var.name, { stat = s }]], stat = "p50" },
  ]
  store_graphs = {
    dynamodb    = [{ title = "Table: write units, refused writes", metrics = [for m in ["ConsumedWriteCapacityUnits", "WriteThrottleEvents"] : ["AWS/DynamoDB", m, "TableName", "${var.name}-counters"]], stat = "Sum" }]
    elasticache = [{ title = "Valkey: engine CPU (%)", metrics = [["AWS/ElastiCache", "EngineCPUUtilization", "ReplicationGroupId", var.name]], stat = "Average" }]
    upstash     = []
    memory      = []
  }
}

resource "aws_cloudwatch_dashboard" "stile" {
  dashboard_name = var.name
  dashboard_body = jsonencode({
    widgets = concat(
      [for i, g in concat(local.graphs, local.store_graphs[var.store]) : {
        type       = "metric", width = 12, height = 6, x = 12 * (i % 2), y = 6 * floor(i / 2)
        properties = { title = g.title, metrics = g.metrics, stat = g.stat, period = 300, region = data.aws_region.current.id, view = "timeSeries" }
      }],
      [{
        type = "log", width = 24, height = 8, x = 0, y = 18
        properties = {
          title  = "Keys with the most refusals"
          region = data.aws_region.current.id
          view   = "table"
          query  = "SOURCE '${aws_cloudwatch_log_group.function.name}' | filter event in [\"limited\", \"would-limit\"] | stats count(*) as refused by key, key_type | sort refused desc | limit 20"
        }
      }],
    )
  })
}
