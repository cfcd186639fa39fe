package guard

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"sync"

	"github.com/credence-id/credence/internal/atomicfile"
)

// verdicts are the pods that the API has allowed, by uid, with the containers that each verdict is about. A denial is not kept: it counts until the
// next review. The security contexts of a pod never change; ephemeral containers are added.
type verdicts struct {
	path string

	mu   sync.Mutex
	pods map[string][]string
}

// readVerdicts reads those of the last guard. The result has no pods without a file, and with an error.
func readVerdicts(path string) (*verdicts, error) {
	v := &verdicts{path: path, pods: map[string][]string{}}
	data, err := readFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return v, nil
	}
	if err != nil {
		return v, err
	}
	var kept map[string][]string
	if err := json.Unmarshal(data, &kept); err != nil {
		return v, fmt.Errorf("%s: %w", path, err)
	}
	maps.Copy(v.pods, kept)
	return v, nil
}

func (v *verdicts) has(uid, container string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Contains(v.pods[uid], container)
}

// keep adds containers of a pod, and forgets pods that live does not have. An error is that of the file: in memory the verdict is kept.
func (v *verdicts) keep(uid string, containers []string, live func() ([]string, error)) error {
	// One that is kept meanwhile waits, and is not missed in an older list. A pod whose sandbox is being made may be: it is reviewed again.
	v.mu.Lock()
	defer v.mu.Unlock()
	if uids, err := live(); err == nil {
		maps.DeleteFunc(v.pods, func(uid string, _ []string) bool { return !slices.Contains(uids, uid) })
	}
	for _, c := range containers {
		if !slices.Contains(v.pods[uid], c) {
			v.pods[uid] = append(v.pods[uid], c)
		}
	}
	if v.path == "" {
		return nil
	}
	data, err := json.Marshal(v.pods)
	if err != nil {
		return err
	}
	return atomicfile.Replace(v.path, data, 0o600)
}
