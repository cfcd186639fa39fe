package sdk

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/aliyun/credentials-go/credentials"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	awssts "github.com/aws/aws-sdk-go-v2/service/sts"
	"golang.org/x/oauth2/google"
)

// answer is what a container prints of its credentials.
type answer struct {
	// Presented is what it would present to the cloud: a session token, or an access token.
	Presented string
	// Region is where it would call services, of clouds that have a setting for it.
	Region string `json:",omitempty"`
	Error  string `json:",omitempty"`
}

// workload gets credentials as programs do: from the SDK, which has them or gets new ones.
type workload func(context.Context) (answer, error)

// workloads start the SDK of a cloud with its defaults: nothing is set in code.
func workloads() map[string]func(context.Context) (workload, error) {
	return map[string]func(context.Context) (workload, error){"aws": aws, "azure": azure, "gcp": gcp, "alicloud": alicloud, "store": store}
}

// runContainer is a program in a container: whenever it reads a line, it gets credentials and writes an answer.
func runContainer(cloud string) int {
	ctx := context.Background()
	run, err := workloads()[cloud](ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	encoder := json.NewEncoder(os.Stdout)
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		got, err := run(ctx)
		if err != nil {
			got = answer{Error: err.Error()}
		}
		if err := encoder.Encode(got); err != nil {
			return 1
		}
	}
	return 0
}

// aws also signs a request with the credentials.
func aws(ctx context.Context) (workload, error) {
	loaded, err := awsconfig.LoadDefaultConfig(ctx)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) (answer, error) {
		found, err := loaded.Credentials.Retrieve(ctx)
		if err != nil {
			return answer{}, err
		}
		_, err = awssts.NewFromConfig(loaded).GetCallerIdentity(ctx, &awssts.GetCallerIdentityInput{})
		return answer{Presented: found.SessionToken, Region: loaded.Region}, err
	}, nil
}

func azure(context.Context) (workload, error) {
	credential, err := azidentity.NewDefaultAzureCredential(nil)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) (answer, error) {
		token, err := credential.GetToken(ctx, policy.TokenRequestOptions{Scopes: []string{"https://management.azure.com/.default"}})
		return answer{Presented: token.Token}, err
	}, nil
}

func gcp(ctx context.Context) (workload, error) {
	found, err := google.FindDefaultCredentials(ctx, "https://www.googleapis.com/auth/cloud-platform")
	if err != nil {
		return nil, err
	}
	return func(context.Context) (answer, error) {
		token, err := found.TokenSource.Token()
		if err != nil {
			return answer{}, err
		}
		return answer{Presented: token.AccessToken}, nil
	}, nil
}

func alicloud(context.Context) (workload, error) {
	credential, err := credentials.NewCredential(nil)
	if err != nil {
		return nil, err
	}
	return func(context.Context) (answer, error) {
		found, err := credential.GetCredential()
		if err != nil {
			return answer{}, err
		}
		return answer{Presented: *found.SecurityToken}, nil
	}, nil
}
