# What is deployed

variable "name" {
  description = "Name of the function and prefix of everything else. Unique within the account and region."
  type        = string
  default     = "stile"
  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{1,30}[a-z0-9]$", var.name))
    error_message = "name: 3 to 32 small letters, digits and hyphens, a letter first."
  }
}

variable "bundle" {
  description = "Path of the zip that scripts/build-lambda.sh has built (arm64). It holds the program."
  type        = string
  validation {
    condition     = endswith(var.bundle, ".zip")
    error_message = "bundle: a .zip file, as built by scripts/build-lambda.sh."
  }
}

variable "policy" {
  description = "The policy: its text, as file(\"stile.yaml\"), or the path of a policy file inside the bundle. Lambda holds 4 KB of environment in all; comment lines are left out, and a longer policy goes into the bundle."
  type        = string
  validation {
    condition     = strcontains(var.policy, "\n") ? length(join("\n", [for line in split("\n", var.policy) : line if !can(regex("^\\s*(#|$)", line))])) <= 3000 && can(yamldecode(var.policy).buckets) : can(regex("^[A-Za-z0-9._-][A-Za-z0-9._/-]*\\.ya?ml$", var.policy))
    error_message = "policy: YAML with buckets, at most 3000 bytes without comment lines, or a relative path of a .yaml file inside the bundle."
  }
}

variable "entry" {
  description = "What stands before the site: `rest-api` (API Gateway REST API that asks Stile as its authorizer) or `cloudfront` (CloudFront, with Stile as the origin of pages that passes them on)."
  type        = string
  default     = "rest-api"
  validation {
    condition     = contains(["rest-api", "cloudfront"], var.entry)
    error_message = "entry: rest-api or cloudfront."
  }
}

variable "origin" {
  description = "The site behind, as https://host, without path or port."
  type        = string
  validation {
    condition     = can(regex("^https://[A-Za-z0-9.-]+$", var.origin))
    error_message = "origin: https://host, without path, port or slash at the end."
  }
}

variable "direct_paths" {
  description = "entry = cloudfront only: path patterns that go to the site without Stile and may be cached: assets, and what takes POST. Pages do not belong here."
  type        = list(string)
  default     = ["/_next/static/*", "/_next/image*", "/assets/*", "/static/*", "/images/*", "/fonts/*", "/api/*"]
  validation {
    condition     = length(var.direct_paths) <= 24 && alltrue([for p in var.direct_paths : startswith(p, "/") && p != "/*"])
    error_message = "direct_paths: at most 24 patterns that begin with a slash; /* would pass every page by Stile."
  }
}

variable "domain" {
  description = "The site's public name, and the ARN of its certificate (in this region for rest-api, in us-east-1 for cloudfront). Null: the service's own address, enough for a trial."
  type        = object({ name = string, certificate_arn = string })
  default     = null
  validation {
    condition     = var.domain == null ? true : can(regex("^[a-z0-9.-]+\\.[a-z]+$", var.domain.name)) && startswith(var.domain.certificate_arn, "arn:")
    error_message = "domain: a host name and the ARN of a certificate."
  }
}

# What Stile does

