package sdk

import (
	"testing"

	"github.com/credence-id/credence/internal/target"
)

// The keys of a token Secret, mounted where GEP-26 has it, are files that an SDK reads: with one variable that names the file,
// which the pod that mounts the Secret sets.
func TestTokenSecret(t *testing.T) {
	w := newWorld(t)
	files := map[string]struct{ variable, file string }{
		"aws": {"AWS_SHARED_CREDENTIALS_FILE", "credentialsFile"},
		"gcp": {"GOOGLE_APPLICATION_CREDENTIALS", "credentialsConfig"},
	}
	for _, c := range clouds() {
		mounted, known := files[c.name]
		if !known {
			continue
		}
		t.Run(c.String(), func(t *testing.T) {
			token := w.issue(t, request(c))
			place := target.SecretPlace(c.name)
			pod := newPodAt(t, c, place, w.authority)
			for _, key := range pod.injection.Keys {
				pod.injection.Mounts = append(pod.injection.Mounts, key.Name)
			}
			pod.injection.Env = []target.Variable{{Name: mounted.variable, Value: place.File(mounted.file)}}
			pod.deliver(t, token.Token)
			pod.start(t)
			w.granted(t, c, pod.ask(t), token)
		})
	}
}
