package alerts

import "time"

func discoveryScenarios() []scenario {
	return []scenario{
		{"CredenceDiscoverySourceUnhealthy", "ten minutes", []string{
			`credence_discovery_source_healthy{instance="a"} 1x4 0x20`,
			`credence_discovery_source_healthy{instance="b"} 1x25`,
		}, map[string]time.Duration{`{instance="a"}`: 15 * time.Minute}},
		{"CredenceDiscoverySourceUnhealthy", "less than ten minutes", []string{`credence_discovery_source_healthy{instance="a"} 1x4 0x9 1x10`}, nil},

		{"CredenceDocumentsRefused", "once", []string{
			`credence_discovery_load_refusals_total{reason="issuer",instance="a"} 0x4 1x20`,
		}, map[string]time.Duration{`{reason="issuer"}`: 5 * time.Minute}},
		{"CredenceDocumentsRefused", "an outage of the source, and refusals of the past", []string{
			`credence_discovery_load_refusals_total{reason="unreadable",instance="a"} 0+1x20`,
			`credence_discovery_load_refusals_total{reason="issuer",instance="a"} 7x20`,
		}, nil},

		{"CredencePrivateKeyInDocuments", "once", []string{
			`credence_discovery_load_refusals_total{reason="private",instance="a"} 0x4 1x20`,
		}, map[string]time.Duration{`{reason="private"}`: 5 * time.Minute}},
		{"CredencePrivateKeyInDocuments", "another reason", []string{`credence_discovery_load_refusals_total{reason="key",instance="a"} 0x4 1x20`}, nil},

		{"CredenceDiscoveryUnavailable", "five minutes", []string{
			`credence_discovery_requests_total{document="jwks",code="503",instance="a"} 0x4 0+2x20`,
			`credence_discovery_requests_total{document="openid-configuration",code="503",instance="a"} 0x4 0+2x20`,
		}, map[string]time.Duration{`{code="503"}`: 11 * time.Minute}},
		{"CredenceDiscoveryUnavailable", "a burst at the start, and good answers", []string{
			`credence_discovery_requests_total{document="jwks",code="503",instance="a"} 0 9x20`,
			`credence_discovery_requests_total{document="jwks",code="200",instance="a"} 0+50x20`,
		}, nil},

		{"CredenceCertificateExpires", "within seven days", []string{
			`credence_discovery_certificate_expiry_timestamp_seconds{instance="a"} 605400x40`,
		}, map[string]time.Duration{`{instance="a"}`: 26 * time.Minute}},
		{"CredenceCertificateExpires", "renewed in time", []string{`credence_discovery_certificate_expiry_timestamp_seconds{instance="a"} 605400x19 900000x30`}, nil},

		{"CredenceCertificateRefused", "once", []string{
			`credence_discovery_certificate_refusals_total{instance="a"} 0x4 1x20`,
		}, map[string]time.Duration{`{}`: 5 * time.Minute}},
		{"CredenceCertificateRefused", "long ago", []string{`credence_discovery_certificate_refusals_total{instance="a"} 2x30`}, nil},
	}
}
