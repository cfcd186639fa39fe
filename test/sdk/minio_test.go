package sdk

import (
	"bytes"
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/issuer"
	"github.com/credence-id/credence/internal/target"
	"github.com/credence-id/credence/test/testkit"
)

const (
	storeHost     = "minio.example.com"
	storeEndpoint = "https://" + storeHost + ":9000"
	storeAudience = "minio"
	storeUser     = "root-of-minio"
	bucket        = "shop"
)

// storeRole is the role that MinIO has for a client ID.
func storeRole(clientID string) string {
	sum := sha1.Sum([]byte(clientID))
	return "arn:minio:iam:::role/" + base64.RawURLEncoding.EncodeToString(sum[:])
}

// storeClouds are MinIO as the programs see it: what they present is what they have read from the bucket.
func storeClouds() []cloud {
	c := cloud{
		name: "aws", sdk: "S3 of Go", command: []string{"/proc/self/exe", podArgument, "store"}, audience: storeAudience, region: "us-east-1",
		providerConfig: `{"apiVersion":"aws.authentication.gardener.cloud/v1alpha1","kind":"Config","iamRoleARN":"` + storeRole(storeAudience) + `","region":"us-east-1","endpoint":"` + storeEndpoint + `"}`,
	}
	clouds := []cloud{c}
	for _, python := range pythons() {
		if !python.readsEndpoints {
			continue
		}
		c.sdk = "S3 of " + python.module + " " + python.version
		c.command = []string{python.interpreter, "-c", containerOfPython, python.module + "-s3"}
		clouds = append(clouds, c)
	}
	return clouds
}

// store is a container that writes an object and reads it.
func store(ctx context.Context) (workload, error) {
	loaded, err := awsconfig.LoadDefaultConfig(ctx)
	if err != nil {
		return nil, err
	}
	client := s3.NewFromConfig(loaded, func(o *s3.Options) { o.UsePathStyle = true })
	return func(ctx context.Context) (answer, error) {
		object := func() (*string, *string) { return awssdk.String(bucket), awssdk.String("go") }
		in := &s3.PutObjectInput{Body: strings.NewReader("hello")}
		in.Bucket, in.Key = object()
		if _, err := client.PutObject(ctx, in); err != nil {
			return answer{}, err
		}
		out := &s3.GetObjectInput{}
		out.Bucket, out.Key = object()
		got, err := client.GetObject(ctx, out)
		if err != nil {
			return answer{}, err
		}
		content, err := io.ReadAll(got.Body)
		return answer{Presented: string(content), Region: loaded.Region}, err
	}, nil
}

// built returns the path of a program that make has built.
func built(name string) string {
	if folder := os.Getenv("CREDENCE_BIN"); folder != "" {
		return filepath.Join(folder, name)
	}
	return filepath.Join("..", "..", "bin", name)
}

// startStore runs MinIO, which trusts the issuer for one audience and lets one subject use a bucket.
func (w *world) startStore(t *testing.T, subject identity.Subject) {
	t.Helper()
	program := built("minio")
	if _, err := os.Stat(program); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("needs MinIO: %v; make test-all builds it", err)
		}
		t.Skipf("needs MinIO: %v; make test-all builds it", err)
	}
	data, certificates := t.TempDir(), t.TempDir()
	for name, text := range map[string][]byte{"public.crt": w.certificate.PEM(), "private.key": w.certificate.KeyPEM()} {
		testkit.Must(t, os.WriteFile(filepath.Join(certificates, name), text, 0o600))
	}
	authority := testkit.Need(os.ReadFile(w.authority))(t)
	testkit.Must(t, os.MkdirAll(filepath.Join(certificates, "CAs"), 0o755))
	testkit.Must(t, os.WriteFile(filepath.Join(certificates, "CAs", "ca.crt"), authority, 0o644))
	start := func(more ...string) (stop func()) {
		command := exec.Command(program, "server", "--address", "127.0.0.1:9000", "--certs-dir", certificates, data)
		command.Env = append([]string{"HOME=" + t.TempDir(), "MINIO_ROOT_USER=" + storeUser, "MINIO_ROOT_PASSWORD=" + storeUser, "MINIO_BROWSER=off", "MINIO_UPDATE=off"}, more...)
		var log bytes.Buffer
		command.Stdout, command.Stderr = &log, &log
		testkit.Must(t, command.Start())
		ended := make(chan error, 1)
		go func() { ended <- command.Wait() }()
		w.await(t, ended, &log)
		return func() { _ = command.Process.Kill(); <-ended }
	}
	stop := start()
	w.storeAdmin(t, http.MethodPut, "/"+bucket, nil)
	w.storeAdmin(t, http.MethodPut, "/minio/admin/v3/add-canned-policy?name=shop", []byte(`{"Version":"2012-10-17","Statement":[{"Effect":"Allow",`+
		`"Action":["s3:GetObject","s3:PutObject"],"Resource":["arn:aws:s3:::`+bucket+`/*"],"Condition":{"StringEquals":{"jwt:sub":"`+string(subject)+`"}}}]}`))
	stop()
	t.Cleanup(start("MINIO_IDENTITY_OPENID_CONFIG_URL_CREDENCE="+issuerURL+"/.well-known/openid-configuration",
		"MINIO_IDENTITY_OPENID_CLIENT_ID_CREDENCE="+storeAudience, "MINIO_IDENTITY_OPENID_ROLE_POLICY_CREDENCE=shop"))
}

