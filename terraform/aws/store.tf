locals {
  elasticache = var.store == "elasticache"

  store_url = {
    dynamodb    = one([for t in aws_dynamodb_table.counters : "dynamodb://${t.name}?region=${data.aws_region.current.id}"])
    elasticache = one([for c in aws_elasticache_replication_group.counters : "rediss://${c.primary_endpoint_address}:6379"])
    upstash     = var.upstash_host == null ? null : "upstash://${var.upstash_host}"
    memory      = "memory:"
  }[var.store]
}

# Names of attributes are fixed by the program (docs of package stores/dynamodb).
resource "aws_dynamodb_table" "counters" {
  count        = var.store == "dynamodb" ? 1 : 0
  name         = "${var.name}-counters"
  billing_mode = "PAY_PER_REQUEST"
  hash_key     = "pk"
  tags         = local.tags

  attribute {
    name = "pk"
    type = "S"
  }

  ttl {
    attribute_name = "ttl"
    enabled        = true
  }

  dynamic "on_demand_throughput" {
    for_each = var.max_writes_per_second > 0 ? [1] : []
    content {
      # Reads happen once per key and epoch, so they never need more than writes.
      max_write_request_units = var.max_writes_per_second
      max_read_request_units  = var.max_writes_per_second
    }
  }
}

# One node without a replica: losing it loses the counts of the running windows,
# and store.on_error says what happens meanwhile.
resource "aws_elasticache_replication_group" "counters" {
  count                      = local.elasticache ? 1 : 0
  replication_group_id       = var.name
  description                = "Counters of ${var.name}"
  engine                     = "valkey"
  engine_version             = "8.0"
  parameter_group_name       = "default.valkey8"
  node_type                  = var.cache_node_type
  num_cache_clusters         = 1
  automatic_failover_enabled = false
  port                       = 6379
  subnet_group_name          = aws_elasticache_subnet_group.counters[0].name
  security_group_ids         = [aws_security_group.cache[0].id]
  transit_encryption_enabled = true
  at_rest_encryption_enabled = true
  tags                       = local.tags
}

resource "aws_elasticache_subnet_group" "counters" {
  count      = local.elasticache ? 1 : 0
  name       = var.name
  subnet_ids = var.vpc.subnet_ids
  tags       = local.tags
}

resource "aws_security_group" "function" {
  count       = local.elasticache ? 1 : 0
  name        = "${var.name}-function"
  description = "The function: everything outwards, nothing inwards."
  vpc_id      = var.vpc.id
  tags        = local.tags
}

resource "aws_vpc_security_group_egress_rule" "function" {
  count             = local.elasticache ? 1 : 0
  security_group_id = aws_security_group.function[0].id
  description       = "The store, the site behind, crawler lists."
  ip_protocol       = "-1"
  cidr_ipv4         = "0.0.0.0/0"
}

resource "aws_security_group" "cache" {
  count       = local.elasticache ? 1 : 0
  name        = "${var.name}-cache"
  description = "The counters: from the function only."
  vpc_id      = var.vpc.id
  tags        = local.tags
}

resource "aws_vpc_security_group_ingress_rule" "cache" {
  count                        = local.elasticache ? 1 : 0
  security_group_id            = aws_security_group.cache[0].id
  description                  = "Only the function counts."
  ip_protocol                  = "tcp"
  from_port                    = 6379
  to_port                      = 6379
  referenced_security_group_id = aws_security_group.function[0].id
}
