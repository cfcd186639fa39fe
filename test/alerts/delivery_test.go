package alerts

import "time"

func deliveryScenarios() []scenario {
	return []scenario{
		{"CredenceIdentityClusterUnreachable", "more than five minutes", []string{
			`credence_agent_identity_cluster_outage_seconds{instance="a"} 0x4 0+60x20`,
			`credence_agent_identity_cluster_outage_seconds{instance="b"} 0x25`,
		}, map[string]time.Duration{`{}`: 12 * time.Minute}},
		{"CredenceIdentityClusterUnreachable", "two short outages", []string{
			`credence_agent_identity_cluster_outage_seconds{instance="a"} 0+60x5 0x3 0+60x5 0x10`,
		}, nil},

		{"CredenceTokenExpiresSoon", "ten minutes left", []string{
			`credence_agent_soonest_expiry_seconds{instance="a"} 720-60x20`,
		}, map[string]time.Duration{`{}`: 5 * time.Minute}},
		{"CredenceTokenExpiresSoon", "renewed at the last moment", []string{
			`credence_agent_soonest_expiry_seconds{instance="a"} 720-60x2 2200-60x20`,
		}, nil},
		{"CredenceTokenExpiresSoon", "expired", []string{`credence_agent_soonest_expiry_seconds{instance="a"} -60-60x20`}, nil},

		{"CredenceTokenExpired", "not replaced", []string{
			`credence_agent_soonest_expiry_seconds{instance="a"} 150-60x20`,
		}, map[string]time.Duration{`{}`: 5 * time.Minute}},
		{"CredenceTokenExpired", "renewed in time", []string{`credence_agent_soonest_expiry_seconds{instance="a"} 150-60x2 2200-60x20`}, nil},

		{"CredenceDeliveryFailing", "the agent may not, again and again", []string{
			`credence_agent_failures_total{cause="agent_forbidden",instance="a"} 0x4 1+1x30`,
			`credence_agent_failures_total{cause="write_failed",instance="a"} 0x35`,
		}, map[string]time.Duration{`{cause="agent_forbidden"}`: 20 * time.Minute}},
		{"CredenceDeliveryFailing", "each of the causes", []string{
			`credence_agent_failures_total{cause="no_signing_key",instance="a"} 0+1x30`,
			`credence_agent_failures_total{cause="refused",instance="a"} 0+1x30`,
			`credence_agent_failures_total{cause="throttled",instance="a"} 0+1x30`,
			`credence_agent_failures_total{cause="review_failed",instance="a"} 0+1x30`,
			`credence_agent_failures_total{cause="token_unusable",instance="a"} 0+1x30`,
			`credence_agent_failures_total{cause="write_failed",instance="a"} 0+1x30`,
		}, map[string]time.Duration{
			`{cause="no_signing_key"}`: 16 * time.Minute, `{cause="refused"}`: 16 * time.Minute, `{cause="throttled"}`: 16 * time.Minute, `{cause="review_failed"}`: 16 * time.Minute,
			`{cause="token_unusable"}`: 16 * time.Minute, `{cause="write_failed"}`: 16 * time.Minute,
		}},
		{"CredenceDeliveryFailing", "once, an outage, and mistakes of users", []string{
			`credence_agent_failures_total{cause="write_failed",instance="a"} 0x4 1x40`,
			`credence_agent_failures_total{cause="unreachable",instance="a"} 0+3x45`,
			`credence_agent_failures_total{cause="annotation_invalid",instance="a"} 0+1x45`,
			`credence_agent_failures_total{cause="identity_missing",instance="a"} 0+1x45`,
			`credence_agent_failures_total{cause="not_own",instance="a"} 0+1x45`,
			`credence_agent_failures_total{cause="use_denied",instance="a"} 0+1x45`,
		}, nil},

		{"CredenceContextDeliveriesFailing", "each of the states, of the agent that works", []string{
			`credence_agent_context_deliveries{state="delivered",instance="a"} 9x30`,
			`credence_agent_context_deliveries{state="waiting",instance="a"} 1x30`,
			`credence_agent_context_deliveries{state="not_enabled",instance="a"} 0x4 3x30`,
			`credence_agent_context_deliveries{state="not_own",instance="a"} 1x30`,
			`credence_agent_context_deliveries{state="not_written",instance="a"} 1x30`,
			`credence_agent_context_deliveries{state="not_enabled",instance="b"} 0x35`,
		}, map[string]time.Duration{
			`{state="waiting"}`: 15 * time.Minute, `{state="not_enabled"}`: 20 * time.Minute, `{state="not_own"}`: 15 * time.Minute, `{state="not_written"}`: 15 * time.Minute,
		}},
		{"CredenceContextDeliveriesFailing", "delivered, for a while, and mistakes in objects", []string{
			`credence_agent_context_deliveries{state="delivered",instance="a"} 9x30`,
			`credence_agent_context_deliveries{state="not_enabled",instance="a"} 1x10 0x5 1x10 0x5`,
			`credence_agent_context_deliveries{state="problem",instance="a"} 1x30`,
			`credence_agent_context_deliveries{state="conflict",instance="a"} 1x30`,
		}, nil},

		{"CredenceSecretsAskInVain", "each of the causes, once", []string{
			`credence_agent_failures_total{cause="annotation_invalid",instance="a"} 0x4 1x20`,
			`credence_agent_failures_total{cause="identity_missing",instance="a"} 0x4 1x20`,
			`credence_agent_failures_total{cause="not_own",instance="a"} 0x4 1x20`,
			`credence_agent_failures_total{cause="use_denied",instance="a"} 0x4 1x20`,
		}, map[string]time.Duration{
			`{cause="annotation_invalid"}`: 5 * time.Minute, `{cause="identity_missing"}`: 5 * time.Minute,
			`{cause="not_own"}`: 5 * time.Minute, `{cause="use_denied"}`: 5 * time.Minute,
		}},
		{"CredenceSecretsAskInVain", "what users cannot mend, and mistakes of long ago", []string{
			`credence_agent_failures_total{cause="unreachable",instance="a"} 0+1x30`,
			`credence_agent_failures_total{cause="agent_forbidden",instance="a"} 0+1x30`,
			`credence_agent_failures_total{cause="no_signing_key",instance="a"} 0+1x30`,
			`credence_agent_failures_total{cause="refused",instance="a"} 0+1x30`,
			`credence_agent_failures_total{cause="server_failed",instance="a"} 0+1x30`,
			`credence_agent_failures_total{cause="throttled",instance="a"} 0+1x30`,
			`credence_agent_failures_total{cause="review_failed",instance="a"} 0+1x30`,
			`credence_agent_failures_total{cause="token_unusable",instance="a"} 0+1x30`,
			`credence_agent_failures_total{cause="write_failed",instance="a"} 0+1x30`,
			`credence_agent_failures_total{cause="use_denied",instance="a"} 7x30`,
		}, nil},

		{"CredencePodsUnanswered", "each of the codes", []string{
			`credence_agent_pods_requests_total{code="500",instance="a"} 0+1x30`,
			`credence_agent_pods_requests_total{code="503",instance="a"} 0x4 1+1x30`,
			`credence_agent_pods_requests_total{code="other",instance="a"} 0+1x30`,
		}, map[string]time.Duration{`{code="500"}`: 16 * time.Minute, `{code="503"}`: 20 * time.Minute, `{code="other"}`: 16 * time.Minute}},
		{"CredencePodsUnanswered", "once, and what callers do", []string{
			`credence_agent_pods_requests_total{code="503",instance="a"} 0x4 1x40`,
			`credence_agent_pods_requests_total{code="201",instance="a"} 0+1x45`,
			`credence_agent_pods_requests_total{code="400",instance="a"} 0+1x45`,
			`credence_agent_pods_requests_total{code="401",instance="a"} 0+1x45`,
			`credence_agent_pods_requests_total{code="403",instance="a"} 0+1x45`,
			`credence_agent_pods_requests_total{code="404",instance="a"} 0+1x45`,
			`credence_agent_pods_requests_total{code="429",instance="a"} 0+1x45`,
		}, nil},

		{"CredencePasswordsExpired", "not replaced", []string{
			`credence_registry_soonest_expiry_seconds{instance="a"} 150-60x20`,
		}, map[string]time.Duration{`{}`: 5 * time.Minute}},
		{"CredencePasswordsExpired", "renewed in time", []string{`credence_registry_soonest_expiry_seconds{instance="a"} 150-60x2 2200-60x20`}, nil},

		{"CredencePasswordsFailing", "each of the causes", []string{
			`credence_registry_failures_total{cause="review_failed",instance="a"} 0+1x30`,
			`credence_registry_failures_total{cause="registries_invalid",instance="a"} 0+1x30`,
			`credence_registry_failures_total{cause="registry_refused",instance="a"} 0x4 1+1x30`,
			`credence_registry_failures_total{cause="write_failed",instance="a"} 0+1x30`,
		}, map[string]time.Duration{
			`{cause="review_failed"}`: 16 * time.Minute, `{cause="registries_invalid"}`: 16 * time.Minute,
			`{cause="registry_refused"}`: 20 * time.Minute, `{cause="write_failed"}`: 16 * time.Minute,
		}},
		{"CredencePasswordsFailing", "once, and mistakes of users", []string{
			`credence_registry_failures_total{cause="registry_refused",instance="a"} 0x4 1x40`,
			`credence_registry_failures_total{cause="annotation_invalid",instance="a"} 0+1x45`,
			`credence_registry_failures_total{cause="registry_unknown",instance="a"} 0+1x45`,
			`credence_registry_failures_total{cause="use_denied",instance="a"} 0+1x45`,
		}, nil},
	}
}
