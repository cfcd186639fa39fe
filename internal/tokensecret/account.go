package tokensecret

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/credence-id/credence/internal/wording"
)

const (
	// NamePrefix is that of every Secret that the agent makes for a service account.
	NamePrefix = "credence-token-"
	// maxAccountIdentities bounds how many identities a service account gives its pods.
	maxAccountIdentities = 16
	maxNameLength        = 253
	digestLength         = 10
	// longDigestLength is that where names are cut, and so can be chosen to be the same but for the digest.
	longDigestLength = 40
)

// NameFor is the name of the Secret with the tokens of an identity for the pods of a service account of the same namespace:
// prefix, account and identity, cut where they are too long, and a digest of both, so that no two pairs share it.
func NameFor(account, identity string) string {
	sum := sha256.Sum256([]byte(account + "/" + identity))
	digest := hex.EncodeToString(sum[:])
	readable := account + "-" + identity
	if len(NamePrefix)+len(readable)+1+digestLength <= maxNameLength {
		return NamePrefix + readable + "-" + digest[:digestLength]
	}
	readable = readable[:maxNameLength-len(NamePrefix)-1-longDigestLength]
	return NamePrefix + strings.TrimRight(readable, ".-") + "-" + digest[:longDigestLength]
}

// ParseIdentities reads the annotation of a service account that lists the identities of its pods: names separated by
// commas, with spaces around them allowed. The order is kept.
func ParseIdentities(annotation string) ([]string, error) {
	if strings.TrimSpace(annotation) == "" {
		return nil, nil
	}
	parts := strings.Split(annotation, ",")
	if len(parts) > maxAccountIdentities {
		return nil, fmt.Errorf("lists %d identities, at most %d are allowed", len(parts), maxAccountIdentities)
	}
	var names []string
	for _, part := range parts {
		name := strings.TrimSpace(part)
		if name == "" {
			return nil, errors.New("has an empty name: separate the names of identities by single commas")
		}
		if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
			return nil, fmt.Errorf("%q is not a valid name of a WorkloadIdentity: %s", wording.Abbreviate(name), problems[0])
		}
		if slices.Contains(names, name) {
			return nil, fmt.Errorf("names %q twice", name)
		}
		names = append(names, name)
	}
	return names, nil
}
