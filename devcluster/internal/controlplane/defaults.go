package controlplane

import (
	"github.com/credence-id/credence/devcluster/internal/state"
)

// A request for a token has the token in its response, and a Secret its secret:
// no rule here may ever be above Metadata.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages:
- RequestReceived
rules:
- level: Metadata
`

// Unauthenticated clients may read whether the server is up, and nothing else.
const authenticationConfig = `apiVersion: apiserver.config.k8s.io/v1
kind: AuthenticationConfiguration
anonymous:
  enabled: true
  conditions:
  - path: /livez
  - path: /readyz
  - path: /healthz
`

// orDefault is the file that the user gave, or the one at path, made to hold content.
func orDefault(given, path, content string) (string, error) {
	if given != "" {
		return given, nil
	}
	return path, state.WriteFile(path, []byte(content), 0o644)
}
