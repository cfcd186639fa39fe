package discovery

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/strictjson"
)

// MaxDocumentBytes is the size of the largest document that Parse takes: several times what the largest key set that
// relying parties accept needs.
const MaxDocumentBytes = 256 << 10

// Parse checks documents from outside as the strictest relying party would, and returns them to be served byte for byte.
// Every error is a *Refusal that names the document and the member, except for an issuer that is not one.
func Parse(issuer identity.Issuer, configuration, jwks []byte) (Documents, error) {
	if _, err := identity.ParseIssuer(string(issuer)); err != nil {
		return Documents{}, err
	}
	keys, refusal := parseKeySet(jwks)
	if refusal != nil {
		return Documents{}, refusal
	}
	if refusal := checkConfiguration(issuer, configuration, keys); refusal != nil {
		return Documents{}, refusal
	}
	return Documents{issuer: issuer, configuration: bytes.Clone(configuration), jwks: bytes.Clone(jwks), keys: keys}, nil
}

func checkConfiguration(issuer identity.Issuer, data []byte, keys []identity.PublicKey) *Refusal {
	document, refusal := parseObject(configurationName, data)
	if refusal != nil {
		return refusal
	}
	return cmp.Or(
		wantText(document, "issuer", string(issuer), ReasonIssuer),
		wantText(document, "jwks_uri", issuer.JWKSURL(), ReasonJWKSURI),
		wantElement(document, "response_types_supported", "id_token"),
		wantElement(document, "subject_types_supported", "public"),
		checkAlgorithms(document, keys),
	)
}

func wantText(document map[string]json.RawMessage, member, want string, reason Reason) *Refusal {
	raw, present := document[member]
	if !present {
		return refuse(reason, configurationName, member, "is missing, it must be %q", want)
	}
	got, ok := strictjson.Text(raw)
	if !ok {
		return refuse(reason, configurationName, member, "is not a string, it must be %q", want)
	}
	if got != want {
		return refuse(reason, configurationName, member, "is %.600q, it must be %q", got, want)
	}
	return nil
}

func wantElement(document map[string]json.RawMessage, member, want string) *Refusal {
	list, ok := strictjson.Texts(document[member])
	if !ok || !slices.Contains(list, want) {
		return refuse(ReasonMetadata, configurationName, member, "must be an array of strings with %q in it", want)
	}
	return nil
}

// checkAlgorithms wants exactly the keys' algorithms: one more would be refused by no relying party today, and trusted
// for no reason by each.
func checkAlgorithms(document map[string]json.RawMessage, keys []identity.PublicKey) *Refusal {
	const member = "id_token_signing_alg_values_supported"
	var used []string
	for _, key := range keys {
		used = append(used, string(key.Algorithm))
	}
	slices.Sort(used)
	used = slices.Compact(used)
	listed, ok := strictjson.Texts(document[member])
	if !ok {
		return refuse(ReasonAlgorithms, configurationName, member, "must be an array of strings with the keys' algorithms: %s", strings.Join(used, ", "))
	}
	slices.Sort(listed)
	if !slices.Equal(listed, used) {
		return refuse(ReasonAlgorithms, configurationName, member, "is not the set of the keys' algorithms: %s", strings.Join(used, ", "))
	}
	return nil
}

func parseObject(document string, data []byte) (map[string]json.RawMessage, *Refusal) {
	switch {
	case len(data) == 0:
		return nil, refuse(ReasonSize, document, "", "is empty")
	case len(data) > MaxDocumentBytes:
		return nil, refuse(ReasonSize, document, "", "has more than %d bytes", MaxDocumentBytes)
	}
	object, err := strictjson.Object(data)
	if err != nil {
		return nil, refuse(ReasonJSON, document, "", "%v", err)
	}
	return object, nil
}
