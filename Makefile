# The commands that people look for. Everything works without make, too: each
# target is one line that can be typed.
.DEFAULT_GOAL := help
.PHONY: help test lint bench fuzz load soak clients licences sbom vulncheck secrets reproducible ci

help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "  make %-13s %s\n", $$1, $$2}' Makefile
test: ## everything that needs nothing but Go; what it skips, it names
	go test ./...
lint: ## formatting, go vet, staticcheck, shellcheck
	test -z "$$(gofmt -l $$(git ls-files '*.go'))" && go vet ./... && staticcheck ./... && git ls-files '*.sh' .ci/run | xargs shellcheck
bench: ## what Stile adds to a page, beside the site alone
	scripts/bench.sh
fuzz: ## every fuzz target for a minute (15 min)
	scripts/fuzz.sh 60s
load: ## requests a second, p99 and memory beside nginx and Caddy (1.5 min)
	scripts/load.sh
soak: ## mixed load over a Redis that is killed again and again (30 min)
	scripts/soak.sh 30m
clients: ## ten million distinct clients (up to an hour)
	scripts/clients.sh 10000000
licences: ## the licences of all dependencies, against docs/licences.md
	scripts/licences.sh
sbom: ## the bill of materials of the command, in dist/
	scripts/sbom.sh
vulncheck: ## known vulnerabilities that this code reaches
	scripts/vulncheck.sh
secrets: ## secrets in any commit
	scripts/secrets.sh
reproducible: ## the Lambda's and the function's zip twice, in different places
	scripts/reproducible.sh
ci: ## everything that must hold before a change lands
	bash .ci/run
