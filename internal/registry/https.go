package registry

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/credence-id/credence/internal/targets"
	"github.com/credence-id/credence/internal/tokenendpoint"
	"github.com/credence-id/credence/internal/tokenendpoint/network"
	"github.com/credence-id/credence/internal/wording"
)

// endpoint is a host that tokens are sent to: one of the configuration, or of the cloud that the configuration names.
type endpoint struct {
	// Endpoint is a URL: https, or http on this machine.
	Endpoint string `json:"endpoint"`
	// CAFile has the PEM certificates that the host's is verified with. Empty: those of the system.
	CAFile string `json:"caFile"`

	// cloud is the target system whose host it is; empty if it is the configuration's.
	cloud string
	// refused is what to do about a refusal, besides the explanation of its cloud.
	refused string
}

// maxText bounds what is shown of an answer, in characters.
const maxText = 300

// String is the URL without its query, for errors.
func (e endpoint) String() string {
	place, _, _ := strings.Cut(e.Endpoint, "?")
	return place
}

func (e endpoint) check() error {
	if err := tokenendpoint.Check(e.Endpoint); err != nil {
		return fmt.Errorf("endpoint %w", err)
	}
	return nil
}

// request is a POST.
func (e endpoint) request(ctx context.Context, contentType string, body []byte) (*http.Request, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, e.Endpoint, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("endpoint %s: %w", e, err)
	}
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	return request, nil
}

// formRequest is a POST of a form.
func (e endpoint) formRequest(ctx context.Context, form url.Values) (*http.Request, error) {
	return e.request(ctx, "application/x-www-form-urlencoded", []byte(form.Encode()))
}

// postForm sends a form, and reads a successful answer, which is JSON, into a value.
func (e endpoint) postForm(ctx context.Context, form url.Values, into any, secrets ...string) error {
	request, err := e.formRequest(ctx, form)
	if err != nil {
		return err
	}
	return e.do(request, json.Unmarshal, into, secrets...)
}

// do sends a request, and reads a successful answer into a value. Its errors have no secret of the request.
func (e endpoint) do(request *http.Request, decode func([]byte, any) error, into any, secrets ...string) error {
	if request.Header.Get("Accept") == "" {
		request.Header.Set("Accept", "application/json")
	}
	authorities, err := e.authorities()
	if err != nil {
		return err
	}
	status, body, err := network.Send(request, authorities)
	switch {
	case err != nil:
		return fmt.Errorf("request to %s: %w", e, err)
	case status >= 300 && status < 400:
		return e.unexpected(fmt.Sprintf("it answers %d, and tokens follow no redirect", status))
	case status >= 300:
		return fmt.Errorf("%s answers %d%s%s", e, status, shown(body, secrets), e.advice(body))
	case decode(body, into) != nil: // the error of the decoder can have a part of a password
		return e.unexpected("its answer cannot be read")
	}
	return nil
}

func (e endpoint) authorities() ([]byte, error) {
	if e.CAFile == "" {
		return nil, nil
	}
	data, err := os.ReadFile(e.CAFile)
	if err != nil {
		return nil, fmt.Errorf("read caFile: %w", err)
	}
	return data, nil
}

func (e endpoint) unexpected(what string) error {
	do := "correct endpoint in the configuration"
	if e.cloud != "" {
		do = "correct images and settings in the configuration, or the proxy of the kubelet, which may have answered"
	}
	return fmt.Errorf("%s is not the endpoint that the registry needs: %s: %s", e, what, do)
}

// advice is what to do about a refusal, as a part of a sentence.
func (e endpoint) advice(body []byte) string {
	if e.cloud == "" {
		return ""
	}
	if known := targets.Explain(string(body), e.cloud); len(known) > 0 {
		explained := fmt.Sprintf(": %s Check %s", known[0].Cause, known[0].Checks[0])
		if e.refused != "" {
			explained += "; or " + e.refused
		}
		return explained
	}
	if e.refused != "" {
		return ": " + e.refused
	}
	return ""
}

// shown is what an answer has about a refusal, as a part of a sentence: its code and message, or the first characters of anything else.
func shown(body []byte, secrets []string) string {
	text := string(body)
	if code, message := reason(body); code != "" {
		text = strings.TrimSuffix(code+": "+message, ": ")
	}
	text = wording.Redact(tokenendpoint.Redact(strings.TrimSpace(text), secrets...))
	if text = wording.OneLine(wording.AbbreviateTo(text, maxText)); text == "" {
		return ""
	}
	return ": " + text
}

// reason is the code and the message of a refusal, in the shapes of OAuth, of the clouds' JSON, of registries, and of AWS's XML.
func reason(body []byte) (code, message string) {
	if code, message = tokenendpoint.Refusal(body); code != "" {
		return code, message
	}
	type pair struct{ Code, Message string }
	var flat struct {
		pair
		Type string `json:"__type"`
	}
	_ = json.Unmarshal(body, &flat)
	var listed struct{ Errors []pair }
	if _ = json.Unmarshal(body, &listed); len(listed.Errors) > 0 {
		flat.pair = listed.Errors[0]
	}
	var document struct{ Error pair }
	_ = xml.Unmarshal(body, &document)
	return cmp.Or(flat.Code, flat.Type, document.Error.Code), cmp.Or(flat.Message, document.Error.Message)
}

// sooner is the earlier of two times.
func sooner(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
