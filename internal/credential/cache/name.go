package cache

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/credence-id/credence/internal/strictjson"
)

// Name is the name of a key's file: 64 hexadecimal digits.
type Name string

// NameOf returns the SHA-256 of a key's canonical JSON: one object, members sorted by name, no spaces, nothing escaped that
// need not be.
func NameOf(key map[string]string) Name {
	// Maps are encoded with sorted names, and a map of strings always can be.
	text, _ := strictjson.Encode(key)
	sum := sha256.Sum256(text)
	return Name(hex.EncodeToString(sum[:]))
}

// ParseName returns the name if text is one.
func ParseName(text string) (Name, error) {
	if len(text) != 2*sha256.Size || strings.Trim(text, "0123456789abcdef") != "" {
		return "", fmt.Errorf("%q is not the name of something that is kept: it has 64 hexadecimal digits", text)
	}
	return Name(text), nil
}

// DefaultPath is the folder of this user: credence/credentials in the user's folder for caches.
func DefaultPath() (string, error) {
	caches, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the folder for caches: %w", err)
	}
	return filepath.Join(caches, "credence", "credentials"), nil
}

func (n Name) lock() string      { return string(n) + ".lock" }
func (n Name) marks() string     { return string(n) + ".seen" }
func (n Name) temporary() string { return string(n) + ".tmp" }
