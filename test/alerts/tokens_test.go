package alerts

import "time"

func tokenScenarios() []scenario {
	return []scenario{
		{"CredenceTokensUnavailable", "five minutes", []string{
			`credence_tokens_refused_total{reason="ServiceUnavailable",instance="a"} 0x9 0+3x20`,
			`credence_tokens_refused_total{reason="ServiceUnavailable",instance="b"} 0x30`,
		}, map[string]time.Duration{`{reason="ServiceUnavailable"}`: 16 * time.Minute}},
		{"CredenceTokensUnavailable", "a burst, and callers without rights", []string{
			`credence_tokens_refused_total{reason="ServiceUnavailable",instance="a"} 0x9 3x20`,
			`credence_tokens_refused_total{reason="Forbidden",instance="a"} 0+9x30`,
		}, nil},

		{"CredenceTokenErrors", "two in a hundred", []string{
			`credence_tokens_refused_total{reason="InternalError",instance="a"} 0+2x30`,
			`credence_tokens_issued_total{algorithm="RS256",instance="a"} 0+60x30`,
			`credence_tokens_issued_total{algorithm="ES256",instance="b"} 0+40x30`,
		}, map[string]time.Duration{`{}`: 6 * time.Minute}},
		{"CredenceTokenErrors", "all, from the start", []string{
			`credence_tokens_refused_total{reason="InternalError",instance="a"} 0+1x30`,
		}, map[string]time.Duration{`{}`: 6 * time.Minute}},
		{"CredenceTokenErrors", "less than one in a hundred", []string{
			`credence_tokens_refused_total{reason="InternalError",instance="a"} 0+1x30`,
			`credence_tokens_issued_total{algorithm="RS256",instance="a"} 0+60x30`,
			`credence_tokens_issued_total{algorithm="ES256",instance="b"} 0+60x30`,
		}, nil},
		{"CredenceTokenErrors", "errors of callers", []string{
			`credence_tokens_refused_total{reason="Forbidden",instance="a"} 0+50x30`,
			`credence_tokens_refused_total{reason="InternalError",instance="a"} 0x30`,
			`credence_tokens_issued_total{algorithm="RS256",instance="a"} 0+1x30`,
		}, nil},

		{"CredenceRingStale", "one replica of two", []string{
			`credence_apiserver_ring_age_seconds{instance="a"} 5 15 25 35 95 155`,
			`credence_apiserver_ring_age_seconds{instance="b"} 5x5`,
		}, map[string]time.Duration{`{instance="a"}`: 4 * time.Minute}},
		{"CredenceRingStale", "a read that came late", []string{`credence_apiserver_ring_age_seconds{instance="a"} 5 30 31 5 10 30 30`}, nil},

		{"CredenceSigningSlow", "one in twenty", []string{
			`credence_tokens_signing_duration_seconds_bucket{algorithm="RS256",le="0.05",instance="a"} 0+90x30`,
			`credence_tokens_signing_duration_seconds_bucket{algorithm="RS256",le="0.25",instance="a"} 0+95x30`,
			`credence_tokens_signing_duration_seconds_bucket{algorithm="RS256",le="1",instance="a"} 0+100x30`,
			`credence_tokens_signing_duration_seconds_bucket{algorithm="RS256",le="+Inf",instance="a"} 0+100x30`,
		}, map[string]time.Duration{`{algorithm="RS256"}`: 11 * time.Minute}},
		{"CredenceSigningSlow", "one in a thousand", []string{
			`credence_tokens_signing_duration_seconds_bucket{algorithm="RS256",le="0.05",instance="a"} 0+500x30`,
			`credence_tokens_signing_duration_seconds_bucket{algorithm="RS256",le="0.25",instance="a"} 0+999x30`,
			`credence_tokens_signing_duration_seconds_bucket{algorithm="RS256",le="1",instance="a"} 0+1000x30`,
			`credence_tokens_signing_duration_seconds_bucket{algorithm="RS256",le="+Inf",instance="a"} 0+1000x30`,
		}, nil},
	}
}
