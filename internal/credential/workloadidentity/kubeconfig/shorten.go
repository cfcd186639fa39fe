package kubeconfig

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"slices"
)

// caKey is the field whose value decides which server is trusted; the others' are secret or of no interest.
const caKey = "certificate-authority-data"

// shorten returns a kubeconfig without most of its bytes: the value of a certificate authority is replaced by its digest, those of
// certificates, keys and tokens by nothing, where each stands in a line of its own as programs write them. The YAML reader would
// take a hundred times as long for these values as for all the others, each time that a client requests a stored credential.
func shorten(data []byte) []byte {
	out := make([]byte, 0, len(data)/8)
	for line := range bytes.Lines(data) {
		start := len(line) - len(bytes.TrimLeft(line, " -"))
		name, value, found := bytes.Cut(line[start:], []byte(": "))
		value = bytes.TrimRight(value, "\r\n")
		if !found || len(value) < 2*sha256.Size || !isBase64(value) {
			out = append(out, line...)
			continue
		}
		switch string(name) {
		case caKey:
			out = append(append(append(out, line[:start]...), caKey+": "...), digest(value)...)
		case "client-certificate-data", "client-key-data", "token":
			out = append(append(append(out, line[:start]...), name...), ": x"...)
		default:
			out = append(out, line...)
			continue
		}
		out = append(out, '\n')
	}
	return out
}

func isBase64(text []byte) bool {
	return !slices.ContainsFunc(text, func(b byte) bool {
		return (b < 'a' || b > 'z') && (b < 'A' || b > 'Z') && (b < '0' || b > '9') && b != '+' && b != '/' && b != '='
	})
}

const digestPrefix = "sha256:" // base64 has no colon

// digest is what stands for data of a certificate authority; of a digest it is the same again.
func digest(data []byte) string {
	data = bytes.TrimSpace(data)
	if bytes.HasPrefix(data, []byte(digestPrefix)) || len(data) == 0 {
		return string(data)
	}
	sum := sha256.Sum256(data)
	return digestPrefix + hex.EncodeToString(sum[:])
}
