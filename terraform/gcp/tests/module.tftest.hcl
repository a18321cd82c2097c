# Runs without an account and, with a program that serves the provider's schemas,
# without the provider (scripts/terraform-test.sh --help).

mock_provider "google" {
  mock_resource "google_service_account" {
    defaults = { email = "stile@p.iam.gserviceaccount.com", member = "serviceAccount:stile@p.iam.gserviceaccount.com" }
  }
  mock_resource "google_redis_instance" {
    defaults = { host = "10.0.0.3", port = 6379 }
  }
  mock_resource "google_memorystore_instance" {
    defaults = { endpoints = [{ connections = [{ psc_auto_connection = [{
      connection_type = "CONNECTION_TYPE_DISCOVERY", forwarding_rule = "", ip_address = "10.0.0.4", network = "", port = 6379
      project_id      = "", psc_connection_id = "", service_attachment = ""
    }] }] }] }
  }
}

variables {
  project = "example-project"
  region  = "europe-west3"
  origin  = "https://www.example.org"
  domain  = "www.example.com"
  bundle  = "tests/empty.zip"
  policy  = <<-YAML
    version: 1
    site: example
    buckets:
      - {name: hour, key: address, limit: 60, window: 1h}
  YAML
}

run "first_apply_observes" {
  assert {
    condition     = google_cloudfunctions2_function.stile[0].service_config[0].environment_variables.STILE_MODE == "observe" && google_cloudfunctions2_function.stile[0].service_config[0].environment_variables.STILE_SCALE == "10"
    error_message = "The first apply must refuse nobody and have wide limits."
  }
  assert {
    condition     = google_cloudfunctions2_function.stile[0].build_config[0].entry_point == "Stile" && google_cloudfunctions2_function.stile[0].build_config[0].runtime == "go126"
    error_message = "The function is what package stile registers."
  }
  assert {
    condition     = google_cloudfunctions2_function.stile[0].service_config[0].ingress_settings == "ALLOW_INTERNAL_AND_GCLB" && google_cloudfunctions2_function.stile[0].service_config[0].environment_variables.STILE_INGRESS == "load-balancer" && google_cloudfunctions2_function.stile[0].service_config[0].environment_variables.STILE_CLIENT_FROM == "platform"
    error_message = "Nobody may go round the balancer, and the client is whom it saw."
  }
  assert {
    condition     = google_cloudfunctions2_function.stile[0].service_config[0].environment_variables.STILE_STORE == "firestore://example-project/stile-counters" && google_cloudfunctions2_function.stile[0].service_config[0].environment_variables.STILE_ORIGIN == "https://www.example.org"
    error_message = "Store and origin."
  }
  assert {
    condition     = google_cloudfunctions2_function.stile[0].service_config[0].max_instance_count == 20
    error_message = "The bill has a bound."
  }
  assert {
    condition     = google_firestore_field.expiry[0].collection == "stile" && google_firestore_field.expiry[0].field == "exp" && length(google_firestore_field.expiry[0].ttl_config) == 1 && length(google_firestore_field.expiry[0].index_config) == 1 && length(google_firestore_field.expiry[0].index_config[0].indexes) == 0
    error_message = "The expiry has a TTL policy and no index."
  }
  assert {
    condition     = google_firestore_field.counters[0].field == "*" && length(google_firestore_field.counters[0].index_config[0].indexes) == 0
    error_message = "No counter has an index."
  }
  assert {
    condition     = google_project_iam_member.counts[0].role == "roles/datastore.user" && google_project_iam_member.counts[0].condition[0].expression == "resource.name == \"projects/example-project/databases/stile-counters\""
    error_message = "The role is given on the counters' database only."
  }
  assert {
    condition     = length(google_secret_manager_secret_iam_member.stile) == 0 && length(google_cloud_run_v2_service.stile) == 0 && length(google_redis_instance.counters) == 0
    error_message = "Nothing that is not needed."
  }
  assert {
    condition     = google_compute_region_network_endpoint_group.stile.network_endpoint_type == "SERVERLESS" && google_compute_region_network_endpoint_group.stile.cloud_run[0].service == "stile" && google_compute_backend_service.stile.enable_cdn == false
    error_message = "The balancer leads to the service, and its cache serves no page uncounted."
  }
  assert {
    condition     = output.url == "https://www.example.com/"
    error_message = "Outputs."
  }
  assert {
    condition     = alltrue([for p in google_monitoring_alert_policy.signal : length(p.documentation[0].content) > 20]) && alltrue([for n in ["store-errors", "fails-open", "hot-key", "spending-limit", "nothing-limited", "crawlers-old", "other-mode", "server-errors", "cost-requests", "cost-writes"] : contains(keys(google_monitoring_alert_policy.signal), n)])
    error_message = "An alert is missing, or does not say what to do."
  }
}

