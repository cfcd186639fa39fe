package workloadidentity

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/wording"
	"k8s.io/apimachinery/pkg/runtime"
)

// canonical writes the strings of a providerConfig in the one form that JSON and YAML read alike: printable characters as
// they are, all else as \u and four digits. YAML does not know the escapes "\/" and "\ud83d\ude00", refuses control characters
// and takes others for line breaks: one such string, and no list of its namespace could be answered in YAML.
func canonical(config *runtime.RawExtension) *runtime.RawExtension {
	if config == nil || !json.Valid(config.Raw) || !utf8.Valid(config.Raw) {
		return config // refused by the validation
	}
	raw := make([]byte, 0, len(config.Raw))
	for token := range tokens(config.Raw) {
		var text string
		if token[0] != '"' || loneSurrogate(token) || json.Unmarshal(token, &text) != nil {
			raw = append(raw, token...)
			continue
		}
		raw = appendString(raw, text)
	}
	return &runtime.RawExtension{Raw: raw}
}

func appendString(raw []byte, text string) []byte {
	raw = append(raw, '"')
	for _, r := range text {
		switch {
		case r == '"' || r == '\\':
			raw = append(raw, '\\', byte(r))
		case unicode.IsPrint(r) || r > 0xffff:
			raw = utf8.AppendRune(raw, r)
		default:
			raw = fmt.Appendf(raw, `\u%04x`, r)
		}
	}
	return append(raw, '"')
}

// tokens yields valid JSON in pieces: strings with their quotes, numbers, and the bytes between.
func tokens(raw []byte) func(yield func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for len(raw) > 0 {
			end := 1
			switch c := raw[0]; {
			case c == '"':
				for ; raw[end] != '"'; end++ {
					if raw[end] == '\\' {
						end++
					}
				}
				end++
			case isNumber(c):
				for end < len(raw) && (isNumber(raw[end]) || strings.IndexByte("+.eE", raw[end]) >= 0) {
					end++
				}
			}
			if !yield(raw[:end]) {
				return
			}
			raw = raw[end:]
		}
	}
}

func isNumber(c byte) bool { return c == '-' || '0' <= c && c <= '9' }

// checkText refuses what readers of JSON understand differently: half a character, and numbers that the API machinery and
// its clients change, as they hold numbers in 64 bits.
func checkText(raw []byte) error {
	if !json.Valid(raw) {
		return nil // reported by validateProviderConfig
	}
	for token := range tokens(raw) {
		switch {
		case token[0] == '"' && loneSurrogate(token):
			return errors.New("has half of a surrogate pair, which is not a character")
		case isNumber(token[0]) && changes(string(token)):
			return errNumber(string(token))
		}
	}
	return nil
}

func errNumber(number string) error {
	return fmt.Errorf("has the number %s, which does not fit in 64 bits: write it as a string", wording.Abbreviate(number))
}

// loneSurrogate reports whether a string of JSON has an escape that is half of a pair.
func loneSurrogate(token []byte) bool {
	for i := 0; i < len(token); i++ {
		if token[i] != '\\' {
			continue
		}
		first, ok := escaped(token[i:])
		if !ok {
			i++ // an escape of one character
			continue
		}
		i += 5
		if !utf16.IsSurrogate(first) {
			continue
		}
		second, ok := escaped(token[i+1:])
		if !ok || utf16.DecodeRune(first, second) == unicode.ReplacementChar {
			return true
		}
		i += 6
	}
	return false
}

// escaped reads an escape of the form \uXXXX.
func escaped(text []byte) (rune, bool) {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(text[2:6]), 16, 16)
	return rune(n), err == nil
}

// changes reports whether a number has another value after it was read as int64 or float64 and written again.
func changes(number string) bool {
	if _, err := strconv.ParseInt(number, 10, 64); err == nil {
		return false
	}
	read, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return true
	}
	digits, exponent := decimal(number)
	again, exponentAgain := decimal(strconv.FormatFloat(read, 'e', -1, 64))
	return digits != again || exponent != exponentAgain
}

// decimal is the value of a number, without sign, as its significant digits and a power of ten.
func decimal(number string) (string, int) {
	number, power, _ := strings.Cut(strings.ToLower(strings.TrimPrefix(number, "-")), "e")
	exponent, err := strconv.Atoi(strings.TrimPrefix(power, "+"))
	if power != "" && err != nil {
		exponent = 1 << 30 // no number that can be read has this exponent, unless it is zero
	}
	whole, fraction, _ := strings.Cut(number, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	exponent -= len(fraction)
	short := strings.TrimRight(digits, "0")
	if short == "" {
		return "", 0
	}
	return short, exponent + len(digits) - len(short)
}

// sameText reports whether a configuration that no reader can be sure of was stored before, and is still the same.
func sameText(system, old v1alpha1.TargetSystem) bool {
	return old.ProviderConfig != nil && sameConfig(system, old) && checkText(old.ProviderConfig.Raw) != nil
}
