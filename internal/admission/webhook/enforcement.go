package webhook

import (
	"context"
	"fmt"
)

// Enforcement is what becomes of a refusal about group managed service accounts. The zero value is Deny.
type Enforcement string

// The words are those of validationActions of admission policies.
const (
	Deny  Enforcement = "Deny"  // the request is refused
	Warn  Enforcement = "Warn"  // it is admitted with a warning, and a note in the audit log
	Audit Enforcement = "Audit" // it is admitted with a note in the audit log alone
)

// ParseEnforcement reads one.
func ParseEnforcement(text string) (Enforcement, error) {
	switch e := Enforcement(text); e {
	case Deny, Warn, Audit:
		return e, nil
	}
	return "", fmt.Errorf("%q is not allowed: give %s, %s or %s", text, Deny, Warn, Audit)
}

// enforced is a decider whose refusals are carried out, or only reported. A request without a decision is then admitted as well.
func enforced[T any](e Enforcement, decide decider[T]) decider[T] {
	if e == "" || e == Deny {
		return decide
	}
	return func(ctx context.Context, r *request[T]) (answer, error) {
		decision, err := decide(ctx, r)
		if err != nil {
			decision = failed(r.about(), err)
		}
		if decision.code == 0 {
			return decision, nil
		}
		reported := answer{reported: true, audit: map[string]string{"would-refuse": decision.message}}
		if e == Warn {
			reported.warnings = []string{"would be refused: " + decision.message}
		}
		return reported, nil
	}
}
