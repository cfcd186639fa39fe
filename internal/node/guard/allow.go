package guard

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	runtime "k8s.io/cri-api/pkg/apis/runtime/v1"
	"sigs.k8s.io/yaml"
)

// Allowed are the pods that keep what they ask for, by the namespace and name of their manifest, with the digests of their images.
type Allowed map[string][]string

var (
	podName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?/[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`)
	digest  = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)
)

// ReadAllowed reads the pods of a file. Without one none is allowed.
func ReadAllowed(path string) (Allowed, error) {
	if path == "" {
		return nil, nil
	}
	data, err := readFile(path)
	if err != nil {
		return nil, err
	}
	allowed, err := parseAllowed(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return allowed, nil
}

func parseAllowed(data []byte) (Allowed, error) {
	var wire struct {
		Pods []struct {
			Pod    string   `json:"pod"`
			Images []string `json:"images"`
		} `json:"pods"`
	}
	if err := yaml.UnmarshalStrict(data, &wire); err != nil {
		return nil, err
	}
	if wire.Pods == nil {
		return nil, errors.New("pods is missing: for no pods give an empty list")
	}
	allowed := Allowed{}
	for i, p := range wire.Pods {
		at := fmt.Sprintf("pods[%d]", i)
		switch {
		case !podName.MatchString(p.Pod):
			return nil, fmt.Errorf("%s.pod %q is not the namespace and name of a manifest, such as kube-system/kube-proxy", at, p.Pod)
		case allowed[p.Pod] != nil:
			return nil, fmt.Errorf("%s.pod %q is there already", at, p.Pod)
		case len(p.Images) == 0:
			return nil, fmt.Errorf("%s.images is missing: the digests of the images of %s", at, p.Pod)
		}
		for _, image := range p.Images {
			if !digest.MatchString(image) {
				return nil, fmt.Errorf("%s.images: %q is not a digest, sha256: and 64 hexadecimal digits", at, image)
			}
		}
		allowed[p.Pod] = p.Images
	}
	return allowed, nil
}

// has reports whether a pod may run an image: by the digest of its configuration or of a manifest, as the runtime has it.
func (a Allowed) has(p pod, image *runtime.Image) bool {
	return slices.ContainsFunc(a[p.manifest], func(digest string) bool {
		return digest == image.GetId() || slices.ContainsFunc(image.GetRepoDigests(), func(full string) bool {
			_, own, _ := strings.Cut(full, "@")
			return digest == own
		})
	})
}
