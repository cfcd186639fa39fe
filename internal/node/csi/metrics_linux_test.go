package csi_test

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/credence-id/credence/test/testkit"
)

// The driver counts volumes, tokens by why they were written, and failures by their cause.
func TestMetrics(t *testing.T) {
	w := newWorld(t)
	shows := func(when, want string) {
		t.Helper()
		if err := testutil.GatherAndCompare(w.meters, strings.NewReader(want), "credence_node_volumes", "credence_node_soonest_expiry_seconds"); err != nil {
			t.Errorf("%s: %v", when, err)
		}
	}
	const none = "# HELP credence_node_volumes Volumes with a token that the driver knows.\n# TYPE credence_node_volumes gauge\ncredence_node_volumes 0\n"
	const expiry = "# HELP credence_node_soonest_expiry_seconds Time until the token that expires first expires; negative once it has. Absent without tokens.\n# TYPE credence_node_soonest_expiry_seconds gauge\ncredence_node_soonest_expiry_seconds "
	shows("at first", none)
	w.refusal = absent()
	if err := w.publish(); err == nil {
		t.Error("a volume without an identity")
	}
	shows("after a refusal", none)
	w.refusal = nil
	w.mustPublish()
	one := strings.Replace(none, "volumes 0", "volumes 1", 1)
	shows("with a volume", expiry+"3600\n"+one)
	w.clock.Step(50 * time.Minute)
	shows("later", expiry+"600\n"+one)
	w.mustPublish()
	shows("renewed", expiry+"3600\n"+one)
	// A driver that has restarted knows its volumes by the kubelet's next publication.
	w.start()
	w.mustPublish()
	shows("after a restart", expiry+"3600\n"+one)
	w.start()
	testkit.Must(t, w.unpublish())
	shows("without the volume", none)
}

func TestCounters(t *testing.T) {
	w := newWorld(t)
	w.refusal = absent()
	if err := w.publish(); err == nil {
		t.Error("a volume without an identity")
	}
	w.refusal = nil
	w.mustPublish()
	w.clock.Step(50 * time.Minute)
	w.mustPublish()
	invalid := w.call()
	invalid.Readonly = false
	if _, err := w.driver.NodePublishVolume(t.Context(), invalid); err == nil {
		t.Error("a volume that can be written")
	}
	families := testkit.Need(w.meters.Gather())(t)
	got := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.Metric {
			if counter := metric.GetCounter(); counter.GetValue() > 0 {
				got[family.GetName()+" "+metric.Label[0].GetValue()] = counter.GetValue()
			}
			if family.GetName() == "credence_node_mount_seconds" {
				got["mounts"] = float64(metric.GetHistogram().GetSampleCount())
			}
		}
	}
	want := map[string]float64{
		"credence_node_failures_total identity_missing": 1, "credence_node_failures_total invalid": 1,
		"credence_node_tokens_total first": 1, "credence_node_tokens_total renewed": 1, "mounts": 1,
	}
	if len(got) != len(want) {
		t.Errorf("counted %v, want %v", got, want)
	}
	for name, value := range want {
		if got[name] != value {
			t.Errorf("%s is %v, want %v", name, got[name], value)
		}
	}
}