variable "mode" {
  description = "`observe` (counts and logs, refuses nobody; the first apply), `enforce`, or `off`: the way back, which takes Stile out of the requests' way."
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

variable "contact" {
  description = "Printed on the refusal of entry = rest-api, which API Gateway writes: mailto: or https:."
  type        = string
  validation {
    condition     = can(regex("^(mailto:|https://)[A-Za-z0-9@._/+-]+$", var.contact))
    error_message = "contact: mailto:… or https://…, of plain characters (API Gateway reads a dollar sign as a variable)."
  }
}

# Where it counts

variable "store" {
  description = "`dynamodb` (a table on demand, nothing while idle), `elasticache` (a Valkey node in your VPC, paid by the hour), `upstash` (an existing database) or `memory` (each instance for itself: for trials)."
  type        = string
  default     = "dynamodb"
  validation {
    condition     = contains(["dynamodb", "elasticache", "upstash", "memory"], var.store)
    error_message = "store: dynamodb, elasticache, upstash or memory."
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

variable "vpc" {
  description = "store = elasticache only: the VPC and two or more private subnets. With entry = cloudfront, or for fresh crawler lists, the subnets need a NAT gateway."
  type        = object({ id = string, subnet_ids = list(string) })
  default     = null
  validation {
    condition     = var.store == "elasticache" ? (var.vpc == null ? false : length(var.vpc.subnet_ids) >= 2) : var.vpc == null
    error_message = "vpc: needed with store = elasticache, with two or more subnets; with another store leave it out."
  }
}

variable "cache_node_type" {
  description = "store = elasticache only: the node's type."
  type        = string
  default     = "cache.t4g.micro"
  validation {
    condition     = startswith(var.cache_node_type, "cache.")
    error_message = "cache_node_type: such as cache.t4g.micro."
  }
}

variable "max_writes_per_second" {
  description = "store = dynamodb only: the table's ceiling, in write units per second. Beyond it DynamoDB refuses and store.on_error of the policy decides, so a flood of new addresses has a known price. 0 = no ceiling."
  type        = number
  default     = 0
  validation {
    condition     = var.max_writes_per_second >= 0 && floor(var.max_writes_per_second) == var.max_writes_per_second
    error_message = "max_writes_per_second: a whole number, 0 or more."
  }
}

variable "secrets" {
  description = "Environment variables that hold secrets (STILE_STORE_TOKEN, STILE_COOKIE_SECRETS, …) and the SSM parameter (SecureString) of each. `ssm:/path`: the function reads it when an instance starts, and Terraform never sees it. `/path`: Terraform reads it at apply, and it is in the state and in the function's configuration: for a function in a VPC without a way to SSM."
  type        = map(string)
  default     = {}
  validation {
    condition     = alltrue([for k, v in var.secrets : can(regex("^[A-Z][A-Z0-9_]*$", k)) && can(regex("^(/[A-Za-z0-9._/-]+|ssm:/[A-Za-z0-9._/-]+(:[A-Za-z0-9._-]+)?)$", v))])
    error_message = "secrets: VARIABLE = \"ssm:/path/of/the/parameter\", or \"/path\"."
  }
}

variable "secrets_kms_key_arn" {
  description = "The key of your own with which the `ssm:` parameters are encrypted. Null: the account's key for parameters (alias/aws/ssm), which needs no right."
  type        = string
  default     = null
  validation {
    condition     = var.secrets_kms_key_arn == null ? true : can(regex("^arn:[a-z-]+:kms:[^*]+:key/[A-Za-z0-9-]+$", var.secrets_kms_key_arn))
    error_message = "secrets_kms_key_arn: the ARN of one key, not of an alias."
  }
}

variable "doctor_secret" {
  description = "entry = cloudfront only: the SSM parameter, as in `secrets`, that holds what `stile doctor` sends. The module adds `doctor` to a policy that is given as text. An authorizer has no answer in which to tell anything, so rest-api has none."
  type        = string
  default     = null
  validation {
    condition     = var.doctor_secret == null ? true : var.entry == "cloudfront" && can(regex("^(ssm:)?/[A-Za-z0-9._/-]+(:[A-Za-z0-9._-]+)?$", var.doctor_secret))
    error_message = "doctor_secret: \"ssm:/path/of/the/parameter\", with entry = cloudfront only."
  }
}

variable "visitor_cookie" {
  description = "entry = rest-api only: hands the policy's visitor cookie (identify.cookie) out: on refusals by API Gateway, on pages by the site, which copies X-Stile-Set-Cookie into its Set-Cookie. With cloudfront Stile sets it itself."
  type        = bool
  default     = false
  validation {
    condition     = !var.visitor_cookie || var.entry == "rest-api"
    error_message = "visitor_cookie: with entry = rest-api only."
  }
}

# The function

variable "memory_mb" {
  description = "The function's memory, in megabytes. CPU grows with it."
  type        = number
  default     = 256
  validation {
    condition     = var.memory_mb >= 128 && var.memory_mb <= 10240
    error_message = "memory_mb: 128 to 10240."
  }
}

variable "reserved_concurrency" {
  description = "The most instances at once; -1 = the account's limit. Requests beyond it are answered 503, so it bounds cost only together with an alarm."
  type        = number
  default     = -1
  validation {
    condition     = var.reserved_concurrency == -1 || var.reserved_concurrency >= 1
    error_message = "reserved_concurrency: -1, or 1 or more; 0 would refuse every visitor."
  }
}

variable "requests_per_second" {
  description = "entry = rest-api only: the stage's ceiling, in requests per second, assets included. Beyond it API Gateway answers 429 itself."
  type        = number
  default     = 500
  validation {
    condition     = var.requests_per_second >= 1
    error_message = "requests_per_second: 1 or more."
  }
}

# Watching it

variable "log_retention_days" {
  description = "How long the hit log is kept, in days. It holds addresses as log.ip of the policy has them."
  type        = number
  default     = 30
  validation {
    condition     = contains([1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400], var.log_retention_days)
    error_message = "log_retention_days: 1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365 or 400, as CloudWatch has it."
  }
}

variable "alarm_topic_arns" {
  description = "SNS topics that alarms go to. Empty: alarms only show in the console."
  type        = list(string)
  default     = []
  validation {
    condition     = alltrue([for a in var.alarm_topic_arns : can(regex("^arn:[a-z-]+:sns:", a))])
    error_message = "alarm_topic_arns: ARNs of SNS topics."
  }
}

variable "alarm_limited_percent" {
  description = "Alarm when more than this share of counted pages is (or would be) refused, in percent over 15 minutes with at least 100 pages."
  type        = number
  default     = 20
  validation {
    condition     = var.alarm_limited_percent > 0 && var.alarm_limited_percent < 100
    error_message = "alarm_limited_percent: above 0 and below 100."
  }
}

variable "alarm_invocations_per_hour" {
  description = "Cost guard: alarm when the function is called more often than this in an hour."
  type        = number
  default     = 200000
  validation {
    condition     = var.alarm_invocations_per_hour >= 1
    error_message = "alarm_invocations_per_hour: 1 or more."
  }
}

variable "alarm_writes_per_hour" {
  description = "Cost guard, store = dynamodb only: alarm when the table takes more write units than this in an hour."
  type        = number
  default     = 200000
  validation {
    condition     = var.alarm_writes_per_hour >= 1
    error_message = "alarm_writes_per_hour: 1 or more."
  }
}

variable "tags" {
  description = "Tags of everything that takes tags."
  type        = map(string)
  default     = {}
}
