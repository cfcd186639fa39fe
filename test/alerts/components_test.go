package alerts

import "time"

func componentScenarios() []scenario {
	var all []scenario
	for _, component := range []struct {
		alert, job string
		after      time.Duration
	}{
		{"CredenceAPIServerAbsent", "credence-apiserver", 5 * time.Minute},
		{"CredenceControllerAbsent", "credence-controller", 15 * time.Minute},
		{"CredenceDiscoveryAbsent", "credence-discovery", 5 * time.Minute},
		{"CredenceAgentAbsent", "credence-agent", 5 * time.Minute},
		{"CredenceWebhookAbsent", "credence-webhook", 5 * time.Minute},
	} {
		up := `up{job="` + component.job + `",instance=`
		all = append(all,
			scenario{component.alert, "down", []string{
				up + `"a"} 1x4 0x30`, up + `"b"} 1x4 0x30`,
			}, map[string]time.Duration{`{}`: 5*time.Minute + component.after}},
			scenario{component.alert, "not known to Prometheus", []string{`up{job="another"} 1x30`}, map[string]time.Duration{`{}`: component.after}},
			scenario{component.alert, "one of two is down", []string{up + `"a"} 0x30`, up + `"b"} 1x30`}, nil},
			scenario{component.alert, "restarts", []string{up + `"a"} 1x4 0x3 1x30`}, nil},
		)
	}
	// Of credence-registry only where it has kept passwords.
	const registry, kept = `up{job="credence-registry",instance=`, `credence_registry_secrets{instance=`
	return append(all,
		scenario{"CredenceRegistryAbsent", "down", []string{registry + `"a"} 1x4 0x30`, registry + `"b"} 1x4 0x30`, kept + `"a"} 2x4`, kept + `"b"} 0x4`}, map[string]time.Duration{`{}`: 20 * time.Minute}},
		scenario{"CredenceRegistryAbsent", "its targets are gone", []string{`up{job="another"} 1x34`, registry + `"a"} 1x4 stale`, kept + `"a"} 2x4`}, map[string]time.Duration{`{}`: 20 * time.Minute}},
		scenario{"CredenceRegistryAbsent", "not installed", []string{`up{job="another"} 1x30`}, nil},
		scenario{"CredenceRegistryAbsent", "without Secrets", []string{registry + `"a"} 1x4 0x30`, kept + `"a"} 0x4`}, nil},
		scenario{"CredenceRegistryAbsent", "one of two is down", []string{registry + `"a"} 0x30`, registry + `"b"} 1x30`, kept + `"b"} 2x30`}, nil},
	)
}
