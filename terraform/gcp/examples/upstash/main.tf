# A site behind Google's balancer and Stile as a function, counted in an Upstash
# database that Upstash's own provider creates (UPSTASH_EMAIL and UPSTASH_API_KEY).
#
#   scripts/build-function.sh
#   terraform -chdir=terraform/gcp/examples/upstash init
#   terraform -chdir=terraform/gcp/examples/upstash apply -var project=PROJECT -var origin=https://www.example.org

terraform {
  required_version = ">= 1.9.0"

  required_providers {
    google = {
      source  = "hashicorp/google"
      version = ">= 6.20.0, < 8.0.0"
    }
    upstash = {
      source  = "upstash/upstash"
      version = ">= 1.5.0, < 3.0.0"
    }
  }
}

variable "project" {
  description = "Id of the Google Cloud project."
  type        = string
}

variable "region" {
  description = "Region, such as europe-west3."
  type        = string
  default     = "europe-west3"
}

variable "origin" {
  description = "The site behind, as https://host."
  type        = string
}

variable "domain" {
  description = "The site's public name; null for a trial over plain HTTP."
  type        = string
  default     = null
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

variable "upstash_region" {
  description = "Upstash's region nearest to the function's."
  type        = string
  default     = "eu-central-1"
}

variable "bundle" {
  description = "What scripts/build-function.sh has built."
  type        = string
  default     = "../../../../dist/function.zip"
}

provider "google" {
  project = var.project
  region  = var.region
}

provider "upstash" {}

resource "upstash_redis_database" "counters" {
  database_name  = "stile-counters"
  region         = "global"
  primary_region = var.upstash_region
  tls            = true
  # A counter that is thrown out would let its client begin anew.
  eviction = false
}

# The token passes through the state here; the module itself only takes secrets
# that exist.
resource "google_secret_manager_secret" "token" {
  secret_id = "stile-upstash-token"
  replication {
    auto {}
  }
}

resource "google_secret_manager_secret_version" "token" {
  secret      = google_secret_manager_secret.token.id
  secret_data = upstash_redis_database.counters.rest_token
}

module "stile" {
  source  = "../.."
  project = var.project
  region  = var.region
  origin  = var.origin
  domain  = var.domain
  bundle  = var.bundle
  policy  = file("${path.module}/stile.yaml")
  mode    = var.mode
  scale   = var.scale

  store        = "upstash"
  upstash_host = upstash_redis_database.counters.endpoint
  secrets      = { STILE_STORE_TOKEN = google_secret_manager_secret.token.secret_id }

  depends_on = [google_secret_manager_secret_version.token]
}

output "url" {
  description = "Where the limited site answers."
  value       = module.stile.url
}

output "address" {
  description = "What DNS has to point to."
  value       = module.stile.address
}

output "store_url" {
  description = "The store, for stile key and stile explain."
  value       = module.stile.store_url
}

output "hit_log_bucket" {
  description = "The hit log."
  value       = module.stile.hit_log_bucket
}
