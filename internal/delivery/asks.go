package delivery

import (
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// asks remembers which Secrets are to get a new token because the service account that they belong to asks for it.
type asks struct {
	mu   sync.Mutex
	open map[types.NamespacedName]map[types.NamespacedName]struct{} // Secrets that are not done yet, by account
}

func newAsks() *asks {
	return &asks{open: map[types.NamespacedName]map[types.NamespacedName]struct{}{}}
}

// begin opens an ask of an account for Secrets, unless one is open, and says whether it did.
func (a *asks) begin(account types.NamespacedName, secrets []types.NamespacedName) bool {
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

// asked says whether a Secret of an account is to get a new token.
func (a *asks) asked(account, secret types.NamespacedName) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, ok := a.open[account][secret]
	return ok
}

// done says that a Secret has got it.
func (a *asks) done(account, secret types.NamespacedName) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if todo, open := a.open[account]; open {
		delete(todo, secret)
	}
}

// keep leaves out of an ask the Secrets that the account does not need any more: they will never be done.
func (a *asks) keep(account types.NamespacedName, secrets []types.NamespacedName) {
	a.mu.Lock()
	defer a.mu.Unlock()
	maps.DeleteFunc(a.open[account], func(secret types.NamespacedName, _ struct{}) bool { return !slices.Contains(secrets, secret) })
}

// state says whether an ask of an account is open, and whether all its Secrets are done.
func (a *asks) state(account types.NamespacedName) (open, complete bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	todo, open := a.open[account]
	return open, open && len(todo) == 0
}

// end closes the ask of an account.
func (a *asks) end(account types.NamespacedName) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.open, account)
}
