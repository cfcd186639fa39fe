package image

import (
	"fmt"

	"github.com/distribution/reference"
)

// FullName is the name under which a container runtime looks for name: "credence:dev" is "docker.io/library/credence:dev".
// A name without a tag gets the tag latest; one with a digest is refused, as the digest cannot be chosen.
func FullName(name string) (string, error) {
	named, err := reference.ParseNormalizedNamed(name)
	if err != nil {
		return "", fmt.Errorf("image name %q: %w: it must be such as credence:dev", name, err)
	}
	if _, digested := named.(reference.Digested); digested {
		return "", fmt.Errorf("image name %q has a digest, which comes from the content: leave it out", name)
	}
	return reference.TagNameOnly(named).String(), nil
}
