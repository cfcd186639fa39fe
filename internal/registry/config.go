package registry

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/credence-id/credence/internal/strictjson"
	"github.com/credence-id/credence/internal/wording"
)

// Config is the registries of a node.
type Config struct {
	// CacheDuration is for how long a kubelet may use a password again at most: a right that was taken away ends by then.
	CacheDuration time.Duration
	// Registries have distinct images, in their order.
	Registries []Registry
}

// Registry is where images are pulled from by identity.
type Registry struct {
	// Images is a host, which may have a port and a path: images below it are of this registry.
	Images string
	// Audiences are those of tokens that the registry may be handed. A token with another one is for somewhere else, too.
	Audiences []string
	exchange  exchange
}

// OfPods reports whether passwords of a registry are tokens that were made for one pod, whose name is in them.
func (r Registry) OfPods() bool {
	_, handsOn := r.exchange.(tokenServer)
	return handsOn
}

// The bounds of CacheDuration. Zero is taken, too: each pull then makes a request.
const (
	DefaultCacheDuration = 5 * time.Minute
	maxCacheDuration     = time.Hour
)

// Parse reads a configuration, in YAML or JSON. Its error names the field.
func Parse(data []byte) (Config, error) {
	var wire struct {
		CacheDuration *metav1.Duration `json:"cacheDuration"`
		Registries    []struct {
			Images    string          `json:"images"`
			Audiences []string        `json:"audiences"`
			Exchange  string          `json:"exchange"`
			Settings  json.RawMessage `json:"settings"`
		} `json:"registries"`
	}
	text, err := yaml.YAMLToJSONStrict(data)
	if err != nil {
		return Config{}, err
	}
	if err := strictjson.Known(text, &wire); err != nil {
		return Config{}, err
	}
	config := Config{CacheDuration: DefaultCacheDuration}
	if d := wire.CacheDuration; d != nil {
		if d.Duration < 0 || d.Duration > maxCacheDuration {
			return Config{}, fmt.Errorf("cacheDuration %s: give 0s to %s: it is how long a right that was taken away is of use", d.Duration, maxCacheDuration)
		}
		config.CacheDuration = d.Duration
	}
	if len(wire.Registries) == 0 {
		return Config{}, errors.New("registries is empty: name at least one, with images, audiences and exchange")
	}
	for i, each := range wire.Registries {
		place := fmt.Sprintf("registries[%d]", i)
		if err := checkImages(each.Images); err != nil {
			return Config{}, fmt.Errorf("%s.images: %w", place, err)
		}
		if slices.ContainsFunc(config.Registries, func(other Registry) bool { return other.Images == each.Images }) {
			return Config{}, fmt.Errorf("%s.images: %s is there twice", place, each.Images)
		}
		switch {
		case len(each.Audiences) == 0:
			return Config{}, fmt.Errorf("%s.audiences is empty: name those of tokens that this registry may be handed, which no other relying party should accept", place)
		case slices.Contains(each.Audiences, ""):
			return Config{}, fmt.Errorf(`%s.audiences: "" is not an audience`, place)
		}
		makeExchange, known := exchanges[each.Exchange]
		if !known {
			return Config{}, fmt.Errorf("%s.exchange: %q is not one of %s", place, wording.Abbreviate(each.Exchange), strings.Join(slices.Sorted(maps.Keys(exchanges)), ", "))
		}
		settings := each.Settings
		if settings == nil {
			settings = json.RawMessage("{}")
		}
		host, _, _ := strings.Cut(each.Images, "/")
		made, err := makeExchange(host, settings)
		if err != nil {
			return Config{}, fmt.Errorf("%s.settings: %w", place, err)
		}
		config.Registries = append(config.Registries, Registry{Images: each.Images, Audiences: each.Audiences, exchange: made})
	}
	return config, nil
}

// images is a host with a dot or a port, or localhost, as references of images have; then a path. There are no patterns: of those that one
// allows, the author of a pod would choose the host.
var images = regexp.MustCompile(`^(localhost|[a-z0-9-]+(\.[a-z0-9-]+)+|localhost:[0-9]{1,5}|[a-z0-9-]+(\.[a-z0-9-]+)*:[0-9]{1,5})(/[a-z0-9._-]+)*$`)

func checkImages(text string) error {
	if !images.MatchString(text) {
		return fmt.Errorf("%q is not a host such as registry.example.com, registry.example.com:5000 or registry.example.com/team: in lower case, without scheme, tag and patterns", wording.Abbreviate(wording.Printable(text)))
	}
	return nil
}

// Of returns the registry of an image, which has neither tag nor digest: the one with the longest path.
func (c Config) Of(image string) (Registry, bool) {
	var found []Registry
	for _, r := range c.Registries {
		if image == r.Images || strings.HasPrefix(image, r.Images+"/") {
			found = append(found, r)
		}
	}
	if len(found) == 0 {
		return Registry{}, false
	}
	return slices.MaxFunc(found, func(a, b Registry) int { return cmp.Compare(len(a.Images), len(b.Images)) }), true
}
