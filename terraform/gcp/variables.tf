# What is deployed

variable "project" {
  description = "Id of the Google Cloud project."
  type        = string
  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{4,28}[a-z0-9]$", var.project))
    error_message = "project: the project's id, not its number or display name."
  }
}

variable "region" {
  description = "Region of the function, the store and the balancer's backend, such as europe-west3."
  type        = string
  validation {
    condition     = can(regex("^[a-z]+-[a-z]+[0-9]+$", var.region))
    error_message = "region: such as europe-west3."
  }
}

variable "name" {
  description = "Name of the service and prefix of everything else. Unique within the project."
  type        = string
  default     = "stile"
  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{2,22}[a-z0-9]$", var.name))
    error_message = "name: 4 to 24 small letters, digits and hyphens, a letter first."
  }
}

variable "runtime" {
  description = "`function` (Google builds the bundle and runs it under its Functions Framework) or `container` (stile serve from an image of yours: timeouts, drain and VPC of its own)."
  type        = string
  default     = "function"
  validation {
    condition     = contains(["function", "container"], var.runtime)
    error_message = "runtime: function or container."
  }
}

variable "bundle" {
  description = "runtime = function only: path of the zip that scripts/build-function.sh has built."
  type        = string
  default     = null
  validation {
    condition     = var.runtime == "function" ? can(endswith(var.bundle, ".zip")) && endswith(coalesce(var.bundle, "-"), ".zip") : var.bundle == null
    error_message = "bundle: a .zip file with runtime = function, left out with container."
  }
}

variable "image" {
  description = "runtime = container only: the image that Containerfile has built, by digest, such as europe-docker.pkg.dev/p/r/stile@sha256:…"
  type        = string
  default     = null
  validation {
    condition     = var.runtime == "container" ? can(regex("^[a-z0-9.-]+/.+[:@].+$", var.image)) : var.image == null
    error_message = "image: registry/path with a tag or digest with runtime = container, left out with function."
  }
}

variable "origin" {
  description = "The site behind, as https://host[:port]."
  type        = string
  validation {
    condition     = can(regex("^https?://[A-Za-z0-9.-]+(:[0-9]+)?$", var.origin))
    error_message = "origin: https://host, without path or slash at the end."
  }
}

variable "origin_host" {
  description = "The Host that the site is sent: `origin`, its own name (hosted platforms answer to nothing else; the visitor's is in X-Forwarded-Host), or `visitor`, as it came."
  type        = string
  default     = "origin"
  validation {
    condition     = contains(["origin", "visitor"], var.origin_host)
    error_message = "origin_host: origin or visitor."
  }
}

variable "site_backend" {
  description = "The site as a backend of the same balancer, for mode = off: `run:NAME`, a Cloud Run service of this project and region, or the id of a backend service that you made, projects/P/global/backendServices/NAME. Null: with mode = off visitors pass through Stile, uncounted."
  type        = string
  default     = null
  validation {
    condition     = var.site_backend == null ? true : can(regex("^(run:[a-z][a-z0-9-]*|(https://www.googleapis.com/compute/v1/)?projects/[^/]+/global/backendServices/[a-z0-9-]+)$", var.site_backend))
    error_message = "site_backend: run:NAME, or projects/P/global/backendServices/NAME."
  }
}

variable "policy" {
  description = "The policy's text, as file(\"stile.yaml\"). Where it says who the client is, the module's word holds: the balancer is in front."
  type        = string
  validation {
    condition     = strcontains(var.policy, "\n") && can(yamldecode(var.policy).buckets) && length(var.policy) <= 30000
    error_message = "policy: YAML with buckets, at most 30000 bytes."
  }
}

variable "domain" {
  description = "The site's public name; Google issues its certificate once DNS points here. Null: plain HTTP by the balancer's address, for a trial (browsers send no Sec-Fetch fields over plain HTTP)."
  type        = string
  default     = null
  validation {
    condition     = var.domain == null ? true : can(regex("^[a-z0-9.-]+\\.[a-z]+$", var.domain))
    error_message = "domain: a host name."
  }
}

# What Stile does

variable "mode" {
  description = "`observe` (counts and logs, refuses nobody; the first apply), `enforce`, or `off`, the way back: with `site_backend` the balancer sends visitors to the site itself, and Stile is out of the way; without it everything passes Stile, uncounted."
  type        = string
  default     = "observe"
  validation {
    condition     = contains(["observe", "enforce", "off"], var.mode)
    error_message = "mode: observe, enforce or off."
  }
}

variable "scale" {
  description = "Multiplies every limit of the policy. 10 on the first days, then 1."
  type        = number
  default     = 10
  validation {
    condition     = var.scale > 0 && var.scale <= 1000000
    error_message = "scale: above 0, at most 1000000."
  }
}

# Where it counts

variable "store" {
  description = "`firestore` (a database of its own, nothing while idle), `valkey` or `redis` (Memorystore in your VPC, paid by the hour, runtime = container), `upstash` (an existing database) or `memory` (each instance for itself: for trials)."
  type        = string
  default     = "firestore"
  validation {
    condition     = contains(["firestore", "valkey", "redis", "upstash", "memory"], var.store)
    error_message = "store: firestore, valkey, redis, upstash or memory."
  }
  validation {
    condition     = var.runtime == "container" || !contains(["valkey", "redis"], var.store)
    error_message = "store: Memorystore needs Direct VPC egress, which a function has not: take runtime = container."
  }
}

