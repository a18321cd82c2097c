// Package edge writes, from a policy, the rule of an edge product that counts
// what the policy counts: the method, the page paths, and an Accept that names
// text/html.
//
// Such a rule is a coarse outer ring and no replacement. It counts requests by
// address, per location, in windows of minutes; it knows no day, no cookie, no
// verified crawler by address, and no redirect that should count once. Every rule
// says in its first lines what it cannot do, with numbers. Where the product
// lacks the policy's window the rule keeps the policy's limit in the longest
// window that the product has, so that it refuses hardly anyone whom the
// policy would admit, and lets more through than the policy does.
package edge
