package alerts

import "time"

func certificateScenarios() []scenario {
	const expiry = `credence_certificates_expiry_timestamp_seconds{certificate="authority",instance=`
	return []scenario{
		{"CredenceInstallationCertificateExpires", "within seven days", []string{expiry + `"a"} 605400x40`, expiry + `"b"} 605400x40`},
			map[string]time.Duration{`{certificate="authority"}`: 26 * time.Minute}},
		{"CredenceInstallationCertificateExpires", "renewed in time", []string{expiry + `"a"} 605400x19 900000x30`}, nil},

		{"CredenceCertificatesFailing", "fifteen minutes", []string{
			`credence_certificates_failing{instance="a"} 0x4 1x30`,
			`credence_certificates_failing{instance="b"} 0x34`,
		}, map[string]time.Duration{`{}`: 20 * time.Minute}},
		{"CredenceCertificatesFailing", "an outage of ten minutes", []string{`credence_certificates_failing{instance="a"} 0x4 1x9 0x20`}, nil},
	}
}
