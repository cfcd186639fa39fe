//go:build unix

package home

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/credence-id/credence/internal/identity"
)

// DefaultPort is the first port of an installation that was not given one. 17443 to 17453 are assigned to no service and
// lie below the ports that Linux, macOS and Windows hand out by themselves.
const DefaultPort = 17443

// PortSpan is how many ports an installation takes, LowestPort and HighestPort are the bounds of the first, and DiscoveryOffset, from the first,
// is the port of the issuer.
const (
	PortSpan              = 11
	LowestPort            = 1024
	HighestPort           = 65535 - PortSpan + 1
	DiscoveryOffset       = 2
	issuerPath            = "/workload-identity"
	configVersion         = 1
	maxConfig       int64 = 1 << 16
)

// Config is what an installation keeps for life, as every token it issued carries it: config.json.
type Config struct {
	Version int             `json:"version"`
	Port    int             `json:"port"`
	Issuer  identity.Issuer `json:"issuer"`
	// Storage is where the API server keeps its objects; empty: Embedded.
	Storage string `json:"storage,omitempty"`
}

// The values of Config.Storage.
const (
	Embedded  = "embedded" // in an etcd of its own
	InCluster = "cluster"  // in the API of the cluster
)

// NewConfig returns the Config of a new installation whose first port is port.
func NewConfig(port int) (Config, error) {
	if port < LowestPort || port > HighestPort {
		return Config{}, fmt.Errorf("--port %d must be %d to %d: it is the first of %d ports", port, LowestPort, HighestPort, PortSpan)
	}
	issuer, err := identity.ParseIssuer(fmt.Sprintf("https://127.0.0.1:%d%s", port+DiscoveryOffset, issuerPath))
	if err != nil {
		return Config{}, err
	}
	return Config{Version: configVersion, Port: port, Issuer: issuer}, nil
}

func (d Dir) configFile() string { return d.Path("config.json") }

// LoadConfig reads the Config of d; found is false if d was never set up.
func (d Dir) LoadConfig() (config Config, found bool, err error) {
	data, err := readBounded(d.configFile(), maxConfig)
	if errors.Is(err, fs.ErrNotExist) {
		return Config{}, false, nil
	}
	if err != nil {
		return Config{}, false, fmt.Errorf("read %s: %w", d.configFile(), cause(err))
	}
	config, err = parseConfig(data)
	if err != nil {
		return Config{}, false, fmt.Errorf("%s is damaged (%w): restore it, or remove %s to start anew", d.configFile(), err, d)
	}
	return config, true, nil
}

func parseConfig(data []byte) (Config, error) {
	var config Config
	if err := json.Unmarshal(data, &config); err != nil {
		return Config{}, err
	}
	if config.Version != configVersion {
		return Config{}, fmt.Errorf("version %d is not known to this program", config.Version)
	}
	want, err := NewConfig(config.Port)
	if err != nil {
		return Config{}, err
	}
	if config.Issuer != want.Issuer {
		return Config{}, fmt.Errorf("issuer %q does not belong to port %d", config.Issuer, config.Port)
	}
	if config.Storage != "" && config.Storage != InCluster {
		return Config{}, fmt.Errorf("storage %q is not known to this program", config.Storage)
	}
	return config, nil
}

// Check returns what is wrong with the port and the storage of a command line.
func Check(port int, storage string) error {
	if storage != "" && storage != Embedded && storage != InCluster {
		return fmt.Errorf("--storage %q must be %s or %s", storage, InCluster, Embedded)
	}
	if port == 0 {
		return nil
	}
	_, err := NewConfig(port)
	return err
}

// Configure returns the Config of d, which is made with port (0: DefaultPort) and storage (empty: Embedded) the first time. A port that
// differs from the one that d was made with is refused: it is part of the issuer. So is another storage: identities would be gone.
func (d Dir) Configure(port int, storage string) (Config, error) {
	config, found, err := d.LoadConfig()
	if err != nil {
		return Config{}, err
	}
	if found {
		if port != 0 && port != config.Port {
			return Config{}, fmt.Errorf("%s was made with --port %d, which is part of its issuer: leave out --port, or choose another --dir for a second installation", d, config.Port)
		}
		if made := cmp.Or(config.Storage, Embedded); storage != "" && storage != made {
			return Config{}, fmt.Errorf("%s was made with --storage %s, where its identities are: leave out --storage, or choose another --dir for a second installation", d, made)
		}
		return config, nil
	}
	config, err = NewConfig(cmp.Or(port, DefaultPort))
	if storage == InCluster {
		config.Storage = storage
	}
	return config, err
}

// SaveConfig remembers config for the next start.
func (d Dir) SaveConfig(config Config) error {
	return WriteJSON(d.configFile(), config, 0o600)
}

// readBounded reads a file of at most limit bytes.
func readBounded(path string, limit int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Size() > limit {
		return nil, fmt.Errorf("it has %d bytes, at most %d are expected", info.Size(), limit)
	}
	return os.ReadFile(path)
}
