package membership

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/credence-id/credence/internal/atomicfile"
)

// SecretName is the Secret of the workload cluster that agent and webhook have their credentials from where they run in pods. deploy/base names it,
// too: the agent may write its tokens and no other Secret of that namespace.
const SecretName = "credence-identities"

// Folder is a store of files.
type Folder string

// Tokens reads the files.
func (f Folder) Tokens(context.Context) (map[string]string, error) {
	files, err := filepath.Glob(filepath.Join(string(f), "*"+Suffix))
	tokens := map[string]string{}
	for _, file := range files {
		content, failed := os.ReadFile(file)
		if err = errors.Join(err, failed); failed == nil {
			tokens[filepath.Base(file)] = string(content)
		}
	}
	return tokens, err
}

// Replace writes a file anew.
func (f Folder) Replace(_ context.Context, name, _, token string) error {
	return atomicfile.Replace(filepath.Join(string(f), name), []byte(token), 0o600)
}

// Secrets reads and patches the Secrets of a namespace.
type Secrets interface {
	Get(ctx context.Context, name string, options metav1.GetOptions) (*corev1.Secret, error)
	Patch(ctx context.Context, name string, kind types.PatchType, patch []byte, options metav1.PatchOptions, within ...string) (*corev1.Secret, error)
}

// Secret is a store of keys of the Secret SecretName. Pods that mount it have new tokens when their kubelet has them.
type Secret struct{ Secrets Secrets }

// Tokens reads the Secret.
func (s Secret) Tokens(ctx context.Context) (map[string]string, error) {
	secret, err := s.Secrets.Get(ctx, SecretName, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("read Secret %s: %w", SecretName, err)
	}
	tokens := map[string]string{}
	for key, value := range secret.Data {
		if strings.HasSuffix(key, Suffix) {
			tokens[key] = string(value)
		}
	}
	return tokens, nil
}

// Replace writes a key anew, unless a cluster that joined again has done so meanwhile.
func (s Secret) Replace(ctx context.Context, name, old, token string) error {
	patch, err := json.Marshal([]map[string]any{
		{"op": "test", "path": "/data/" + name, "value": []byte(old)},
		{"op": "replace", "path": "/data/" + name, "value": []byte(token)},
	})
	if err != nil {
		return err
	}
	if _, err := s.Secrets.Patch(ctx, SecretName, types.JSONPatchType, patch, metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("write Secret %s: %w", SecretName, err)
	}
	return nil
}
