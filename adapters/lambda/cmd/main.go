// Command bootstrap is Stile as an AWS Lambda function, for the runtime
// provided.al2023. scripts/build-lambda.sh builds it.
package main

import (
	"context"

	awslambda "github.com/aws/aws-lambda-go/lambda"

	"github.com/stilehq/stile/adapters/lambda"
	"github.com/stilehq/stile/stores/open"
	"github.com/stilehq/stile/stores/open/opendynamodb"
	"github.com/stilehq/stile/stores/open/openmemory"
	"github.com/stilehq/stile/stores/open/openredis"
	"github.com/stilehq/stile/stores/open/openupstash"
)

func main() {
	f := lambda.New(context.Background(), lambda.Config{Openers: []open.Opener{
		openmemory.Opener, openredis.Opener, openupstash.Opener, opendynamodb.Opener,
	}})
	awslambda.StartWithOptions(f.Invoke, awslambda.WithEnableSIGTERM(f.Close))
}
