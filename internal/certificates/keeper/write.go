package keeper

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/credence-id/credence/internal/certificates"
	"github.com/credence-id/credence/internal/pki"
)

// fieldManager owns what is written.
const fieldManager = certificates.Own

// carryOut does what a plan requires, in its order. Each write is one of the object as it was seen: if that has changed since, nothing is
// written, without an error, as the next look sees it.
func (k *Keeper) carryOut(ctx context.Context, s seen, plan certificates.Plan) error {
	if plan.NewAuthority != "" {
		return k.newAuthority(ctx, s, plan)
	}
	// Issue keeps within the end of an authority, which Decide has found to be valid.
	authority, err := pki.Load(s.Authority.Certificate, s.Authority.Key, k.Now())
	if err != nil {
		return err
	}
	if !plan.BundleStored {
		before := len(pki.Authorities(s.Authority.Bundle))
		if err := k.write(ctx, s, certificates.AuthoritySecret, certificates.Stored{Pair: s.Authority.Pair, Bundle: plan.Bundle}, eventBundleChanged, fmt.Sprintf(
			"trusted certificate authorities: %d, before %d", len(pki.Authorities(plan.Bundle)), before)); err != nil {
			return err
		}
	}
	var failed []error
	for _, name := range plan.Objects {
		failed = append(failed, k.writeBundle(ctx, s.objects[name], plan.Bundle))
	}
	for _, issue := range plan.Issue {
		pair, err := authority.Issue(issue.Wanted.Request, k.Now(), k.Random)
		if err == nil {
			err = k.write(ctx, s, issue.Wanted.Secret(), certificates.Stored{Pair: pair, Bundle: plan.Bundle}, eventCertificateMade, "a new certificate: "+issue.Reason)
		}
		if err == nil {
			k.Recorder.made(issue.Wanted.Name)
		}
		failed = append(failed, err)
	}
	for _, name := range plan.Rebundle {
		failed = append(failed, k.write(ctx, s, certificates.SecretOf(name), certificates.Stored{Pair: s.Certificates[name].Pair, Bundle: plan.Bundle}, "", ""))
	}
	return errors.Join(failed...)
}

func (k *Keeper) newAuthority(ctx context.Context, s seen, plan certificates.Plan) error {
	pair, err := pki.New(certificates.AuthoritySecret+"@"+k.Now().UTC().Format(time.RFC3339), k.Settings.AuthorityLifetime, k.Now(), k.Random)
	if err != nil {
		return err
	}
	stored := certificates.Stored{Pair: pair, Bundle: append(bytes.Clone(pair.Certificate), plan.Bundle...)}
	if err := k.write(ctx, s, certificates.AuthoritySecret, stored, eventAuthorityMade, "a new certificate authority: "+plan.NewAuthority); err != nil {
		return err
	}
	k.Recorder.made(authorityLabel)
	return nil
}

// write stores a certificate in its Secret, and reports it by an Event, unless reason is empty.
func (k *Keeper) write(ctx context.Context, s seen, name string, stored certificates.Stored, reason eventReason, message string) error {
	data := map[string][]byte{corev1.TLSCertKey: stored.Certificate, corev1.TLSPrivateKeyKey: stored.Key, bundleKey: stored.Bundle}
	secret, found := s.secrets[name]
	var err error
	if found {
		secret = secret.DeepCopy()
		secret.Data = data
		secret, err = k.Secrets.Update(ctx, secret, metav1.UpdateOptions{FieldManager: fieldManager})
	} else {
		secret, err = k.Secrets.Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app.kubernetes.io/managed-by": certificates.Own}},
			Type:       corev1.SecretTypeTLS, Data: data,
		}, metav1.CreateOptions{FieldManager: fieldManager})
	}
	switch {
	case outdated(err):
		return nil
	case apierrors.IsInvalid(err):
		return fmt.Errorf("write Secret %s: %w; delete it, and it is made anew", name, err)
	case err != nil:
		return fmt.Errorf("write Secret %s: %w", name, err)
	}
	k.Log.InfoContext(ctx, "written", "secret", name, "reason", message)
	if reason != "" {
		k.event(secret, corev1.EventTypeNormal, reason, message)
	}
	return nil
}

func (k *Keeper) writeBundle(ctx context.Context, o object, bundle []byte) error {
	if o.err != nil {
		return fmt.Errorf("read %s: %w", o, o.err)
	}
	content := o.content.DeepCopy()
	setBundle(content, bundle)
	_, err := k.Objects.Resource(o.resource).Update(ctx, content, metav1.UpdateOptions{FieldManager: fieldManager})
	switch {
	case outdated(err):
		return nil
	case err != nil:
		return fmt.Errorf("write caBundle of %s: %w", o, err)
	}
	k.Log.InfoContext(ctx, "caBundle written", "object", o.String())
	return nil
}

// outdated reports whether an object was not as it had been seen.
func outdated(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err)
}
