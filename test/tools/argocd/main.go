// Command argocd does with objects of standard input, a JSON array, what Argo CD's controller does with those of an application: argocd KUBECONFIG NAMESPACE
// INSTANCE. It fills the cache of the cluster, applies the objects, and prints how many objects the cache has, the result for each, and which differ
// afterwards. It is a module of its own, as gitops-engine needs kinds of autoscaling that k8s.io/api has no longer since 0.36. It ends with an
// error if the cache or the sync fails.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/argoproj/gitops-engine/pkg/cache"
	"github.com/argoproj/gitops-engine/pkg/diff"
	"github.com/argoproj/gitops-engine/pkg/engine"
	"github.com/argoproj/gitops-engine/pkg/sync"
	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
)

func main() {
	klog.SetLogger(logr.Discard())
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: argocd KUBECONFIG NAMESPACE INSTANCE < OBJECTS.json")
		os.Exit(2)
	}
	if err := run(context.Background(), os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// label names the application of an object, as with Argo CD's default for application.instanceLabelKey.
const label = "app.kubernetes.io/instance"

func run(ctx context.Context, kubeconfig, namespace, instance string) error {
	var objects []*unstructured.Unstructured
	if err := json.NewDecoder(os.Stdin).Decode(&objects); err != nil {
		return fmt.Errorf("read objects: %w", err)
	}
	for _, each := range objects {
		labels := each.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		labels[label] = instance
		each.SetLabels(labels)
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	config.QPS, config.Burst = 1000, 1000
	cluster := cache.NewClusterCache(config, cache.SetLogr(logr.Discard()), cache.SetPopulateResourceInfoHandler(func(un *unstructured.Unstructured, _ bool) (any, bool) {
		ours := un.GetLabels()[label] == instance
		return ours, ours
	}))
	if err := cluster.EnsureSynced(); err != nil {
		return fmt.Errorf("fill the cache: %w", err)
	}
	fmt.Println("cached", len(cluster.FindResources("")))
	managed := func(r *cache.Resource) bool { return r.Info == true }
	syncer := engine.NewEngine(config, cluster, engine.WithLogr(logr.Discard()))
	stop, err := syncer.Run()
	if err != nil {
		return err
	}
	defer stop()
	results, err := syncer.Sync(ctx, objects, managed, "revision", namespace, sync.WithLogr(logr.Discard()))
	for _, each := range results {
		fmt.Println(each.Status, each.ResourceKey.Kind, each.ResourceKey.Name, each.Message)
	}
	if err != nil {
		return fmt.Errorf("sync: %w", err)
	}
	cluster.Invalidate() // the watches of the cache may not have shown the objects yet
	if err := cluster.EnsureSynced(); err != nil {
		return fmt.Errorf("fill the cache again: %w", err)
	}
	live, err := cluster.GetManagedLiveObjs(objects, managed)
	if err != nil {
		return err
	}
	compared := sync.Reconcile(objects, live, namespace, cluster)
	found, err := diff.DiffArray(compared.Target, compared.Live, diff.WithLogr(logr.Discard()))
	if err != nil {
		return err
	}
	for i, each := range found.Diffs {
		if each.Modified {
			fmt.Println("differs", compared.Target[i].GetKind(), compared.Target[i].GetName(), string(each.NormalizedLive), string(each.PredictedLive))
		}
	}
	return nil
}
