locals {
  valkey_endpoint = try(google_memorystore_instance.counters[0].endpoints[0].connections[0].psc_auto_connection[0], null)

  store_url = {
    firestore = "firestore://${var.project}/${one(google_firestore_database.counters[*].name) == null ? "" : one(google_firestore_database.counters[*].name)}"
    redis     = one([for r in google_redis_instance.counters : "redis://${r.host}:${r.port}"])
    valkey    = local.valkey_endpoint == null ? null : "redis://${local.valkey_endpoint.ip_address}:${local.valkey_endpoint.port}"
    upstash   = var.upstash_host == null ? null : "upstash://${var.upstash_host}"
    memory    = "memory:"
  }[var.store]
}

# Firestore: a database of its own, so that nothing else shares its quota, its bill
# or the function's role. Names of fields are fixed by the program (docs of package
# stores/firestore).

resource "google_firestore_database" "counters" {
  count                             = var.store == "firestore" ? 1 : 0
  project                           = var.project
  name                              = "${var.name}-counters"
  location_id                       = var.region
  type                              = "FIRESTORE_NATIVE"
  point_in_time_recovery_enablement = "POINT_IN_TIME_RECOVERY_DISABLED"
  delete_protection_state           = "DELETE_PROTECTION_DISABLED"
  deletion_policy                   = "DELETE"

  depends_on = [google_project_service.needed]
}

# The expiry rises with time: an index on it would make one tablet take all writes
# (500 a second), and would cost storage.
resource "google_firestore_field" "expiry" {
  count      = var.store == "firestore" ? 1 : 0
  project    = var.project
  database   = google_firestore_database.counters[0].name
  collection = "stile"
  field      = "exp"

  ttl_config {}
  index_config {}
}

# No counter is ever searched for, so no field has an index.
resource "google_firestore_field" "counters" {
  count      = var.store == "firestore" ? 1 : 0
  project    = var.project
  database   = google_firestore_database.counters[0].name
  collection = "stile"
  field      = "*"

  index_config {}

  # Firestore changes one field's configuration at a time.
  depends_on = [google_firestore_field.expiry]
}

# The role is given on this database only.
resource "google_project_iam_member" "counts" {
  count   = var.store == "firestore" ? 1 : 0
  project = var.project
  role    = "roles/datastore.user"
  member  = google_service_account.stile.member

  condition {
    title       = "${var.name}-counters"
    description = "Only the database of Stile's counters"
    expression  = "resource.name == \"projects/${var.project}/databases/${google_firestore_database.counters[0].name}\""
  }
}

# Memorystore for Redis: one node, as losing it loses only the running windows. It
# is reached inside the VPC, in clear but with a password.

resource "google_redis_instance" "counters" {
  count              = var.store == "redis" ? 1 : 0
  project            = var.project
  region             = var.region
  name               = "${var.name}-counters"
  tier               = "BASIC"
  memory_size_gb     = var.memory_gb
  redis_version      = "REDIS_7_2"
  authorized_network = var.network.network
  connect_mode       = "DIRECT_PEERING"
  auth_enabled       = true
  # A counter that is thrown out would let its client begin anew: refuse to write
  # instead, and let store.on_error decide.
  redis_configs = { "maxmemory-policy" = "noeviction" }
  labels        = local.labels

  depends_on = [google_project_service.needed]
}

resource "google_secret_manager_secret" "redis" {
  count     = var.store == "redis" ? 1 : 0
  project   = var.project
  secret_id = "${var.name}-redis-password"
  labels    = local.labels

  replication {
    auto {}
  }

  depends_on = [google_project_service.needed]
}

resource "google_secret_manager_secret_version" "redis" {
  count       = var.store == "redis" ? 1 : 0
  secret      = google_secret_manager_secret.redis[0].id
  secret_data = google_redis_instance.counters[0].auth_string
}

# Memorystore for Valkey: the same, reached by Private Service Connect.

resource "google_network_connectivity_service_connection_policy" "counters" {
  count         = var.store == "valkey" ? 1 : 0
  project       = var.project
  location      = var.region
  name          = "${var.name}-counters"
  service_class = "gcp-memorystore"
  network       = var.network.network

  psc_config {
    subnetworks = [var.network.subnetwork]
  }

  depends_on = [google_project_service.needed]
}

resource "google_memorystore_instance" "counters" {
  count                       = var.store == "valkey" ? 1 : 0
  project                     = var.project
  location                    = var.region
  instance_id                 = "${var.name}-counters"
  mode                        = "CLUSTER_DISABLED"
  shard_count                 = 1
  replica_count               = 0
  node_type                   = "SHARED_CORE_NANO"
  engine_version              = "VALKEY_8_0"
  authorization_mode          = "AUTH_DISABLED"
  transit_encryption_mode     = "TRANSIT_ENCRYPTION_DISABLED"
  deletion_protection_enabled = false
  engine_configs              = { "maxmemory-policy" = "noeviction" }
  labels                      = local.labels

  desired_psc_auto_connections {
    network    = var.network.network
    project_id = var.project
  }

  depends_on = [google_network_connectivity_service_connection_policy.counters]
}
