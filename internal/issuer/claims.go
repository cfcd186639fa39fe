package issuer

import (
	"encoding/hex"
	"fmt"
	"io"

	"github.com/credence-id/credence/internal/identity"
)

// claims is the payload of a token (GEP-26, "Gardener as OIDC Token Issuer"; RFC 7519, section 4.1). Times are seconds
// since 1970.
type claims struct {
	Issuer     identity.Issuer   `json:"iss"`
	Subject    identity.Subject  `json:"sub"`
	Audiences  []string          `json:"aud"`
	IssuedAt   int64             `json:"iat"`
	NotBefore  int64             `json:"nbf"`
	Expiry     int64             `json:"exp"`
	ID         string            `json:"jti"`
	Gardener   gardenerClaims    `json:"gardener.cloud"`
	Kubernetes *kubernetesClaims `json:"kubernetes.io,omitempty"`
	Credence   *credenceClaims   `json:"identity.credence.dev,omitempty"`
}

type credenceClaims struct {
	Username string `json:"username"`
}

type gardenerClaims struct {
	WorkloadIdentity objectClaims  `json:"workloadIdentity"`
	Seed             *objectClaims `json:"seed,omitempty"`
	Garden           *gardenClaims `json:"garden,omitempty"`
}

// objectClaims name an object; one without a namespace has none.
type objectClaims struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace,omitempty"`
	UID       string `json:"uid"`
}

// The members of gardener.cloud that are not objects of a context.
const (
	workloadIdentityClaim = "workloadIdentity"
	seedClaim             = "seed"
	gardenClaim           = "garden"
)

// claimsOfObjects are claims whose member gardener.cloud names the objects of a context, too: the outer member counts.
type claimsOfObjects struct {
	claims
	Gardener map[string]any `json:"gardener.cloud"`
}

// withObjects returns the claims with those of objects.
func (c claims) withObjects(objects []Object) claimsOfObjects {
	members := map[string]any{workloadIdentityClaim: c.Gardener.WorkloadIdentity}
	if c.Gardener.Seed != nil {
		members[seedClaim] = c.Gardener.Seed
	}
	if c.Gardener.Garden != nil {
		members[gardenClaim] = c.Gardener.Garden
	}
	for _, object := range objects {
		members[object.Claim] = objectClaims{Name: object.Name, Namespace: object.Namespace, UID: object.UID}
	}
	return claimsOfObjects{claims: c, Gardener: members}
}

type gardenClaims struct {
	ID string `json:"id"`
}

// kubernetesClaims has the shape of Kubernetes' own service-account tokens, so that what reads those reads these. An account of a workload
// cluster has its cluster beside it.
type kubernetesClaims struct {
	Namespace      string        `json:"namespace"`
	ServiceAccount objectClaims  `json:"serviceaccount"`
	Cluster        *objectClaims `json:"cluster,omitempty"`
	Pod            *objectClaims `json:"pod,omitempty"`
	Node           *nodeClaims   `json:"node,omitempty"`
}

type nodeClaims struct {
	Name string `json:"name"`
	UID  string `json:"uid,omitempty"`
}

// setContext adds the claims of the caller's cluster, if it is another one, and of the context; each kind has its own.
func (c *claims) setContext(cluster *Cluster, context *Context) {
	if cluster != nil {
		c.Gardener.Seed = &objectClaims{Name: cluster.Name, UID: cluster.UID}
	}
	if context == nil {
		return
	}
	if context.Username != "" {
		c.Credence = &credenceClaims{Username: context.Username}
	}
	if account := context.ServiceAccount; account != nil {
		c.Kubernetes = &kubernetesClaims{
			Namespace:      account.Namespace,
			ServiceAccount: objectClaims{Name: account.Name, UID: account.UID},
			Cluster:        c.Gardener.Seed,
		}
		if pod := context.Pod; pod != nil {
			c.Kubernetes.Pod = &objectClaims{Name: pod.Name, UID: pod.UID}
			c.Kubernetes.Node = &nodeClaims{Name: pod.Node.Name, UID: pod.Node.UID}
		}
	}
}

// newTokenID returns a random UUID, version 4 (RFC 9562, section 5.4).
func newTokenID(random io.Reader) (string, error) {
	var id [16]byte
	if _, err := io.ReadFull(random, id[:]); err != nil {
		return "", fmt.Errorf("draw a token ID: %w", err)
	}
	id[6] = id[6]&0x0f | 0x40
	id[8] = id[8]&0x3f | 0x80
	text := make([]byte, 0, 36)
	for i, part := range [][]byte{id[:4], id[4:6], id[6:8], id[8:10], id[10:]} {
		if i > 0 {
			text = append(text, '-')
		}
		text = hex.AppendEncode(text, part)
	}
	return string(text), nil
}
