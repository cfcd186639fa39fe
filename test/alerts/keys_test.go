package alerts

import "time"

func keyScenarios() []scenario {
	return []scenario{
		{"CredenceNoSigningKey", "for a minute", []string{
			`credence_keys_condition{type="NoSigningKey",instance="a",pod="a"} 0x4 1x10`,
		}, map[string]time.Duration{`{type="NoSigningKey"}`: 6 * time.Minute}},
		{"CredenceNoSigningKey", "in one cluster of two", []string{
			`credence_keys_condition{type="NoSigningKey",instance="a",cluster="one"} 0x20`,
			`credence_keys_condition{type="NoSigningKey",instance="b",cluster="two"} 1x20`,
		}, map[string]time.Duration{`{cluster="two", type="NoSigningKey"}`: time.Minute}},
		{"CredenceNoSigningKey", "for a moment, and other conditions", []string{
			`credence_keys_condition{type="NoSigningKey",instance="a"} 0x4 1 0x10`,
			`credence_keys_condition{type="CapReached",instance="a"} 1x15`,
		}, nil},

		{"CredenceRotationOverdue", "an hour", []string{
			`credence_keys_next_change_seconds{instance="a"} -3500-60x20`,
			`credence_keys_condition{type="AwaitingGates",instance="a"} 0x20`,
		}, map[string]time.Duration{`{}`: 7 * time.Minute}},
		{"CredenceRotationOverdue", "while another cluster awaits gates", []string{
			`credence_keys_next_change_seconds{cluster="one"} -4000-60x20`,
			`credence_keys_next_change_seconds{cluster="two"} -4000-60x20`,
			`credence_keys_condition{type="AwaitingGates",cluster="two"} 1x20`,
		}, map[string]time.Duration{`{cluster="one"}`: 5 * time.Minute}},
		{"CredenceRotationOverdue", "less than an hour", []string{`credence_keys_next_change_seconds{instance="a"} 600-60x70`}, nil},
		{"CredenceRotationOverdue", "awaits gates", []string{
			`credence_keys_next_change_seconds{instance="a"} -9000-60x20`,
			`credence_keys_condition{type="AwaitingGates",instance="a"} 1x20`,
		}, nil},

		{"CredenceKeyCapReached", "an hour", []string{
			`credence_keys_condition{type="CapReached",instance="a"} 0x4 1x70`,
		}, map[string]time.Duration{`{type="CapReached"}`: 65 * time.Minute}},
		{"CredenceKeyCapReached", "less than an hour", []string{`credence_keys_condition{type="CapReached",instance="a"} 0x4 1x59 0x10`}, nil},

		{"CredenceAwaitingGates", "a day", []string{
			`credence_keys_condition{type="AwaitingGates",instance="a"} 0x9 1x1500`,
		}, map[string]time.Duration{`{type="AwaitingGates"}`: 10*time.Minute + 24*time.Hour}},
		{"CredenceAwaitingGates", "a day in which another controller took over", []string{
			`credence_keys_condition{type="AwaitingGates",instance="a"} 1x700 stale`,
			`credence_keys_condition{type="AwaitingGates",instance="b"} _x707 1x800`,
		}, map[string]time.Duration{`{type="AwaitingGates"}`: 24 * time.Hour}},
		{"CredenceAwaitingGates", "less than a day", []string{`credence_keys_condition{type="AwaitingGates",instance="a"} 1x1400 0x100`}, nil},

		{"CredenceClockBehind", "five minutes", []string{
			`credence_keys_condition{type="ClockBehind",instance="a"} 0x4 1x10`,
		}, map[string]time.Duration{`{type="ClockBehind"}`: 10 * time.Minute}},
		{"CredenceClockBehind", "less than five minutes", []string{`credence_keys_condition{type="ClockBehind",instance="a"} 0x4 1x4 0x10`}, nil},

		{"CredenceDocumentsBehind", "ten minutes", []string{
			`credence_keys_condition{type="DocumentsBehind",instance="a"} 0x4 1x20`,
		}, map[string]time.Duration{`{type="DocumentsBehind"}`: 15 * time.Minute}},
		{"CredenceDocumentsBehind", "less than ten minutes", []string{`credence_keys_condition{type="DocumentsBehind",instance="a"} 0x4 1x9 0x10`}, nil},

		{"CredenceRevokedKeyPublished", "a minute", []string{
			`credence_keys_condition{type="RevokedKeyPublished",instance="a"} 0x4 1x10`,
		}, map[string]time.Duration{`{type="RevokedKeyPublished"}`: 6 * time.Minute}},
		{"CredenceRevokedKeyPublished", "until the documents follow", []string{
			`credence_keys_condition{type="RevokedKeyPublished",instance="a"} 0x4 1 0x10`,
			`credence_keys_condition{type="DocumentsUnread",instance="a"} 1x15`,
		}, nil},

		{"CredenceDocumentsUnread", "ten minutes", []string{
			`credence_keys_condition{type="DocumentsUnread",instance="a"} 0x4 1x20`,
		}, map[string]time.Duration{`{type="DocumentsUnread"}`: 15 * time.Minute}},
		{"CredenceDocumentsUnread", "less than ten minutes", []string{`credence_keys_condition{type="DocumentsUnread",instance="a"} 0x4 1x9 0x10`}, nil},

		{"CredenceRingUnusable", "an older ring", []string{
			`credence_keys_condition{type="RingUnusable",instance="a"} 0x20`,
			`credence_keys_condition{type="RingSuperseded",instance="a"} 0x4 1x10`,
		}, map[string]time.Duration{`{type="RingSuperseded"}`: 6 * time.Minute}},
		{"CredenceRingUnusable", "a damaged ring", []string{
			`credence_keys_condition{type="RingUnusable",instance="a"} 0x4 1x10`,
		}, map[string]time.Duration{`{type="RingUnusable"}`: 6 * time.Minute}},
		{"CredenceRingUnusable", "for a moment, and no key signs", []string{
			`credence_keys_condition{type="RingUnusable",instance="a"} 0x4 1 0x10`,
			`credence_keys_condition{type="NoSigningKey",instance="a"} 1x15`,
		}, nil},

		{"CredenceRingNotRead", "five minutes", []string{
			`credence_keys_read_timestamp_seconds{instance="a"} 0+60x5 300x20`,
		}, map[string]time.Duration{`{}`: 12 * time.Minute}},
		{"CredenceRingNotRead", "by one who leads no more", []string{
			`credence_keys_read_timestamp_seconds{instance="a"} 0x30`,
			`credence_keys_read_timestamp_seconds{instance="b"} 0+60x30`,
		}, nil},

		{"CredenceRingNotKept", "no leader", []string{
			`up{job="credence-controller",instance="a"} 1x30`,
		}, map[string]time.Duration{`{}`: 10 * time.Minute}},
		{"CredenceRingNotKept", "one of two leads", []string{
			`up{job="credence-controller",instance="a"} 1x30`,
			`up{job="credence-controller",instance="b"} 1x30`,
			`credence_keys_read_timestamp_seconds{instance="b"} 0+60x30`,
		}, nil},
		{"CredenceRingNotKept", "another alert reports that none runs", []string{`up{job="credence-controller",instance="a"} 0x30`}, nil},

		{"CredenceKeyRevoked", "once", []string{
			`credence_keys_events_total{kind="revoked",instance="a"} 0x9 1x100`,
		}, map[string]time.Duration{`{kind="revoked"}`: 10 * time.Minute}},
		{"CredenceKeyRevoked", "long ago, and a rotation", []string{
			`credence_keys_events_total{kind="revoked",instance="a"} 3x100`,
			`credence_keys_events_total{kind="retired",instance="a"} 0x9 1x90`,
		}, nil},
	}
}
