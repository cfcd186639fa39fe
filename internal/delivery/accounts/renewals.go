package accounts

import (
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// Renewals are the Secrets that are to get a new token because their service account requests it.
type Renewals struct {
	mu   sync.Mutex
	open map[types.NamespacedName]map[types.NamespacedName]struct{} // Secrets that are not done yet, by account
}

// NewRenewals returns Renewals without any.
func NewRenewals() *Renewals {
	return &Renewals{open: map[types.NamespacedName]map[types.NamespacedName]struct{}{}}
}

// begin opens a request of an account for Secrets, unless one is open, and reports whether it did.
func (a *Renewals) begin(account types.NamespacedName, secrets []types.NamespacedName) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, open := a.open[account]; open {
		return false
	}
	todo := map[types.NamespacedName]struct{}{}
	for _, secret := range secrets {
		todo[secret] = struct{}{}
	}
	a.open[account] = todo
	return true
}

// Requested reports whether a Secret of an account is to get a new token.
func (a *Renewals) Requested(account, secret types.NamespacedName) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, ok := a.open[account][secret]
	return ok
}

// Done records that a Secret has its new token.
func (a *Renewals) Done(account, secret types.NamespacedName) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if todo, open := a.open[account]; open {
		delete(todo, secret)
	}
}

// keep drops from a request the Secrets that are gone, or not needed any more: they will never be done.
func (a *Renewals) keep(account types.NamespacedName, secrets []types.NamespacedName) {
	a.mu.Lock()
	defer a.mu.Unlock()
	maps.DeleteFunc(a.open[account], func(secret types.NamespacedName, _ struct{}) bool { return !slices.Contains(secrets, secret) })
}

// state reports whether a request of an account is open, and whether all its Secrets are done.
func (a *Renewals) state(account types.NamespacedName) (open, complete bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	todo, open := a.open[account]
	return open, open && len(todo) == 0
}

// end closes the request of an account.
func (a *Renewals) end(account types.NamespacedName) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.open, account)
}
