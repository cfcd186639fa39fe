package tools

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/sirupsen/logrus"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"github.com/vmware-tanzu/velero/pkg/discovery"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientdiscovery "k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/pager"

	"github.com/credence-id/credence/test/testkit"
)

// Velero finds every kind by its discovery helper, and lists each page by page in all namespaces: an error makes a backup PartiallyFailed. It takes
// identities and bindings, and leaves out the Secrets that the agent makes, by their label. The helper is Velero's own. Its item collector is
// not: pkg/backup needs a fork of kopia and the storage libraries of three clouds, in other versions than the rest of the tree. The loop below is what
// getAllItems and getResourceItems do.
func TestVeleroCollectsEveryKind(t *testing.T) {
	onBoth(t, func(t *testing.T, c cluster, namespace string) {
		config := c.config(t)
		c.apply(t, namespace)
		c.works(t, namespace)
		secret := ""
		if c.identities {
			secret = c.tokenOfAPod(t, namespace)
		}
		log := logrus.New()
		log.SetOutput(io.Discard)
		helper := testkit.Need(discovery.NewHelper(kubernetes.NewForConfigOrDie(config).Discovery().(clientdiscovery.AggregatedDiscoveryInterface), log))(t)
		client := dynamic.NewForConfigOrDie(config)
		taken, kinds := map[string]bool{}, 0
		for _, group := range helper.Resources() {
			version := testkit.Need(schema.ParseGroupVersion(group.GroupVersion))(t)
			for _, kind := range group.APIResources {
				resource := version.WithResource(kind.Name)
				_, _, err := helper.ResourceFor(resource.GroupResource().WithVersion(""))
				testkit.Expect(t, err)
				kinds++
				pages := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
					return client.Resource(resource).List(ctx, options)
				})
				pages.PageSize = 500
				testkit.Expect(t, pages.EachListItem(t.Context(), metav1.ListOptions{}, func(object runtime.Object) error {
					item := object.(*unstructured.Unstructured)
					if item.GetLabels()[velerov1.ExcludeFromBackupLabel] != "true" && item.GetNamespace() == namespace {
						taken[item.GetKind()+" "+item.GetName()] = true
					}
					return nil
				}), resource.String())
			}
		}
		if kinds < 40 {
			t.Errorf("Velero finds %d kinds", kinds)
		}
		for _, object := range c.release(namespace) {
			if !taken[object.GetKind()+" "+object.GetName()] {
				t.Errorf("the backup lacks %s %s", object.GetKind(), object.GetName())
			}
		}
		if taken["Secret "+secret] {
			t.Errorf("the backup has the Secret %s, with tokens of a pod", secret)
		}
	})
}

// apply makes the release by kubectl.
func (c cluster) apply(t *testing.T, namespace string) {
	t.Helper()
	file := t.TempDir() + "/release.json"
	testkit.Must(t, writeList(file, c.release(namespace)))
	c.command(t, "kubectl", "apply", "-f", file)
}

// tokenOfAPod makes a pod with the identity, and returns the name of the Secret that the agent makes for it.
func (c cluster) tokenOfAPod(t *testing.T, namespace string) (name string) {
	t.Helper()
	core := kubernetes.NewForConfigOrDie(c.config(t)).CoreV1()
	testkit.Wait(t, func(ctx context.Context) error { // until the webhook sees what was just made
		_, err := core.Pods(namespace).Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "app"}, Spec: corev1.PodSpec{
			ServiceAccountName: "app", Containers: []corev1.Container{{Name: "app", Image: "app"}},
		}}, metav1.CreateOptions{})
		return err
	})
	testkit.Wait(t, func(ctx context.Context) error {
		secrets, err := core.Secrets(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, each := range secrets.Items {
			if strings.HasPrefix(each.Name, "credence-token-") {
				name = each.Name
				return nil
			}
		}
		return errors.New("the agent has made no Secret for the pod")
	})
	return name
}
