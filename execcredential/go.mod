module github.com/credence-id/credence/execcredential

go 1.25.0

require (
	github.com/google/go-cmp v0.6.0
	go.yaml.in/yaml/v3 v3.0.3
	golang.org/x/oauth2 v0.27.0
	golang.org/x/sys v0.30.0
	golang.org/x/term v0.29.0
	sigs.k8s.io/yaml v1.4.0
)
