package apiserver

import (
	"context"
	"net/http"

	"go.opentelemetry.io/otel/trace"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	genericapiserver "k8s.io/apiserver/pkg/server"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/component-base/tracing"
)

// traceHeaders are those by which a trace goes on in another process.
var traceHeaders = []string{"Traceparent", "Tracestate", "Baggage"}

// trace has the spans of requests sent, and those of the requests that they lead to. A request that kube-apiserver passes on is part of its
// trace.
func (a assembly) trace(config *genericapiserver.Config, options *genericoptions.RecommendedOptions) {
	if a.traces == nil {
		return
	}
	config.TracerProvider = joining{a.traces}
	options.Authentication.WithCustomRoundTripper(tracing.WrapperFor(a.traces))
	options.Authorization.WithCustomRoundTripper(tracing.WrapperFor(a.traces))
}

// withoutTrace forgets the trace that a caller names, for those that are not kube-apiserver: users would decide what is sent.
func (a assembly) withoutTrace(next authenticator.Request) authenticator.Request {
	if a.traces == nil {
		return next
	}
	return authenticator.RequestFunc(func(r *http.Request) (*authenticator.Response, bool, error) {
		for _, name := range traceHeaders {
			r.Header.Del(name)
		}
		return next.AuthenticateRequest(r)
	})
}

// joining provides spans that never begin a trace where there is one. The filters of the API machinery do, for all users but
// administrators: they expect users to call them, not a front proxy that has judged the trace already.
type joining struct{ tracing.TracerProvider }

// Tracer implements trace.TracerProvider.
func (j joining) Tracer(name string, options ...trace.TracerOption) trace.Tracer {
	return joiningTracer{j.TracerProvider.Tracer(name, options...)}
}

type joiningTracer struct{ trace.Tracer }

// Start implements trace.Tracer.
func (j joiningTracer) Start(ctx context.Context, name string, options ...trace.SpanStartOption) (context.Context, trace.Span) {
	if config := trace.NewSpanStartConfig(options...); config.NewRoot() {
		options = []trace.SpanStartOption{trace.WithAttributes(config.Attributes()...), trace.WithSpanKind(config.SpanKind()), trace.WithTimestamp(config.Timestamp())}
	}
	return j.Tracer.Start(ctx, name, options...)
}
