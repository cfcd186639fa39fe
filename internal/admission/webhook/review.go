package webhook

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	admissionv1beta1 "k8s.io/api/admission/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/credence-id/credence/internal/authority"
	"github.com/credence-id/credence/internal/decision"
	"github.com/credence-id/credence/internal/wording"
)

// review is an AdmissionReview of objects of type T: the part that a decision needs, decoded in one pass.
type review[T any] struct {
	metav1.TypeMeta `json:",inline"`
	Request         *request[T] `json:"request"`
}

type request[T any] struct {
	// version is that of the review, in which it is answered.
	version string

	UID         types.UID                   `json:"uid"`
	Resource    metav1.GroupVersionResource `json:"resource"`
	SubResource string                      `json:"subResource"`
	Name        string                      `json:"name"`
	Namespace   string                      `json:"namespace"`
	Operation   admissionv1.Operation       `json:"operation"`
	UserInfo    authority.Subject           `json:"userInfo"`
	Object      *T                          `json:"object"`
	OldObject   *T                          `json:"oldObject"`
	DryRun      bool                        `json:"dryRun"`
}

// about is the object of a request, in words.
func (r *request[T]) about() string {
	about := r.Resource.Resource
	if r.SubResource != "" {
		about += "/" + r.SubResource
	}
	if r.Resource.Group != "" {
		about += " of " + r.Resource.Group
	}
	return about
}

const reviewKind = "AdmissionReview"

// decode reads a review. An error is something that the API server does not send.
func decode[T any](body []byte) (*request[T], error) {
	var in review[T]
	if err := utiljson.Unmarshal(body, &in); err != nil {
		return nil, fmt.Errorf("decode AdmissionReview: %w", err)
	}
	if in.Kind != reviewKind || in.APIVersion != admissionv1.SchemeGroupVersion.String() && in.APIVersion != admissionv1beta1.SchemeGroupVersion.String() {
		return nil, fmt.Errorf("the body is %.64q of %.64q, want AdmissionReview of %s or %s", in.Kind, in.APIVersion, admissionv1.SchemeGroupVersion, admissionv1beta1.SchemeGroupVersion)
	}
	if in.Request == nil || in.Request.UID == "" {
		return nil, errors.New("the AdmissionReview has no request with a uid")
	}
	in.Request.version = in.APIVersion
	return in.Request, nil
}

// answer is what a review is answered; its zero value admits the object as it is.
type answer struct {
	code     int32 // 0: admitted
	reason   metav1.StatusReason
	message  string
	causes   []metav1.StatusCause
	patch    []decision.Operation // may be empty
	warnings []string
	// audit are annotations of the API server's audit event, by key.
	audit map[string]string
	// reported reports whether it would be a refusal if refusals were enforced.
	reported bool
}

func answerOf(result decision.Result) answer {
	a := answer{patch: result.Patch, warnings: result.Warnings}
	if result.Denial != nil {
		a.code, a.reason, a.message, a.causes = result.Denial.Code, result.Denial.Reason, result.Denial.Message, causesOf(result.Denial)
	}
	return a
}

// maxCauses bounds how many reasons an answer has.
const maxCauses = 20

// causesOf are the reasons of a Denial that are about a field, for programs that show them beside it.
func causesOf(denial *decision.Denial) []metav1.StatusCause {
	var causes []metav1.StatusCause
	for _, d := range append([]*decision.Denial{denial}, denial.Others...) {
		kind := metav1.CauseTypeFieldValueInvalid
		if d.Code == http.StatusForbidden {
			kind = metav1.CauseTypeForbidden
		}
		if d.Field != "" && len(causes) < maxCauses {
			// kubectl prints the field before the message.
			message := strings.TrimLeft(strings.TrimPrefix(d.Message, d.Field), ": ")
			causes = append(causes, metav1.StatusCause{Type: kind, Message: message, Field: d.Field})
		}
	}
	return causes
}

func refused(denial *decision.Denial) answer { return answerOf(decision.Result{Denial: denial}) }

func wrong(format string, args ...any) answer {
	return refused(decision.BadRequest(fmt.Sprintf(format, args...)))
}

// failed is the answer without a decision, which must not be taken for a denial.
func failed(what string, err error) answer {
	return answer{code: http.StatusInternalServerError, reason: metav1.StatusReasonInternalError,
		message: fmt.Sprintf("credence could not decide about %s, which may be right: %s: try again, and see the log of credence-webhook if it stays so", what, err)}
}

// encode writes the review that answers one of this version with this uid. The versions differ in their names only. Texts of others that messages
// repeat change no terminal.
func (a answer) encode(version string, uid types.UID) ([]byte, error) {
	a.message, a.warnings = wording.Printable(a.message), slices.Clone(a.warnings)
	for i := range a.warnings {
		a.warnings[i] = wording.Printable(a.warnings[i])
	}
	for i := range a.causes {
		a.causes[i].Message = wording.Printable(a.causes[i].Message)
	}
	response := &admissionv1.AdmissionResponse{UID: uid, Allowed: a.code == 0, Warnings: a.warnings, AuditAnnotations: a.audit}
	if a.code != 0 {
		response.Result = &metav1.Status{Status: metav1.StatusFailure, Code: a.code, Reason: a.reason, Message: a.message}
		if len(a.causes) > 0 {
			response.Result.Details = &metav1.StatusDetails{Causes: a.causes}
		}
	}
	if len(a.patch) > 0 {
		patch, err := json.Marshal(a.patch)
		if err != nil {
			return nil, fmt.Errorf("encode patch: %w", err)
		}
		kind := admissionv1.PatchTypeJSONPatch
		response.Patch, response.PatchType = patch, &kind
	}
	return json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: version, Kind: reviewKind},
		Response: response,
	})
}
