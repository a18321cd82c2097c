// Package terraformtest holds the tests of the Terraform modules: format,
// schemas and "terraform test" by scripts/terraform-test.sh, and one apply,
// second plan and destroy against a local server that speaks the AWS API.
//
// They look for terraform and for providers in STILE_TF_MIRROR (a folder as
// "terraform providers mirror" makes it) and STILE_TF_STANDIN; see the script's
// --help.
package terraformtest
