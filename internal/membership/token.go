// Package membership keeps the credentials by which the agent and the webhook of a workload cluster are known in the identity cluster. In go
// tokens of service accounts, in files or in a Secret; out come newer tokens in their place, which the agent may request for both. It never makes
// a first token: that is for a person, who lets a cluster join.
package membership

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/identity"
)

// Lifetime is how long a token of a joined cluster is valid. A cluster that was switched off for longer has to join again.
const Lifetime = 48 * time.Hour

// Token is what a token's claims say of it. Its signature is not verified: the API server does that.
type Token struct {
	// Account is the service account, in the namespace of joined clusters.
	Account string
	// Secret is the Secret that the token is bound to: without it, the token is not valid.
	Secret          types.NamespacedName
	SecretUID       types.UID
	Issued, Expires time.Time
}

var errOther = errors.New("not a token of a service account of the namespace " + v1alpha1.WorkloadClusters + " that is bound to a Secret")

// Parse reads the claims of a token.
func Parse(text string) (Token, error) {
	payload, ok := identity.Payload(strings.TrimSpace(text))
	if !ok {
		return Token{}, errOther
	}
	var claims struct {
		Subject    string  `json:"sub"`
		IssuedAt   float64 `json:"iat"`
		Expiry     float64 `json:"exp"`
		Kubernetes struct {
			Secret struct {
				Name string    `json:"name"`
				UID  types.UID `json:"uid"`
			} `json:"secret"`
		} `json:"kubernetes.io"`
	}
	if err := json.Unmarshal(payload, &claims); err != nil {
		return Token{}, errOther
	}
	account, ok := strings.CutPrefix(claims.Subject, "system:serviceaccount:"+v1alpha1.WorkloadClusters+":")
	secret := claims.Kubernetes.Secret
	if !ok || account == "" || secret.Name == "" || secret.UID == "" {
		return Token{}, errOther
	}
	return Token{
		Account: account, Secret: types.NamespacedName{Namespace: v1alpha1.WorkloadClusters, Name: secret.Name}, SecretUID: secret.UID,
		Issued: time.Unix(int64(claims.IssuedAt), 0), Expires: time.Unix(int64(claims.Expiry), 0),
	}, nil
}

// Read is Parse of a file.
func Read(file string) (Token, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return Token{}, err
	}
	return Parse(string(content))
}

// Due reports whether a token is to be renewed: a quarter of its lifetime is over.
func (t Token) Due(now time.Time) bool { return !now.Before(t.Issued.Add(t.Expires.Sub(t.Issued) / 4)) }

// Request is the request for a token that is bound to a Secret.
func Request(secret string, uid types.UID) *authenticationv1.TokenRequest {
	seconds := int64(Lifetime / time.Second)
	return &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{
			ExpirationSeconds: &seconds,
			BoundObjectRef:    &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Secret", Name: secret, UID: uid},
		},
	}
}
