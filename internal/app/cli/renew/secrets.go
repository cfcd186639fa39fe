package renew

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/app/cli/command"
	"github.com/credence-id/credence/internal/cluster"
	"github.com/credence-id/credence/internal/inventory"
	"github.com/credence-id/credence/internal/tokensecret"
	"github.com/credence-id/credence/internal/wording"
)

// carried are the tokens of Secrets, as digests.
type carried map[types.NamespacedName][sha256.Size]byte

func (c carried) add(secret *corev1.Secret) {
	c[types.NamespacedName{Namespace: secret.Namespace, Name: secret.Name}] = sha256.Sum256(secret.Data[v1alpha1.SecretToken])
}

// lookAgain is how often Secrets are looked at.
const lookAgain = time.Second

// await fills in which Secrets have other tokens than before, until all have or time is over.
func (r *renew) await(ctx context.Context, result *Result, before carried, read func() (carried, error)) error {
	for key := range before {
		result.Secrets = append(result.Secrets, Secret{Namespace: key.Namespace, Name: key.Name})
	}
	slices.SortFunc(result.Secrets, func(a, b Secret) int { return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name) })
	if len(before) == 0 || r.timeout == 0 {
		return nil
	}
	defer r.WaitingFor("new tokens")()
	over := time.After(r.timeout)
	for {
		now, err := read()
		if err != nil {
			return err
		}
		open := false
		for i := range result.Secrets {
			key := types.NamespacedName{Namespace: result.Secrets[i].Namespace, Name: result.Secrets[i].Name}
			token, there := now[key]
			result.Secrets[i].Renewed = there && token != before[key]
			open = open || !result.Secrets[i].Renewed
		}
		if !open {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-over:
			return nil
		case <-time.After(lookAgain):
		}
	}
}

// readSecrets reads some Secrets. Those that are not there are left out.
func readSecrets(ctx context.Context, api *cluster.API, keys []types.NamespacedName, keep func(*corev1.Secret) bool) (carried, error) {
	found := carried{}
	for _, key := range keys {
		var secret corev1.Secret
		err := api.Get(ctx, &secret, cluster.Place{Namespace: key.Namespace, Resource: "secrets", Name: key.Name})
		if apierrors.IsNotFound(err) {
			continue
		} else if err != nil {
			return nil, err
		}
		if keep(&secret) {
			found.add(&secret)
		}
	}
	return found, nil
}

// unseen notes that Secrets can't be seen, and is the error otherwise.
func (result *Result) unseen(err error) error {
	if apierrors.IsForbidden(err) {
		result.Notes = append(result.Notes, "whether tokens are renewed is not seen: "+err.Error())
		return nil
	}
	return err
}

func (r *renew) renewSecret(ctx context.Context, api *cluster.API, namespace, name string, result *Result) error {
	at := cluster.Place{Namespace: namespace, Resource: "secrets", Name: name}
	read := func() (carried, error) {
		return readSecrets(ctx, api, []types.NamespacedName{{Namespace: namespace, Name: name}}, func(s *corev1.Secret) bool { return true })
	}
	var secret corev1.Secret
	err := api.Get(ctx, &secret, at)
	if err == nil && !tokensecret.Labelled(&secret) {
		return &command.Failure{
			Line: fmt.Sprintf("error: Secret %s/%s has no label %s=%s, so no agent keeps a token in it", namespace, name, v1alpha1.LabelPurpose, v1alpha1.PurposeTokenRequestor),
			Code: command.ExitRefused,
		}
	}
	before := carried{}
	if err == nil {
		before.add(&secret)
	}
	if err := result.unseen(err); err != nil {
		return err
	}
	if err := r.request(ctx, api, at); err != nil {
		return err
	}
	return r.await(ctx, result, before, read)
}

// renewAccount renews the tokens of the pods of a service account.
func (r *renew) renewAccount(ctx context.Context, api *cluster.API, namespace, name string, result *Result) error {
	at := cluster.Place{Namespace: namespace, Resource: "serviceaccounts", Name: name}
	var account metav1.PartialObjectMetadata
	if err := api.Get(ctx, &account, at); err != nil {
		return err
	}
	read := func() (carried, error) {
		return listSecrets(ctx, api, namespace, func(s *corev1.Secret) bool {
			return slices.ContainsFunc(s.OwnerReferences, func(owner metav1.OwnerReference) bool { return owner.UID == account.UID })
		})
	}
	before, err := read()
	if err := result.unseen(err); err != nil {
		return err
	}
	if err == nil && len(before) == 0 {
		result.Notes = append(result.Notes, "the service account has no Secret with a token yet")
	}
	if err := r.request(ctx, api, at); err != nil {
		return err
	}
	return r.await(ctx, result, before, read)
}

func listSecrets(ctx context.Context, api *cluster.API, namespace string, keep func(*corev1.Secret) bool) (carried, error) {
	found := carried{}
	err := cluster.Each(ctx, api, cluster.Listing{Namespace: namespace, Resource: "secrets", Labels: v1alpha1.LabelPurpose + "=" + v1alpha1.PurposeTokenRequestor}, func(s *corev1.Secret) {
		if keep(s) {
			found.add(s)
		}
	})
	return found, err
}

// The longest time over which the requests for all Secrets of an identity are spread by default, and the time for each.
const (
	longestSpread = 10 * time.Minute
	spread        = time.Second
)

// renewAll renews all tokens of an identity, one after the other.
func (r *renew) renewAll(ctx context.Context, both cluster.Both, namespace string, result *Result) error {
	wanted := types.NamespacedName{Namespace: namespace, Name: r.identity}
	result.Object = "WorkloadIdentity " + wanted.String()
	if _, err := both.Identity.Identity(ctx, namespace, r.identity); apierrors.IsForbidden(err) {
		result.Notes = append(result.Notes, "whether the identity exists is not known: "+err.Error())
	} else if err != nil {
		return err
	}
	of := func(s *corev1.Secret) bool {
		identity, _ := inventory.DeliveryOf(s)
		return identity == wanted
	}
	var before carried
	where, err := cluster.Widest("Secrets", namespace, func(in string) (err error) {
		before, err = listSecrets(ctx, both.Workload, in, of)
		return err
	})
	if err != nil {
		return err
	}
	if where.Nowhere {
		return &command.Failure{Line: "error: " + where.Note, Code: command.ExitRefused}
	}
	if where.Note != "" {
		result.Notes = append(result.Notes, where.Note)
	}
	if len(before) == 0 {
		result.None, result.Notes = true, append(result.Notes, "no Secret carries its tokens")
		return nil
	}
	over := r.over
	if over == 0 {
		over = min(spread*time.Duration(len(before)), longestSpread)
	}
	pause := over / time.Duration(len(before))
	fmt.Fprintf(r.ErrOut, "requesting new tokens of %s over %s\n", wording.Plural(len(before), "Secret", "Secrets"), over)
	keys := slices.SortedFunc(maps.Keys(before), func(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) })
	for i, key := range keys {
		if i > 0 {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(pause):
			}
		}
		err := r.request(ctx, both.Workload, cluster.Place{Namespace: key.Namespace, Resource: "secrets", Name: key.Name})
		switch {
		case apierrors.IsNotFound(err):
			delete(before, key) // gone meanwhile
		case apierrors.IsForbidden(err):
			delete(before, key)
			result.Notes = append(result.Notes, fmt.Sprintf("not requested for Secret %s: %v", key, err))
			result.Refused = true
		case err != nil:
			return err
		}
	}
	return r.await(ctx, result, before, func() (carried, error) { return listSecrets(ctx, both.Workload, where.Namespace, of) })
}
