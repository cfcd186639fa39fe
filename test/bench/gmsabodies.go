package main

import (
	"bytes"
	"context"
	"fmt"
	"strings"
)

// gmsaPod is a pod of two containers as a Deployment has them, on Windows, as the first spec's account.
func (w *gmsaWorld) gmsaPod(by, account string) []byte {
	return gmsaPodOf(by, account, w.spec(0), `{"name":"main",`+serviceFields+`},{"name":"proxy",`+serviceFields+`}`)
}

func gmsaPodOf(by, account, spec, containers string) []byte {
	return []byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"generateName":"bench-","labels":{"app":"service","bench":"` + by + `"}},
		"spec":{"serviceAccountName":"` + account + `","os":{"name":"windows"},"nodeSelector":{"kubernetes.io/os":"windows"},"securityContext":` + windowsOptions(spec) + `,
		"volumes":[{"name":"data","emptyDir":{}}],"containers":[` + containers + `]}}`)
}

func windowsOptions(spec string) string {
	return `{"windowsOptions":{"gmsaCredentialSpecName":"` + spec + `"}}`
}

// referencesOfPod are those of a pod and its containers.
const referencesOfPod = 100

func (w *gmsaWorld) manyReferences() []byte {
	var containers []string
	for i := range referencesOfPod - 1 {
		containers = append(containers, fmt.Sprintf(`{"name":"c%d","image":"registry.example.com/team/service:v1.2.3","securityContext":%s}`, i, windowsOptions(w.spec((i+1)%gmsaSpecs))))
	}
	return gmsaPodOf(byOurs, gmsaAccount(manyAccount), w.spec(0), strings.Join(containers, ","))
}

// createPod creates a pod, in whose answer contents must be as often as is wanted.
func (w *gmsaWorld) createPod(ctx context.Context, url string, body []byte, contents int) error {
	answer, err := w.post(ctx, url, body)
	if err != nil {
		return err
	}
	if got := bytes.Count(answer, []byte(`"gmsaCredentialSpec":"{`)); got != contents {
		return fmt.Errorf("a gMSA pod has contents %d times, want %d: %.300s", got, contents, answer)
	}
	return nil
}

// gmsaDryRun creates a pod without storing it.
func (w *gmsaWorld) gmsaDryRun(by string) func(context.Context) error {
	url, body, contents := w.podsURL("?dryRun=All"), w.gmsaPod(by, gmsaAccount(0)), 1
	if by == byNoop || by == byNone {
		contents = 0
	}
	return func(ctx context.Context) error { return w.createPod(ctx, url, body, contents) }
}
