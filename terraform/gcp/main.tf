locals {
  function  = var.runtime == "function"
  container = var.runtime == "container"
  labels    = merge({ service = var.name }, var.labels)

  # Behind an external Application Load Balancer the client is the second entry
  # from the right of X-Forwarded-For. How many entries there are, the client
  # chooses, so it is never asked.
  environment = merge(
    {
      STILE_ORIGIN         = var.origin
      STILE_ORIGIN_HOST    = var.origin_host
      STILE_STORE          = local.store_url
      STILE_SCALE          = tostring(var.scale)
      GOOGLE_CLOUD_PROJECT = var.project
    },
    local.function ? {
      STILE_MODE        = var.mode
      STILE_POLICY      = local.policy
      STILE_CLIENT_FROM = "platform"
      STILE_INGRESS     = "load-balancer"
      } : {
      STILE_MODE                = var.mode
      STILE_POLICY              = "/etc/stile/stile.yaml"
      STILE_LISTEN              = "0.0.0.0:8080"
      STILE_CLIENT_FROM         = "xff"
      STILE_CLIENT_TRUSTED_HOPS = "2"
    },
  )

  # The question of stile doctor needs a line in the policy.
  policy = join("", [
    endswith(var.policy, "\n") ? var.policy : "${var.policy}\n",
    var.doctor_secret == null || can(yamldecode(var.policy).doctor) ? "" : "doctor: {secrets: env:STILE_DOCTOR_SECRET}\n",
  ])

  # A store's own password beside those of the operator.
  secrets = merge(
    { for variable, id in var.secrets : variable => { id = id, version = "latest" } },
    var.doctor_secret == null ? {} : { STILE_DOCTOR_SECRET = { id = var.doctor_secret, version = "latest" } },
    var.store == "redis" ? { STILE_STORE_PASSWORD = { id = google_secret_manager_secret.redis[0].secret_id, version = "latest" } } : {},
  )

  services = concat(
    ["run.googleapis.com", "logging.googleapis.com", "monitoring.googleapis.com", "compute.googleapis.com", "secretmanager.googleapis.com"],
    local.function ? ["cloudfunctions.googleapis.com", "cloudbuild.googleapis.com", "artifactregistry.googleapis.com"] : [],
    { firestore = ["firestore.googleapis.com"], redis = ["redis.googleapis.com"], valkey = ["memorystore.googleapis.com", "networkconnectivity.googleapis.com"], upstash = [], memory = [] }[var.store],
  )
}

resource "google_project_service" "needed" {
  for_each           = toset(local.services)
  project            = var.project
  service            = each.value
  disable_on_destroy = false
}

# What the function may do, and nothing else: count in its database and read its
# secrets. Writing to the log needs no role.
resource "google_service_account" "stile" {
  project      = var.project
  account_id   = "${var.name}-run" # 6 to 30 characters
  display_name = "Stile: counts navigations"
}

resource "google_secret_manager_secret_iam_member" "stile" {
  for_each  = local.secrets
  project   = var.project
  secret_id = each.value.id
  role      = "roles/secretmanager.secretAccessor"
  member    = google_service_account.stile.member
}

# runtime = function

resource "google_storage_bucket" "source" {
  count                       = local.function ? 1 : 0
  project                     = var.project
  name                        = "${var.project}-${var.name}-source"
  location                    = var.region
  uniform_bucket_level_access = true
  public_access_prevention    = "enforced"
  force_destroy               = true
  labels                      = local.labels
}

resource "google_storage_bucket_object" "source" {
  count  = local.function ? 1 : 0
  bucket = google_storage_bucket.source[0].name
  name   = "function-${filesha256(var.bundle)}.zip"
  source = var.bundle
}

resource "google_service_account" "build" {
  count        = local.function ? 1 : 0
  project      = var.project
  account_id   = "${var.name}-build"
  display_name = "Builds the function ${var.name}"
}

resource "google_project_iam_member" "build" {
  count   = local.function ? 1 : 0
  project = var.project
  role    = "roles/cloudbuild.builds.builder"
  member  = google_service_account.build[0].member
}

