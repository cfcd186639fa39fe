package profiles

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	accounts "github.com/credence-id/credence/api/accounts/v1alpha1"
)

// listTimeout bounds how long a scrape waits for the cache, which may not have been read yet.
const listTimeout = time.Second

var profilesDesc = prometheus.NewDesc("credence_profiles", "ServiceAccountProfiles, by condition and its status.", []string{"condition", "status"}, nil)

// counted are the conditions that profiles are counted by.
var counted = []string{accounts.ConditionReady, accounts.ConditionUsernameUnique}

// collector counts the cached profiles of a reader when metrics are read.
type collector struct{ profiles client.Reader }

// Describe implements prometheus.Collector.
func (collector) Describe(descs chan<- *prometheus.Desc) { descs <- profilesDesc }

// Collect implements prometheus.Collector.
func (c collector) Collect(metrics chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), listTimeout)
	defer cancel()
	list := &accounts.ServiceAccountProfileList{}
	if err := c.profiles.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return // there is nothing to count yet
	}
	for _, condition := range counted {
		counts := map[metav1.ConditionStatus]int{}
		for i := range list.Items {
			status := metav1.ConditionUnknown
			if found := meta.FindStatusCondition(list.Items[i].Status.Conditions, condition); found != nil {
				status = found.Status
			}
			counts[status]++
		}
		for _, status := range []metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown} {
			metrics <- prometheus.MustNewConstMetric(profilesDesc, prometheus.GaugeValue, float64(counts[status]), condition, string(status))
		}
	}
}
