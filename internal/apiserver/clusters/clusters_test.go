package clusters_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/apiserver/clusters"
	"github.com/credence-id/credence/test/testkit"
)

// storage has clusters, or fails while err is set.
type storage struct {
	list   v1alpha1.WorkloadClusterList
	err    error
	events *watch.FakeWatcher
}

func (s *storage) List(context.Context, *internalversion.ListOptions) (runtime.Object, error) {
	return s.list.DeepCopy(), s.err
}

func (s *storage) Watch(context.Context, *internalversion.ListOptions) (watch.Interface, error) {
	return s.events, nil
}

func cluster(name string, users ...string) *v1alpha1.WorkloadCluster {
	return &v1alpha1.WorkloadCluster{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-of-" + name), ResourceVersion: "1"}, Spec: v1alpha1.WorkloadClusterSpec{Users: users}}
}

// cached is an object as the watch cache sends it.
type cached struct{ *v1alpha1.WorkloadCluster }

func (c cached) GetObject() runtime.Object { return c.WorkloadCluster }

func (c cached) CacheEncode(runtime.Identifier, func(runtime.Object, io.Writer) error, io.Writer) error {
	return errors.New("not encoded here")
}

func code(err error) int32 {
	status := apierrors.APIStatus(nil)
	if errors.As(err, &status) {
		return status.Status().Code
	}
	return 0
}

// A user is of one cluster, or of none; of two, it is refused.
func TestOf(t *testing.T) {
	leaving := cluster("leaving", "leaver")
	leaving.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	s := &storage{events: watch.NewFake(), list: v1alpha1.WorkloadClusterList{Items: []v1alpha1.WorkloadCluster{
		*cluster("east", "east-agent", "both"), *cluster("west", "west-agent", "both"), *leaving,
	}}}
	index := clusters.New(s)
	if got, err := index.Of("east-agent"); got != nil || code(err) != http.StatusServiceUnavailable {
		t.Fatalf("before the index is filled: %v, %v, want 503", got, err)
	}
	go index.Run(t.Context())
	testkit.Eventually(t, "the index is filled", func() bool { _, err := index.Of("stranger"); return err == nil })
	for user, want := range map[string]struct {
		cluster string
		code    int32
	}{
		"east-agent": {cluster: "east"}, "west-agent": {cluster: "west"}, "stranger": {}, "": {},
		"both": {code: http.StatusForbidden}, "leaver": {code: http.StatusForbidden},
	} {
		got, err := index.Of(user)
		if code(err) != want.code || (got == nil) != (want.cluster == "") || got != nil && got.Name != want.cluster {
			t.Errorf("%q: %v, %v, want %+v", user, got, err, want)
		}
	}
	if _, err := index.Of("both"); err == nil || !strings.Contains(err.Error(), "east, west") {
		t.Errorf("the clusters of a user of two are not named: %v", err)
	}

	s.events.Modify(cached{cluster("west", "west-agent")})
	testkit.Eventually(t, "the user is of one cluster", func() bool { got, err := index.Of("both"); return err == nil && got.Name == "east" })
	s.events.Delete(cluster("east", "east-agent", "both"))
	testkit.Eventually(t, "the deleted cluster has no users", func() bool { got, err := index.Of("east-agent"); return got == nil && err == nil })
}

// While the storage does not answer, no user is of no cluster.
func TestOutage(t *testing.T) {
	index := clusters.New(&storage{err: errors.New("away"), events: watch.NewFake()})
	go index.Run(t.Context())
	if got, err := index.Of("east-agent"); got != nil || code(err) != http.StatusServiceUnavailable {
		t.Errorf("%v, %v, want 503", got, err)
	}
}
