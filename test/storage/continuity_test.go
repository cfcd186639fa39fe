package storage_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/apis/example"
	"k8s.io/apiserver/pkg/storage"

	"github.com/credence-id/credence/test/testkit"
)

func create(ctx context.Context, t *testing.T, s storage.Interface, namespace, name string) *example.Pod {
	t.Helper()
	out := &example.Pod{}
	pod := &example.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	testkit.Must(t, s.Create(ctx, "/pods/"+namespace+"/"+name, pod, out, 0))
	return out
}

// A watch goes on when kube-apiserver was away, and nothing is lost of what was written behind its back.
func TestWatchGoesOnAfterARestartOfTheHost(t *testing.T) {
	startHost(t)
	ctx, s := setup(t)
	first := create(ctx, t, s, "a", "before")
	w := testkit.Need(s.Watch(ctx, "/pods/", storage.ListOptions{ResourceVersion: first.ResourceVersion, Predicate: storage.Everything, Recursive: true}))(t)
	defer w.Stop()
	create(ctx, t, s, "a", "one")
	expect(t, w, "one")
	host.Stop()
	startAgain(t)
	create(ctx, t, s, "a", "two")
	select {
	case e := <-w.ResultChan():
		if pod, ok := e.Object.(*example.Pod); ok && e.Type == watch.Added && pod.Name == "two" {
			return
		}
		// A host that was written to before it began to watch again has forgotten what was before: then its clients list.
		if !apierrors.IsResourceExpired(apierrors.FromObject(e.Object)) {
			t.Fatalf("event %s %v, want ADDED of two, or that the version is too old", e.Type, e.Object)
		}
	case <-time.After(patience):
		t.Fatal("no event of two")
	}
	list := &example.PodList{}
	testkit.Must(t, s.GetList(ctx, "/pods/", storage.ListOptions{Predicate: storage.Everything, Recursive: true}, list))
	if len(list.Items) != 3 {
		t.Errorf("after the restart there are %d objects, want 3", len(list.Items))
	}
}

func expect(t *testing.T, w watch.Interface, name string) {
	t.Helper()
	select {
	case e := <-w.ResultChan():
		if pod, ok := e.Object.(*example.Pod); !ok || e.Type != watch.Added || pod.Name != name {
			t.Fatalf("event %s %v, want ADDED of %s", e.Type, e.Object, name)
		}
	case <-time.After(patience):
		t.Fatalf("no event of %s", name)
	}
}

// Names that are too long for the host are cut. Pages of them have each object once, in order.
func TestPagesOfLongNames(t *testing.T) {
	startHost(t)
	ctx, s := setup(t)
	namespace := strings.Repeat("n", 63)
	var want []string
	for i := range 7 {
		name := strings.Repeat("long", 50) + fmt.Sprint(i)
		create(ctx, t, s, namespace, name)
		want = append(want, name)
	}
	create(ctx, t, s, "zzz", "short")
	for limit := range int64(9) {
		var got []string
		for next, pages := "", 0; pages == 0 || next != ""; pages++ {
			predicate := storage.Everything
			predicate.Limit, predicate.Continue = limit, next
			list := &example.PodList{}
			testkit.Must(t, s.GetList(ctx, "/pods/"+namespace, storage.ListOptions{Predicate: predicate, Recursive: true}, list))
			for _, pod := range list.Items {
				got = append(got, pod.Name)
			}
			if remaining := list.RemainingItemCount; list.Continue != "" && (remaining == nil || int(*remaining) != len(want)-len(got)) {
				t.Errorf("limit %d: %d were read, and %v remain", limit, len(got), remaining)
			}
			next = list.Continue
		}
		if strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("limit %d: got %v", limit, got)
		}
	}
}

// A record whose name is not that of its key is ignored, also one with the MAC of the record that it was copied from: it would stand for another object.
func TestForeignRecord(t *testing.T) {
	startHost(t)
	ctx, s := setup(t)
	create(ctx, t, s, "a", "one")
	body := `{"apiVersion":"storage.credence.dev/v1","kind":"Record","metadata":{"name":"mallory","labels":{"storage.credence.dev/resource":"pods","storage.credence.dev/namespace":"a"}},"key":"/pods/a/one","value":"e30="}`
	testkit.Must(t, host.CoreV1().RESTClient().Post().AbsPath(recordsPath).SetHeader("Content-Type", "application/json").Body([]byte(body)).Do(ctx).Error())
	var copied struct {
		Metadata metav1.ObjectMeta `json:"metadata"`
		Value    []byte            `json:"value"`
	}
	stored, err := host.CoreV1().RESTClient().Get().AbsPath(recordsPath, "pods0-a0-one").Do(ctx).Raw()
	if err == nil {
		err = json.Unmarshal(stored, &copied)
	}
	if err != nil || copied.Metadata.Annotations["storage.credence.dev/mac"] == "" {
		t.Fatalf("the record of a pod: %v, %v", err, copied.Metadata.Annotations)
	}
	second := fmt.Sprintf(`{"apiVersion":"storage.credence.dev/v1","kind":"Record","metadata":{"name":"mallory-2","labels":{"storage.credence.dev/resource":"pods","storage.credence.dev/namespace":"a"},"annotations":{"storage.credence.dev/mac":%q}},"key":"/pods/a/one","value":%q}`,
		copied.Metadata.Annotations["storage.credence.dev/mac"], base64.StdEncoding.EncodeToString(copied.Value))
	testkit.Must(t, host.CoreV1().RESTClient().Post().AbsPath(recordsPath).SetHeader("Content-Type", "application/json").Body([]byte(second)).Do(ctx).Error())
	var list example.PodList
	if err := s.GetList(ctx, "/pods/", storage.ListOptions{Predicate: storage.Everything, Recursive: true}, &list); err != nil || len(list.Items) != 1 || list.Items[0].Name != "one" {
		t.Errorf("a list with foreign records: %v, %d pods", err, len(list.Items))
	}
}
