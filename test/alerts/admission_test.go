package alerts

import "time"

func admissionScenarios() []scenario {
	return []scenario{
		{"CredenceAdmissionErrors", "two pods in a hundred", []string{
			`credence_admission_requests_total{handler="pods",outcome="failed",instance="a"} 0+2x30`,
			`credence_admission_requests_total{handler="pods",outcome="failed",instance="b"} 0x30`,
			`credence_admission_requests_total{handler="pods",outcome="patched",instance="a"} 0+40x30`,
			`credence_admission_requests_total{handler="pods",outcome="patched",instance="b"} 0+58x30`,
			`credence_admission_requests_total{handler="secrets",outcome="patched",instance="a"} 0+50x30`,
		}, map[string]time.Duration{`{handler="pods"}`: 6 * time.Minute}},
		{"CredenceAdmissionErrors", "pods and workloads with a gMSA", []string{
			`credence_admission_requests_total{handler="gmsa-validate",outcome="failed",instance="a"} 0+2x30`,
			`credence_admission_requests_total{handler="gmsa-validate",outcome="admitted",instance="a"} 0+98x30`,
			`credence_admission_requests_total{handler="gmsa-templates",outcome="failed",instance="a"} 0+2x30`,
			`credence_admission_requests_total{handler="gmsa-templates",outcome="warned",instance="a"} 0+98x30`,
			`credence_admission_requests_total{handler="gmsa-mutate",outcome="patched",instance="a"} 0+100x30`,
		}, map[string]time.Duration{`{handler="gmsa-validate"}`: 6 * time.Minute, `{handler="gmsa-templates"}`: 6 * time.Minute}},
		{"CredenceAdmissionErrors", "one in two hundred, refusals, and warnings that could not be made", []string{
			`credence_admission_requests_total{handler="pods",outcome="failed",instance="a"} 0+1x30`,
			`credence_admission_requests_total{handler="pods",outcome="patched",instance="a"} 0+199x30`,
			`credence_admission_requests_total{handler="secrets",outcome="failed",instance="a"} 0x30`,
			`credence_admission_requests_total{handler="secrets",outcome="denied",instance="a"} 0+50x30`,
			`credence_admission_requests_total{handler="templates",outcome="failed",instance="a"} 0+50x30`,
		}, nil},

		{"CredenceAdmissionSlow", "one in twenty", []string{
			`credence_admission_duration_seconds_bucket{handler="pods",le="0.5",instance="a"} 0+90x30`,
			`credence_admission_duration_seconds_bucket{handler="pods",le="1",instance="a"} 0+95x30`,
			`credence_admission_duration_seconds_bucket{handler="pods",le="2.5",instance="a"} 0+100x30`,
			`credence_admission_duration_seconds_bucket{handler="pods",le="+Inf",instance="a"} 0+100x30`,
		}, map[string]time.Duration{`{handler="pods"}`: 11 * time.Minute}},
		{"CredenceAdmissionSlow", "one in a thousand", []string{
			`credence_admission_duration_seconds_bucket{handler="pods",le="0.5",instance="a"} 0+990x30`,
			`credence_admission_duration_seconds_bucket{handler="pods",le="1",instance="a"} 0+999x30`,
			`credence_admission_duration_seconds_bucket{handler="pods",le="2.5",instance="a"} 0+1000x30`,
			`credence_admission_duration_seconds_bucket{handler="pods",le="+Inf",instance="a"} 0+1000x30`,
		}, nil},

		{"CredenceCredentialSpecsUnwatched", "a right that was taken away", []string{
			`credence_gmsa_unwatched_seconds{instance="a"} 0 0 60+60x30`,
			`credence_gmsa_unwatched_seconds{instance="b"} 0x30`,
		}, map[string]time.Duration{`{instance="a"}`: 12 * time.Minute}},
		{"CredenceCredentialSpecsUnwatched", "an API server that restarts", []string{
			`credence_gmsa_unwatched_seconds{instance="a"} 0 60 120 180 0x20`,
		}, nil},
	}
}
