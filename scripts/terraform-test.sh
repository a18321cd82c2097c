#!/usr/bin/env bash
# terraform-test.sh checks the Terraform modules without an account and without a
# registry: format, validate, and "terraform test" against mocked providers.

set -euo pipefail

usage() {
	cat <<'TEXT'
Usage: terraform-test.sh [aws] [gcp]      (default: both)

  STILE_TF_MIRROR    a folder with providers, as "terraform providers mirror" makes it.
                     Without it terraform fetches the AWS provider (0.7 GB) from its registry.
  STILE_TF_STANDIN   a folder with the programs terraform-provider-google and
                     terraform-provider-upstash, which serve these providers' schemas where
                     the real ones cannot be had. Without it the real ones are fetched if
                     STILE_TF_REGISTRY=1, and what needs them is skipped otherwise.

A stand-in knows names, types and what is required; it does not know which values a
provider accepts, nor what a plan does. Exit: 0 fine, 1 a failure, 2 wrong use,
3 no terraform.
TEXT
}

modules=()
for arg in "$@"; do
	case $arg in
	aws | gcp) modules+=("$arg") ;;
	-h | --help)
		usage
		exit 0
		;;
	*)
		usage >&2
		exit 2
		;;
	esac
done
[ "${#modules[@]}" -gt 0 ] || modules=(aws gcp)
command -v terraform >/dev/null || {
	echo 'terraform-test.sh: terraform is not in PATH' >&2
	exit 3
}

root=$(cd "$(dirname "$0")/../terraform" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# A copy: terraform writes beside what it reads.
cp -R "$root" "$work/terraform"
find "$work/terraform" -name .terraform -type d -prune -exec rm -rf {} +
find "$work/terraform" -name .terraform.lock.hcl -delete

export TF_IN_AUTOMATION=1 TF_INPUT=0 CHECKPOINT_DISABLE=1
mirror() {
	[ -z "${STILE_TF_MIRROR:-}" ] || printf '  filesystem_mirror {\n    path = "%s"\n  }\n' "$STILE_TF_MIRROR"
}
{
	echo 'disable_checkpoint = true'
	if [ -n "${STILE_TF_MIRROR:-}" ]; then
		echo 'provider_installation {'
		mirror
		echo '}'
	fi
} >"$work/real.tfrc"
if [ -n "${STILE_TF_STANDIN:-}" ]; then
	{
		echo 'disable_checkpoint = true'
		echo 'provider_installation {'
		printf '  dev_overrides {\n    "hashicorp/google" = "%s"\n    "upstash/upstash"  = "%s"\n  }\n' "$STILE_TF_STANDIN" "$STILE_TF_STANDIN"
		mirror
		echo '}'
	} >"$work/standin.tfrc"
fi

# run DIRECTORY ARGUMENTS…: terraform, silent unless it fails.
run() {
	local dir=$1
	shift
	if ! terraform -chdir="$dir" "$@" -no-color >"$work/out" 2>&1; then
		cat "$work/out"
		echo "FAIL terraform $* in ${dir#"$work"/}" >&2
		exit 1
	fi
}

run "$work" fmt -check -recursive terraform
echo 'ok   fmt'

# check DIRECTORY init|get: validate. Stand-ins need no init, only the modules.
check() {
	if [ "$2" = init ]; then run "$1" init -backend=false; else run "$1" get; fi
	run "$1" validate
	echo "ok   validate ${1#"$work"/terraform/}"
}

# suite DIRECTORY: its tests, which validate the module first.
suite() {
	run "$1" test
	grep -E '^(Success|Failure)!' "$work/out" | sed "s|^|ok   test ${1#"$work"/terraform/}: |"
}

for module in "${modules[@]}"; do
	dir=$work/terraform/$module
	setup='init'
	export TF_CLI_CONFIG_FILE=$work/real.tfrc
	if [ "$module" = gcp ]; then
		if [ -n "${STILE_TF_STANDIN:-}" ]; then
			setup='get'
			export TF_CLI_CONFIG_FILE=$work/standin.tfrc
			echo 'note gcp: a stand-in serves the schemas of the Google and Upstash providers'
		elif [ "${STILE_TF_REGISTRY:-}" != 1 ]; then
			echo 'skip gcp: neither STILE_TF_STANDIN (schemas of the Google provider) nor STILE_TF_REGISTRY=1'
			continue
		fi
	fi
	[ "$setup" = get ] || run "$dir" init -backend=false
	suite "$dir"
	for example in "$dir"/examples/*/; do
		check "${example%/}" "$setup"
	done
done