# What Google's API would refuse only when it is asked.
run "names_fit" {
  variables {
    project = "a-project-with-the-longest-id1"
    name    = "a-name-as-long-as-it-may"
  }
  assert {
    condition     = alltrue([for a in [google_service_account.stile.account_id, google_service_account.build[0].account_id] : can(regex("^[a-z]([-a-z0-9]{4,28}[a-z0-9])$", a))])
    error_message = "An account id has 6 to 30 characters."
  }
  assert {
    condition     = alltrue([for b in [google_storage_bucket.source[0].name, google_storage_bucket.hits.name] : length(b) <= 63])
    error_message = "A bucket's name has at most 63 characters."
  }
}

run "shortest_names_fit" {
  variables {
    name = "site"
  }
  assert {
    condition     = can(regex("^[a-z]([-a-z0-9]{4,28}[a-z0-9])$", google_service_account.stile.account_id)) && can(regex("^[a-z][a-z0-9-]{2,61}[a-z0-9]$", google_firestore_database.counters[0].name))
    error_message = "An account id has 6 to 30 characters, a database id 4 to 63."
  }
}

run "enforcement_is_two_variables" {
  variables {
    mode  = "enforce"
    scale = 1
  }
  assert {
    condition     = google_cloudfunctions2_function.stile[0].service_config[0].environment_variables.STILE_MODE == "enforce" && google_cloudfunctions2_function.stile[0].service_config[0].environment_variables.STILE_SCALE == "1"
    error_message = "Enforcement is two variables."
  }
}

run "a_lift_is_seen_while_it_enforces" {
  variables {
    mode = "enforce"
  }
  assert {
    condition     = contains(keys(google_monitoring_alert_policy.signal), "lifted") && strcontains(google_logging_metric.signal["other-mode"].filter, "jsonPayload.mode!=\"enforce\"")
    error_message = "A kill switch that was forgotten must be seen."
  }
}

run "ready_for_the_way_back" {
  variables {
    site_backend = "run:my-site"
  }
  assert {
    condition     = google_compute_url_map.site.default_service == google_compute_backend_service.stile.id && google_compute_url_map.site.default_service != google_compute_backend_service.site[0].id
    error_message = "Pages go through Stile."
  }
  assert {
    condition     = google_compute_region_network_endpoint_group.site[0].cloud_run[0].service == "my-site" && google_compute_backend_service.site[0].enable_cdn == false
    error_message = "The site stands ready."
  }
}

run "way_back_takes_stile_out" {
  variables {
    mode         = "off"
    site_backend = "run:my-site"
  }
  assert {
    condition     = google_compute_url_map.site.default_service == google_compute_backend_service.site[0].id
    error_message = "mode = off must not depend on the function's health."
  }
}

run "way_back_to_a_backend_of_yours" {
  variables {
    mode         = "off"
    site_backend = "projects/example-project/global/backendServices/my-site"
    origin_host  = "visitor"
  }
  assert {
    condition     = google_compute_url_map.site.default_service == "projects/example-project/global/backendServices/my-site" && length(google_compute_backend_service.site) == 0
    error_message = "mode = off sends visitors to the backend that was named."
  }
  assert {
    condition     = google_cloudfunctions2_function.stile[0].service_config[0].environment_variables.STILE_ORIGIN_HOST == "visitor"
    error_message = "The site is sent the Host that was asked for."
  }
}

run "way_back_without_a_backend" {
  variables {
    mode = "off"
  }
  assert {
    condition     = google_compute_url_map.site.default_service == google_compute_backend_service.stile.id && google_cloudfunctions2_function.stile[0].service_config[0].environment_variables.STILE_MODE == "off"
    error_message = "Everything passes Stile, uncounted."
  }
}

run "doctor_may_ask" {
  variables {
    doctor_secret = "stile-doctor"
  }
  assert {
    condition     = endswith(google_cloudfunctions2_function.stile[0].service_config[0].environment_variables.STILE_POLICY, "\ndoctor: {secrets: env:STILE_DOCTOR_SECRET}\n")
    error_message = "The policy knows the secret by its variable."
  }
  assert {
    condition     = one([for s in google_cloudfunctions2_function.stile[0].service_config[0].secret_environment_variables : s.secret if s.key == "STILE_DOCTOR_SECRET"]) == "stile-doctor" && google_secret_manager_secret_iam_member.stile["STILE_DOCTOR_SECRET"].secret_id == "stile-doctor"
    error_message = "The secret is a reference that the service may read."
  }
}

