# A site behind Google's balancer and Stile as a function, counted in Firestore.
#
#   scripts/build-function.sh
#   terraform -chdir=terraform/gcp/examples/function-firestore init
#   terraform -chdir=terraform/gcp/examples/function-firestore apply -var project=PROJECT -var origin=https://www.example.org

terraform {
  required_version = ">= 1.9.0"

  required_providers {
    google = {
      source  = "hashicorp/google"
      version = ">= 6.20.0, < 8.0.0"
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

variable "doctor_secret" {
  description = "Id of the secret that holds what stile doctor sends; null for none."
  type        = string
  default     = null
}

variable "site_backend" {
  description = "The site for mode = off: run:NAME or the id of a backend service; null for none."
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

variable "bundle" {
  description = "What scripts/build-function.sh has built."
  type        = string
  default     = "../../../../dist/function.zip"
}

provider "google" {
  project = var.project
  region  = var.region
}

module "stile" {
  source        = "../.."
  project       = var.project
  region        = var.region
  origin        = var.origin
  domain        = var.domain
  bundle        = var.bundle
  policy        = file("${path.module}/stile.yaml")
  mode          = var.mode
  doctor_secret = var.doctor_secret
  site_backend  = var.site_backend
  scale         = var.scale
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