variable "network" {
  description = "store = valkey or redis only: ids of the VPC network and of a subnetwork in the region (/26 or wider) for Direct VPC egress."
  type        = object({ network = string, subnetwork = string })
  default     = null
  validation {
    condition     = contains(["valkey", "redis"], var.store) == (var.network != null)
    error_message = "network: needed with store = valkey or redis; with another store leave it out."
  }
}

variable "memory_gb" {
  description = "store = redis only: the instance's size, in gigabytes."
  type        = number
  default     = 1
  validation {
    condition     = var.memory_gb >= 1 && var.memory_gb <= 300
    error_message = "memory_gb: 1 to 300."
  }
}

variable "upstash_host" {
  description = "store = upstash only: the database's REST host, NAME.upstash.io. Its token is the secret STILE_STORE_TOKEN."
  type        = string
  default     = null
  validation {
    condition     = var.store == "upstash" ? can(regex("^[a-z0-9.-]+$", var.upstash_host)) && contains(keys(var.secrets), "STILE_STORE_TOKEN") : var.upstash_host == null
    error_message = "upstash_host: needed with store = upstash, and with it secrets.STILE_STORE_TOKEN; with another store leave it out."
  }
}

variable "secrets" {
  description = "Environment variables that hold secrets (STILE_STORE_TOKEN, STILE_COOKIE_SECRETS, …) and the id of the Secret Manager secret of each, in this project. The values never pass through Terraform."
  type        = map(string)
  default     = {}
  validation {
    condition     = alltrue([for k, v in var.secrets : can(regex("^[A-Z][A-Z0-9_]*$", k)) && can(regex("^[A-Za-z0-9_-]+$", v))])
    error_message = "secrets: VARIABLE = \"secret-id\"."
  }
}

variable "doctor_secret" {
  description = "Id of the Secret Manager secret that holds what `stile doctor` sends. The module adds `doctor` to the policy. Null: nobody is told anything."
  type        = string
  default     = null
  validation {
    condition     = var.doctor_secret == null ? true : can(regex("^[A-Za-z0-9_-]+$", var.doctor_secret))
    error_message = "doctor_secret: a secret's id in this project."
  }
}

# The service

variable "memory_mb" {
  description = "Memory of one instance, in megabytes."
  type        = number
  default     = 256
  validation {
    condition     = var.memory_mb >= 256 && var.memory_mb <= 8192
    error_message = "memory_mb: 256 to 8192."
  }
}

variable "min_instances" {
  description = "Instances kept warm. 0 costs nothing while idle."
  type        = number
  default     = 0
  validation {
    condition     = var.min_instances >= 0 && var.min_instances <= 100
    error_message = "min_instances: 0 to 100."
  }
}

variable "max_instances" {
  description = "The most instances at once: the hard bound of the bill. Beyond it Google answers 429 and 500 itself."
  type        = number
  default     = 20
  validation {
    condition     = var.max_instances >= 1 && var.max_instances <= 1000
    error_message = "max_instances: 1 to 1000."
  }
}

variable "concurrency" {
  description = "Requests that one instance serves at once."
  type        = number
  default     = 80
  validation {
    condition     = var.concurrency >= 1 && var.concurrency <= 1000
    error_message = "concurrency: 1 to 1000."
  }
}

# Watching it

variable "log_retention_days" {
  description = "How long the hit log is kept in its bucket for stile size and report, in days. It holds addresses as log.ip of the policy has them."
  type        = number
  default     = 30
  validation {
    condition     = var.log_retention_days >= 1 && var.log_retention_days <= 3650
    error_message = "log_retention_days: 1 to 3650."
  }
}

variable "notification_channels" {
  description = "Ids of Cloud Monitoring channels that alerts go to. Empty: alerts only show in the console."
  type        = list(string)
  default     = []
  validation {
    condition     = alltrue([for c in var.notification_channels : can(regex("^projects/[^/]+/notificationChannels/[0-9]+$", c))])
    error_message = "notification_channels: projects/P/notificationChannels/N."
  }
}

variable "alert_limited_percent" {
  description = "Alert when more than this share of counted pages is (or would be) refused for 15 minutes, in percent."
  type        = number
  default     = 20
  validation {
    condition     = var.alert_limited_percent > 0 && var.alert_limited_percent < 100
    error_message = "alert_limited_percent: above 0 and below 100."
  }
}

variable "alert_requests_per_hour" {
  description = "Cost guard: alert when the service takes more requests than this in an hour."
  type        = number
  default     = 200000
  validation {
    condition     = var.alert_requests_per_hour >= 1
    error_message = "alert_requests_per_hour: 1 or more."
  }
}

variable "alert_writes_per_hour" {
  description = "Cost guard, store = firestore only: alert when Firestore takes more document writes than this in an hour."
  type        = number
  default     = 200000
  validation {
    condition     = var.alert_writes_per_hour >= 1
    error_message = "alert_writes_per_hour: 1 or more."
  }
}

variable "budget" {
  description = "Cost guard: a monthly budget for the project, announced at 50, 90 and 100 percent, in whole units of the billing account's currency. Null: none. Needs rights on the billing account."
  type        = object({ billing_account = string, units = number })
  default     = null
  validation {
    condition     = var.budget == null ? true : var.budget.units >= 1
    error_message = "budget: 1 or more units."
  }
}

variable "labels" {
  description = "Labels of everything that takes labels."
  type        = map(string)
  default     = {}
}