run "container_with_valkey" {
  variables {
    runtime = "container"
    bundle  = null
    image   = "europe-docker.pkg.dev/example/stile/stile@sha256:0000000000000000000000000000000000000000000000000000000000000000"
    store   = "valkey"
    network = { network = "projects/p/global/networks/n", subnetwork = "projects/p/regions/europe-west3/subnetworks/s" }
  }
  assert {
    condition     = { for e in google_cloud_run_v2_service.stile[0].template[0].containers[0].env : e.name => e.value }.STILE_STORE == "redis://10.0.0.4:6379"
    error_message = "Valkey by its endpoint."
  }
  assert {
    condition     = { for e in google_cloud_run_v2_service.stile[0].template[0].containers[0].env : e.name => e.value }.STILE_CLIENT_TRUSTED_HOPS == "2" && google_cloud_run_v2_service.stile[0].ingress == "INGRESS_TRAFFIC_INTERNAL_LOAD_BALANCER"
    error_message = "Second from the right, and no way round the balancer."
  }
  assert {
    condition     = google_cloud_run_v2_service.stile[0].template[0].vpc_access[0].egress == "PRIVATE_RANGES_ONLY" && google_cloud_run_v2_service.stile[0].template[0].vpc_access[0].network_interfaces[0].network == "projects/p/global/networks/n"
    error_message = "Direct VPC egress for private ranges."
  }
  assert {
    condition     = google_memorystore_instance.counters[0].mode == "CLUSTER_DISABLED" && google_network_connectivity_service_connection_policy.counters[0].service_class == "gcp-memorystore" && length(google_firestore_database.counters) == 0 && length(google_project_iam_member.counts) == 0
    error_message = "One node, and no role for a store that is not used."
  }
}

run "container_with_redis_has_its_password_by_secret" {
  variables {
    runtime = "container"
    bundle  = null
    image   = "europe-docker.pkg.dev/example/stile/stile:1"
    store   = "redis"
    network = { network = "projects/p/global/networks/n", subnetwork = "projects/p/regions/europe-west3/subnetworks/s" }
  }
  assert {
    condition     = one([for e in google_cloud_run_v2_service.stile[0].template[0].containers[0].env : e.value_source[0].secret_key_ref[0].secret if e.name == "STILE_STORE_PASSWORD"]) == "stile-redis-password" && google_redis_instance.counters[0].auth_enabled
    error_message = "The password is a reference."
  }
  assert {
    condition     = google_secret_manager_secret_iam_member.stile["STILE_STORE_PASSWORD"].role == "roles/secretmanager.secretAccessor"
    error_message = "It may read it."
  }
}

run "upstash_by_secret" {
  variables {
    store        = "upstash"
    upstash_host = "name.upstash.io"
    secrets      = { STILE_STORE_TOKEN = "upstash-token" }
  }
  assert {
    condition     = google_cloudfunctions2_function.stile[0].service_config[0].environment_variables.STILE_STORE == "upstash://name.upstash.io" && google_cloudfunctions2_function.stile[0].service_config[0].secret_environment_variables[0].secret == "upstash-token" && !can(google_cloudfunctions2_function.stile[0].service_config[0].environment_variables.STILE_STORE_TOKEN)
    error_message = "The token is a reference, never a value."
  }
}

run "trial_without_a_domain" {
  variables {
    domain = null
  }
  assert {
    condition     = length(google_compute_managed_ssl_certificate.site) == 0 && google_compute_target_http_proxy.site.url_map == google_compute_url_map.site.id
    error_message = "Plain HTTP by address."
  }
}

run "bad_values_fail_early" {
  command = plan
  variables {
    project               = "12345"
    region                = "europe"
    name                  = "Stile"
    origin                = "www.example.org"
    mode                  = "on"
    site_backend          = "my-site"
    origin_host           = "mine"
    doctor_secret         = "projects/p/secrets/s"
    scale                 = 0
    policy                = "stile.yaml"
    domain                = "https://www.example.com"
    bundle                = "dist/function"
    max_instances         = 0
    memory_mb             = 64
    alert_limited_percent = 100
    notification_channels = ["ops@example.org"]
    secrets               = { token = "x" }
  }
  expect_failures = [
    var.project, var.region, var.name, var.origin, var.mode, var.scale, var.policy, var.domain, var.bundle, var.max_instances,
    var.memory_mb, var.alert_limited_percent, var.notification_channels, var.secrets, var.site_backend, var.origin_host, var.doctor_secret,
  ]
}

run "memorystore_needs_a_container" {
  command = plan
  variables {
    store   = "valkey"
    network = { network = "n", subnetwork = "s" }
  }
  expect_failures = [var.store]
}

run "a_store_needs_its_own_part" {
  command = plan
  variables {
    runtime = "container"
    image   = "registry.example/stile:1"
    bundle  = null
    store   = "redis"
  }
  expect_failures = [var.network]
}
