package registry

import (
	"fmt"
	"os"
)

// File is the path of a configuration.
type File string

// Read reads the configuration as it is now. Its error names the file and the field.
func (f File) Read() (Config, error) {
	data, err := os.ReadFile(string(f))
	if err != nil {
		return Config{}, err
	}
	config, err := Parse(data)
	if err != nil {
		return Config{}, fmt.Errorf("%s: %w", f, err)
	}
	return config, nil
}