// await returns when MinIO is ready.
func (w *world) await(t *testing.T, ended chan error, log *bytes.Buffer) {
	t.Helper()
	deadline := time.After(10 * time.Minute)
	for {
		status, answer, err := w.storeRequest(t, http.MethodGet, "/minio/admin/v3/list-canned-policies", nil)
		if err == nil && status == http.StatusOK {
			return
		}
		select {
		case err := <-ended:
			t.Fatalf("MinIO ended: %v\n%s", err, log)
		case <-deadline:
			t.Fatalf("MinIO is not ready after ten minutes: %d %s, %v", status, answer, err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// storeAdmin sends a request of MinIO's root user, which must succeed.
func (w *world) storeAdmin(t *testing.T, method, path string, body []byte) {
	t.Helper()
	if status, answer, err := w.storeRequest(t, method, path, body); err != nil || status != http.StatusOK {
		t.Fatalf("%s %s: %d %s, %v", method, path, status, answer, err)
	}
}

func (w *world) storeRequest(t *testing.T, method, path string, body []byte) (status int, answer []byte, err error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, storeEndpoint+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	sum := sha256.Sum256(body)
	hash := hex.EncodeToString(sum[:])
	request.Header.Set("X-Amz-Content-Sha256", hash)
	root := awssdk.Credentials{AccessKeyID: storeUser, SecretAccessKey: storeUser}
	if err := v4.NewSigner().SignHTTP(t.Context(), root, request, hash, "s3", "us-east-1", time.Now()); err != nil {
		return 0, nil, err
	}
	response, err := w.client.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = response.Body.Close() }()
	answer, err = io.ReadAll(response.Body)
	return response.StatusCode, answer, err
}

// A store that is compatible with AWS takes tokens, and gives what the subject of the token may have.
func TestStore(t *testing.T) {
	w := newWorld(t)
	subject := testkit.Need(identity.NewSubject("shop", "cart-aws", workloadIdentity("aws").UID))(t)
	w.startStore(t, subject)
	for _, c := range storeClouds() {
		for name, asked := range map[string]struct {
			change func(*issuer.Request)
			want   string
		}{
			"allowed":          {func(*issuer.Request) {}, ""},
			"another subject":  {func(r *issuer.Request) { r.Identity.Name += "-2" }, "AccessDenied"},
			"another audience": {func(r *issuer.Request) { r.Audiences = []string{"another"} }, "InvalidParameterValue"},
		} {
			t.Run(fmt.Sprintf("%s/%s", c, name), func(t *testing.T) {
				r := request(c)
				asked.change(&r)
				pod := newPod(t, c, w.authority)
				pod.deliver(t, w.issue(t, r).Token)
				pod.start(t, "AWS_MAX_ATTEMPTS=1")
				got := pod.ask(t)
				if asked.want == "" && (got.Presented != "hello" || got.Region != c.region || got.Error != "") || !strings.Contains(got.Error, asked.want) {
					t.Errorf("answer %+v, want an error with %q", got, asked.want)
				}
			})
		}
	}
}

// The profile of a token Secret names the store, too. The SDK for Go takes it for S3, but exchanges the token where a variable points.
func TestStoreOfSecret(t *testing.T) {
	w := newWorld(t)
	subject := testkit.Need(identity.NewSubject("shop", "cart-aws", workloadIdentity("aws").UID))(t)
	w.startStore(t, subject)
	for _, c := range storeClouds() {
		t.Run(c.String(), func(t *testing.T) {
			place := target.SecretPlace(c.name)
			pod := newPodAt(t, c, place, w.authority)
			pod.injection.Mounts = []string{"credentialsFile"}
			pod.injection.Env = []target.Variable{{Name: "AWS_SHARED_CREDENTIALS_FILE", Value: place.File("credentialsFile")}, {Name: "AWS_ENDPOINT_URL_STS", Value: storeEndpoint}}
			pod.deliver(t, w.issue(t, request(c)).Token)
			pod.start(t)
			if got := pod.ask(t); got.Presented != "hello" {
				t.Errorf("answer %+v", got)
			}
		})
	}
}
