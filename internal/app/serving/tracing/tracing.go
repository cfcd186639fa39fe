// Package tracing has the spans of requests sent to a collector of OpenTelemetry. In go the configuration file of --tracing-config-file and
// the name of a program, out comes a provider of spans. It makes no span itself, and never waits for a collector.
package tracing

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/spf13/pflag"
	"go.opentelemetry.io/otel/sdk/resource"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/tracing"
	tracingv1 "k8s.io/component-base/tracing/api/v1"
	"sigs.k8s.io/yaml"
)

// flushTimeout bounds the end of a program whose collector does not answer.
const flushTimeout = 2 * time.Second

// kind is that of a configuration, which is the same as kube-apiserver's.
const kind = "TracingConfiguration"

// versions are those of the configuration, in which it is the same.
var versions = map[string]bool{"apiserver.config.k8s.io/v1": true, "apiserver.config.k8s.io/v1beta1": true, "apiserver.config.k8s.io/v1alpha1": true}

// Provider provides spans that are sent to a collector. A nil Provider traces nothing.
type Provider struct{ tracing.TracerProvider }

// AddFlag adds the flag --tracing-config-file.
func AddFlag(flags *pflag.FlagSet, file *string) {
	flags.StringVar(file, "tracing-config-file", *file, "file of a TracingConfiguration, as kube-apiserver's: spans of requests are sent to its endpoint, over gRPC without TLS, and hold no tokens or bodies (default: none are made)")
}

// New returns the Provider of a program, or nil without a file. Spans that kube-apiserver has begun are sent if it sends its own; others at the
// rate of the file.
func New(ctx context.Context, file, program string) (*Provider, error) {
	if file == "" {
		return nil, nil
	}
	config, err := read(file)
	if err != nil {
		return nil, fmt.Errorf("--tracing-config-file: %w", err)
	}
	instance, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("name the instance of %s in spans: %w", program, err)
	}
	provider, err := tracing.NewProvider(ctx, config, nil, []resource.Option{
		resource.WithAttributes(semconv.ServiceName(program), semconv.ServiceInstanceID(instance)),
	})
	if err != nil {
		return nil, fmt.Errorf("--tracing-config-file: %w", err)
	}
	return &Provider{provider}, nil
}

func read(file string) (*tracingv1.TracingConfiguration, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var config struct {
		metav1.TypeMeta                `json:",inline"`
		tracingv1.TracingConfiguration `json:",inline"`
	}
	if err := yaml.UnmarshalStrict(text, &config); err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	if config.Kind != kind || !versions[config.APIVersion] {
		return nil, fmt.Errorf("%s has apiVersion %q and kind %q: give apiserver.config.k8s.io/v1 and %s", file, config.APIVersion, config.Kind, kind)
	}
	if errs := tracingv1.ValidateTracingConfiguration(&config.TracingConfiguration, nil, nil); len(errs) > 0 {
		return nil, fmt.Errorf("%s: %w", file, errs.ToAggregate())
	}
	return &config.TracingConfiguration, nil
}

// Trace has a client of an API send the trace of its caller along, and make a span of each request.
func (p *Provider) Trace(config *rest.Config) {
	if p != nil {
		config.Wrap(tracing.WrapperFor(p))
	}
}

// Handler makes a span of each request, in the trace of its caller.
func (p *Provider) Handler(next http.Handler, name string) http.Handler {
	if p == nil {
		return next
	}
	return tracing.WithTracing(next, p, name)
}

// Shutdown sends what is left. A collector that does not answer is not waited for.
func (p *Provider) Shutdown(ctx context.Context) error {
	if p == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, flushTimeout)
	defer cancel()
	if err := p.TracerProvider.Shutdown(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("send the last spans: %w", err)
	}
	return nil
}
