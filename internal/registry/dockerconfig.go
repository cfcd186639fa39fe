package registry

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/credence-id/credence/internal/wording"
)

// DockerConfigFile is the name that clients of registries look for in the folder of the variable DOCKER_CONFIG.
const DockerConfigFile = "config.json"

// DockerConfig is what clients of registries log in with: the content of a config.json, which a Secret of type kubernetes.io/dockerconfigjson
// has under the key .dockerconfigjson.
type DockerConfig struct {
	Content []byte
	// Expires is when the first of its passwords is of no use any more, or the token if that is sooner.
	Expires time.Time
}

// DockerConfig has those registries of the configuration that a list names by their images, separated by commas: all of them, or none.
func (c Config) DockerConfig(ctx context.Context, list string, token Token, now func() time.Time) (DockerConfig, error) {
	named, err := c.named(list)
	if err != nil {
		return DockerConfig{}, err
	}
	type login struct {
		Auth string `json:"auth"`
	}
	logins, expires := map[string]login{}, token.Expires
	for _, r := range named {
		got, err := r.Credentials(ctx, token, now)
		if err != nil {
			return DockerConfig{}, err
		}
		logins[r.Images] = login{base64.StdEncoding.EncodeToString([]byte(got.Username + ":" + got.Password.Reveal()))}
		if !got.Expires.IsZero() {
			expires = sooner(expires, got.Expires)
		}
	}
	content, err := json.Marshal(map[string]any{"auths": logins})
	if err != nil {
		return DockerConfig{}, errors.New("write config.json") // never: strings have a JSON form
	}
	return DockerConfig{Content: content, Expires: expires}, nil
}

// unknownError is of a list that names a registry which the configuration does not have.
type unknownError struct{ error }

// Unknown reports whether an error of DockerConfig is that the configuration does not have a listed registry.
func Unknown(err error) bool {
	var unknown unknownError
	return errors.As(err, &unknown)
}

// named are the registries of a list.
func (c Config) named(list string) ([]Registry, error) {
	var found []Registry
	for part := range strings.SplitSeq(list, ",") {
		images := strings.TrimSpace(part)
		at := slices.IndexFunc(c.Registries, func(r Registry) bool { return r.Images == images })
		if at < 0 {
			return nil, unknownError{fmt.Errorf("registry %q is not one of the configuration: name images of it, separated by commas, or have an admin add it there", wording.Abbreviate(wording.Printable(images)))}
		}
		found = append(found, c.Registries[at])
	}
	return found, nil
}
