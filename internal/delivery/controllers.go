package delivery

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/credence-id/credence/internal/delivery/accounts"
	"github.com/credence-id/credence/internal/delivery/contexts"
	"github.com/credence-id/credence/internal/delivery/failures"
	"github.com/credence-id/credence/internal/delivery/gates"
	"github.com/credence-id/credence/internal/delivery/outage"
	"github.com/credence-id/credence/internal/delivery/reports"
	"github.com/credence-id/credence/internal/delivery/secrets"
)

// Cluster is the workload cluster, as the controllers see it.
type Cluster struct {
	Client client.Client // reads from the cache
	Live   client.Reader // reads the API
	// Pods lists the pods of a service account that have not ended.
	Pods func(ctx context.Context, account types.NamespacedName) ([]corev1.Pod, error)
	// Serves reports whether the agent has the Secrets of a namespace.
	Serves func(namespace string) bool
	// QueueSecret and QueueAccount queue a Secret, or a service account, after a while.
	QueueSecret, QueueAccount func(key types.NamespacedName, after time.Duration)
}

// Controllers are those of the agent, without what they watch.
type Controllers struct {
	Secrets  *secrets.Controller
	Contexts *contexts.Controller // nil: nothing is delivered for context objects
	Accounts *accounts.Controller
	Gates    *gates.Controller
	Recorder *Recorder
}

// usesEvery is how often reports of the use of bindings are sent again: the server forgets them after twice that time.
const usesEvery = time.Hour

// NewControllers returns the controllers for a cluster.
func NewControllers(config Config, c Cluster) Controllers {
	ledger, failed, wanted, renewals := &secrets.Ledger{}, &accounts.Ledger{}, &contexts.Ledger{}, accounts.NewRenewals()
	silences := outage.New(config.Clock, config.Random, c.QueueSecret)
	recorder := newRecorder(config.Clock, ledger, wanted, silences)
	reporter := func(to reports.Sender, repeat time.Duration) *reports.Reporter {
		if to == nil {
			return nil
		}
		return reports.New(to, repeat, config.Clock, config.Log)
	}
	ofIdentities := reporter(config.Reports, 0)
	made := Controllers{
		Secrets: secrets.New(secrets.Needs{
			Client: c.Client, Live: c.Live,
			Identities: config.Identities, Bindings: config.Bindings, Tokens: config.Tokens, Data: config.Data, Keys: config.Keys, Reviews: config.Reviews,
			NamesAccounts: config.NamesAccounts, Window: config.Window, Duration: config.Duration, Clock: config.Clock, Random: config.Random,
			Events: config.Events, Recorder: recorder, Ledger: ledger, Outage: silences, Renewals: renewals, Reports: ofIdentities, Uses: reporter(config.Uses, usesEvery), OwnIdentities: config.Deliveries == nil,
			AccountDone: func(account types.NamespacedName) { c.QueueAccount(account, 0) }, Log: config.Log,
		}),
		Accounts: accounts.New(accounts.Needs{
			Client: c.Client, Live: c.Live, Identities: config.Identities, Reviews: config.Reviews, Clock: config.Clock, Random: config.Random,
			Events: config.Events, Renewals: renewals, Queue: c.QueueSecret, Serves: c.Serves, Failures: failed, Pods: c.Pods, Delivery: config.Delivery, Reports: ofIdentities, Log: config.Log,
		}),
		Gates: gates.New(gates.Needs{
			Client: c.Client, Clock: config.Clock, Events: config.Events,
			OfSecret:  func(key types.NamespacedName) failures.Failure { return ledger.Get(key).Reported },
			OfAccount: func(key types.NamespacedName) failures.Failure { return failed.Get(key).Reported },
			Released:  recorder.gates.Inc,
		}),
		Recorder: recorder,
	}
	if config.Deliveries != nil {
		made.Contexts = contexts.New(contexts.Needs{
			Client: c.Client, Live: c.Live, Deliveries: config.Deliveries, Serves: c.Serves, Clock: config.Clock, Random: config.Random,
			Events: config.Events, Ledger: wanted, Log: config.Log,
		})
		made.Secrets.Contexts = made.Contexts
	}
	return made
}
