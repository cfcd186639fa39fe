package execcredential

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"hash"
)

// fingerprint is the same for two configs exactly if they ask for the same credential: every field with its length, so that no two
// different lists of fields look alike. The cluster counts only if it is passed to the program.
func (c Config) fingerprint() [sha256.Size]byte {
	h := fields{sha256.New()}
	h.text(c.Static.Token, c.Static.TokenFile, c.Static.Username, c.Static.Password, c.Static.CertificateFile, c.Static.KeyFile)
	h.bytes(c.Static.CertificateData)
	h.bytes(c.Static.KeyData)
	h.text(c.Command, c.APIVersion, string(c.interactiveMode()), c.InstallHint, c.Folder, c.StdinUnavailable)
	h.count(len(c.Args))
	h.text(c.Args...)
	h.count(len(c.Env))
	for _, e := range c.Env {
		h.text(e.Name, e.Value)
	}
	h.count(int(c.Timeout))
	h.count(int(c.InteractiveTimeout))
	h.text(string(c.Policy.Type))
	h.flag(c.Policy.TrustedOwner)
	h.count(len(c.Policy.SecretEnv))
	h.text(c.Policy.SecretEnv...)
	h.count(len(c.Policy.Allowlist))
	for _, allowed := range c.Policy.Allowlist {
		h.text(allowed.Command, allowed.SHA256)
		h.flag(allowed.Args != nil)
		h.count(len(allowed.Args))
		h.text(allowed.Args...)
		h.flag(allowed.Env != nil)
		h.count(len(allowed.Env))
		h.text(allowed.Env...)
	}
	h.flag(c.ProvideClusterInfo)
	if c.ProvideClusterInfo {
		h.text(c.Cluster.Server, c.Cluster.TLSServerName, c.Cluster.ProxyURL)
		h.flag(c.Cluster.InsecureSkipTLSVerify)
		h.flag(c.Cluster.DisableCompression)
		h.bytes(c.Cluster.CertificateAuthorityData)
		h.bytes(canonical(c.Cluster.Extension))
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// canonical orders the keys, so that an extension that was kept in a map is one extension.
func canonical(extension json.RawMessage) []byte {
	if len(extension) == 0 {
		return nil
	}
	decoder := json.NewDecoder(bytes.NewReader(extension))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return extension
	}
	ordered, err := json.Marshal(value)
	if err != nil {
		return extension
	}
	return ordered
}

type fields struct{ hash.Hash }

func (h fields) count(n int) {
	var length [8]byte
	binary.BigEndian.PutUint64(length[:], uint64(n))
	h.Write(length[:])
}

func (h fields) bytes(b []byte) {
	h.count(len(b))
	h.Write(b)
}

func (h fields) text(list ...string) {
	for _, s := range list {
		h.bytes([]byte(s))
	}
}

func (h fields) flag(b bool) {
	if b {
		h.count(1)
	} else {
		h.count(0)
	}
}
