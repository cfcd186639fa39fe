package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	ctrl "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
)

// cachingCommand is the first argument with which this program only caches token Secrets instead.
const cachingCommand = "cache-secrets"

// cacheSecrets follows the Secrets that the agent follows, keeps of each what it keeps, and does nothing else. It ends when its
// input does; its first line of output is their number.
func cacheSecrets(args []string, stdin io.Reader, stdout io.Writer) error {
	if len(args) != 1 {
		return fmt.Errorf("%s needs a kubeconfig", cachingCommand)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, stdin)
		cancel()
	}()
	config, err := clientcmd.BuildConfigFromFlags("", args[0])
	if err != nil {
		return err
	}
	secrets, err := cache.New(config, cache.Options{
		Scheme: scheme.Scheme,
		ByObject: map[ctrl.Object]cache.ByObject{
			&corev1.Secret{}: {Label: labels.SelectorFromSet(labels.Set{v1alpha1.LabelPurpose: v1alpha1.PurposeTokenRequestor})},
		},
		DefaultTransform: cache.TransformStripManagedFields(),
	})
	if err != nil {
		return err
	}
	if _, err := secrets.GetInformer(ctx, &corev1.Secret{}, cache.BlockUntilSynced(false)); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- secrets.Start(ctx) }()
	secrets.WaitForCacheSync(ctx)
	var list corev1.SecretList
	if err := secrets.List(ctx, &list, ctrl.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list Secrets: %w", err)
	}
	if _, err := fmt.Fprintln(stdout, len(list.Items)); err != nil {
		return err
	}
	if err := <-ended; ctx.Err() == nil {
		return errors.Join(errors.New("the cache has ended"), err)
	}
	return nil
}
