package relyingparty

import (
	"fmt"
	"slices"

	"github.com/go-jose/go-jose/v4"

	"github.com/credence-id/credence/internal/identity"
)

// checkAlgorithm checks the alg header against the algorithms accepted here, and against those the issuer publishes. The
// header is the token's own, so it never decides alone how the token is verified (RFC 8725, section 3.1).
func checkAlgorithm(token Inspection, published []string) []Finding {
	accepted := []string{string(identity.RS256), string(identity.ES256)}
	has := []string{token.Algorithm}
	if !slices.Contains(accepted, token.Algorithm) {
		return []Finding{{
			Reason: BadAlgorithm,
			Detail: fmt.Sprintf("the token has %s, accepted are %s", list("algorithm", has), list("algorithm", accepted)),
			Has:    has, Wanted: accepted,
		}}
	}
	if published != nil && !slices.Contains(published, token.Algorithm) {
		return []Finding{{
			Reason: BadAlgorithm,
			Detail: fmt.Sprintf("the token has %s, the issuer publishes %s", list("algorithm", has), list("algorithm", published)),
			Has:    has, Wanted: published,
		}}
	}
	return nil
}

// checkSignature returns nothing if one of the published keys made the signature of the token, and why not otherwise.
func checkSignature(token string, inspected Inspection, published []publishedKey) []Finding {
	candidates := published
	// A token without kid is tried with every key, as relying parties do (OpenID Connect Core 1.0, section 10.1).
	if inspected.KeyID != "" {
		candidates = slices.DeleteFunc(slices.Clone(published), func(key publishedKey) bool { return key.id != inspected.KeyID })
	}
	if len(candidates) == 0 {
		return []Finding{unknownKey(inspected, published)}
	}
	usable := slices.DeleteFunc(slices.Clone(candidates), func(key publishedKey) bool { return key.unusable != "" })
	if len(usable) == 0 {
		finding := unknownKey(inspected, published)
		finding.Detail = fmt.Sprintf("the published key %q cannot be used: %s", candidates[0].id, candidates[0].unusable)
		return []Finding{finding}
	}
	matching := slices.DeleteFunc(slices.Clone(usable), func(key publishedKey) bool {
		return string(key.algorithm) != inspected.Algorithm
	})
	if len(matching) == 0 {
		return []Finding{{
			Reason: BadAlgorithm,
			Detail: fmt.Sprintf("the token has algorithm %q, its key %q is for %q", inspected.Algorithm, usable[0].id, usable[0].algorithm),
			Has:    []string{inspected.Algorithm}, Wanted: []string{string(usable[0].algorithm)},
		}}
	}
	if !madeByOne(token, matching) {
		return []Finding{{
			Reason: BadSignature,
			Detail: fmt.Sprintf("%s of the issuer did not make this signature: the token was changed, or signed with another key", list("key", ids(matching))),
		}}
	}
	return nil
}

func madeByOne(token string, keys []publishedKey) bool {
	signed, err := jose.ParseSignedCompact(token, []jose.SignatureAlgorithm{jose.RS256, jose.ES256})
	if err != nil {
		return false
	}
	return slices.ContainsFunc(keys, func(key publishedKey) bool {
		_, err := signed.Verify(key.key)
		return err == nil
	})
}

func unknownKey(inspected Inspection, published []publishedKey) Finding {
	names := ids(published)
	return Finding{
		Reason: UnknownKey,
		Detail: fmt.Sprintf("the token is signed with %s, the issuer publishes %s", list("key", []string{inspected.KeyID}), list("key", names)),
		Has:    []string{inspected.KeyID}, Wanted: names,
	}
}

func ids(keys []publishedKey) []string {
	var names []string
	for _, key := range keys {
		names = append(names, key.id)
	}
	return names
}
