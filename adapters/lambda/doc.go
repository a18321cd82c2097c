// Package lambda runs Stile as an AWS Lambda function. One binary serves every
// place that a function can have before an origin, and tells them apart by the
// event's shape:
//
//	REST API, REQUEST authorizer       a policy; a refusal becomes the API's ACCESS_DENIED response
//	HTTP API, authorizer 1.0 and 2.0   allow with context.limited, or a plain deny: STILE_HTTP_API_DENY
//	function URL, HTTP API proxy 2.0   the pre-origin proxy, buffered or streamed: STILE_RESPONSES
//	ALB target group                   the pre-origin proxy, buffered
//
// An authorizer that fails or times out makes API Gateway answer 500 to
// visitors. So this one has a deadline of its own, recovers, and goes by the
// policy's store.on_error. Nothing is left to do when an answer is out: the
// platform freezes the process then. docs/adapters-lambda.md has the rest.
package lambda
