package alerts

import "time"

func profileScenarios() []scenario {
	const pods = `credence_profiles_pods{instance="a",state=`
	const looked = `credence_profiles_pods_looked_at_timestamp_seconds{`
	return []scenario{
		{"CredencePodsOutOfSpec", "for an hour", []string{pods + `"stale"} 0x4 2x90`, pods + `"refused"} 0x4 1x90`, pods + `"current"} 7x94`},
			map[string]time.Duration{`{}`: 65 * time.Minute}},
		{"CredencePodsOutOfSpec", "replaced in time", []string{pods + `"stale"} 0x4 2x50 0x40`, pods + `"unknown"} 3x94`}, nil},

		{"CredencePodsNotLookedAt", "a quarter of an hour", []string{looked + `instance="a"} 0x4 240x60`, looked + `instance="b"} 0x64`},
			map[string]time.Duration{`{}`: 25 * time.Minute}},
		{"CredencePodsNotLookedAt", "another replica leads", []string{looked + `instance="a"} 240x64`, looked + `instance="b"} 0x4 300+60x60`}, nil},

		{"CredenceEvictionsStopped", "five minutes", []string{`credence_profiles_evictions_stopped{instance="a"} 0x4 1x30`, `credence_profiles_evictions_stopped{instance="b"} 0x34`},
			map[string]time.Duration{`{}`: 10 * time.Minute}},
		{"CredenceRestartsStopped", "five minutes", []string{`credence_profiles_restarts_stopped{instance="a"} 0x4 1x30`, `credence_profiles_restarts_stopped{instance="b"} 0x34`},
			map[string]time.Duration{`{}`: 10 * time.Minute}},
		{"CredenceRestartsStopped", "ready meanwhile", []string{`credence_profiles_restarts_stopped{instance="a"} 0x4 1x4 0x30`}, nil},
		{"CredenceEvictionsStopped", "ready meanwhile", []string{`credence_profiles_evictions_stopped{instance="a"} 0x4 1x4 0x30`}, nil},
	}
}