resource "google_cloudfunctions2_function" "stile" {
  count       = local.function ? 1 : 0
  project     = var.project
  location    = var.region
  name        = var.name
  description = "Limits page navigations in front of ${var.origin}"
  labels      = local.labels

  build_config {
    runtime         = "go126"
    entry_point     = "Stile"
    service_account = google_service_account.build[0].id

    # Without symbols, and without gRPC's trace pages, whose templates make the
    # linker keep every method of every type: two thirds of the size.
    environment_variables = {
      GOOGLE_GOLDFLAGS = "-s -w"
      GOFLAGS          = "-tags=grpcnotrace"
    }

    source {
      storage_source {
        bucket = google_storage_bucket.source[0].name
        object = google_storage_bucket_object.source[0].name
      }
    }
  }

  service_config {
    service_account_email            = google_service_account.stile.email
    ingress_settings                 = "ALLOW_INTERNAL_AND_GCLB"
    available_memory                 = "${var.memory_mb}M"
    available_cpu                    = "1"
    timeout_seconds                  = 60
    min_instance_count               = var.min_instances
    max_instance_count               = var.max_instances
    max_instance_request_concurrency = var.concurrency
    all_traffic_on_latest_revision   = true
    environment_variables            = local.environment

    dynamic "secret_environment_variables" {
      for_each = local.secrets
      content {
        key        = secret_environment_variables.key
        project_id = var.project
        secret     = secret_environment_variables.value.id
        version    = secret_environment_variables.value.version
      }
    }
  }

  depends_on = [google_project_service.needed, google_project_iam_member.build, google_secret_manager_secret_iam_member.stile]
}

# runtime = container

resource "google_secret_manager_secret" "policy" {
  count     = local.container ? 1 : 0
  project   = var.project
  secret_id = "${var.name}-policy"
  labels    = local.labels

  replication {
    auto {}
  }

  depends_on = [google_project_service.needed]
}

resource "google_secret_manager_secret_version" "policy" {
  count       = local.container ? 1 : 0
  secret      = google_secret_manager_secret.policy[0].id
  secret_data = local.policy
}

resource "google_secret_manager_secret_iam_member" "policy" {
  count     = local.container ? 1 : 0
  project   = var.project
  secret_id = google_secret_manager_secret.policy[0].secret_id
  role      = "roles/secretmanager.secretAccessor"
  member    = google_service_account.stile.member
}

resource "google_cloud_run_v2_service" "stile" {
  count               = local.container ? 1 : 0
  project             = var.project
  location            = var.region
  name                = var.name
  description         = "Limits page navigations in front of ${var.origin}"
  labels              = local.labels
  ingress             = "INGRESS_TRAFFIC_INTERNAL_LOAD_BALANCER"
  deletion_protection = false

  template {
    service_account                  = google_service_account.stile.email
    timeout                          = "60s"
    max_instance_request_concurrency = var.concurrency

    scaling {
      min_instance_count = var.min_instances
      max_instance_count = var.max_instances
    }

    containers {
      image = var.image
      args  = ["serve"]

      ports {
        container_port = 8080
      }

      resources {
        limits            = { cpu = "1", memory = "${var.memory_mb}Mi" }
        cpu_idle          = true
        startup_cpu_boost = true
      }

      startup_probe {
        period_seconds    = 1
        failure_threshold = 20
        tcp_socket {
          port = 8080
        }
      }

      dynamic "env" {
        for_each = local.environment
        content {
          name  = env.key
          value = env.value
        }
      }

      dynamic "env" {
        for_each = local.secrets
        content {
          name = env.key
          value_source {
            secret_key_ref {
              secret  = env.value.id
              version = env.value.version
            }
          }
        }
      }

      volume_mounts {
        name       = "policy"
        mount_path = "/etc/stile"
      }
    }

    volumes {
      name = "policy"
      secret {
        secret = google_secret_manager_secret.policy[0].secret_id
        items {
          path    = "stile.yaml"
          version = google_secret_manager_secret_version.policy[0].version
        }
      }
    }

    dynamic "vpc_access" {
      for_each = var.network == null ? [] : [var.network]
      content {
        # Only what is private goes through the VPC; the site is reached directly.
        egress = "PRIVATE_RANGES_ONLY"
        network_interfaces {
          network    = vpc_access.value.network
          subnetwork = vpc_access.value.subnetwork
        }
      }
    }
  }

  depends_on = [google_project_service.needed, google_secret_manager_secret_iam_member.policy, google_secret_manager_secret_iam_member.stile]
}

# Visitors are not Google accounts: everybody may call it, but only by the
# balancer, to which the ingress is closed.
resource "google_cloud_run_v2_service_iam_member" "everybody" {
  project  = var.project
  location = var.region
  name     = local.service
  role     = "roles/run.invoker"
  member   = "allUsers"
}

locals {
  # A function's service has the function's name.
  service = local.function ? google_cloudfunctions2_function.stile[0].name : google_cloud_run_v2_service.stile[0].name
}
