// Package docker names the temporary registry values through which Docker on Windows is given credential specs, and the
// security options that refer to them. In go randomness, names and the security options of containers; out come names and
// options. It never sees a credential spec, and neither reads nor writes the registry.
package docker

import (
	"encoding/hex"
	"fmt"
	"io"
	"regexp"
	"strings"
)

const (
	prefix      = "k8s-cred-spec-"
	randomBytes = 40
)

// The two parts of a security option. Docker reads both of them whatever their case is; these are what it documents.
const (
	option = "credentialspec="
	scheme = "registry://"
)

// Exactly the names that NewValueName makes: the keeper may remove any value that matches, and no other program may use such a name.
var valueName = regexp.MustCompile(`^` + prefix + `[0-9a-f]{80}$`)

// NewValueName makes the name of a registry value: `k8s-cred-spec-` and 80 hexadecimal digits, from 40 bytes of random. It is
// an error if random has fewer: a name that could be guessed, or that comes twice, would give one container the identity of
// another.
func NewValueName(random io.Reader) (string, error) {
	var content [randomBytes]byte
	if n, err := io.ReadFull(random, content[:]); err != nil {
		return "", fmt.Errorf("read %d random bytes for the name of a registry value, got %d: %w", randomBytes, n, err)
	}
	return prefix + hex.EncodeToString(content[:]), nil
}

// IsValueName reports whether NewValueName could have made this name.
func IsValueName(name string) bool { return valueName.MatchString(name) }

// SecurityOption is the element of HostConfig.SecurityOpt by which Docker finds the credential spec in the registry.
func SecurityOption(valueName string) string { return option + scheme + valueName }

// ValueNames are the names of registry values, in the form of NewValueName, that these security options of a container refer
// to. Docker takes the last one of several; all are returned, since what a container refers to must stay. The registry finds
// values whatever the case of their names is: they are returned as they are written, in lower case.
func ValueNames(securityOpts []string) []string {
	var names []string
	for _, opt := range securityOpts {
		rest, ok := cutPrefixFold(opt, option)
		if !ok {
			continue
		}
		name, ok := cutPrefixFold(rest, scheme)
		if name = strings.ToLower(name); ok && IsValueName(name) {
			names = append(names, name)
		}
	}
	return names
}

func cutPrefixFold(s, prefix string) (rest string, found bool) {
	if len(s) < len(prefix) || !strings.EqualFold(s[:len(prefix)], prefix) {
		return "", false
	}
	return s[len(prefix):], true
}
