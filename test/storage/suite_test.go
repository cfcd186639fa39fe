package storage_test

import (
	"context"
	"errors"
	"maps"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/api/apitesting"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/apis/example"
	examplev1 "k8s.io/apiserver/pkg/apis/example/v1"
	"k8s.io/apiserver/pkg/features"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/etcd3"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	storagetesting "k8s.io/apiserver/pkg/storage/testing"
	"k8s.io/apiserver/pkg/storage/value"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	featuregatetesting "k8s.io/component-base/featuregate/testing"

	"github.com/credence-id/credence/internal/apiserver/storage/cluster"
	"github.com/credence-id/credence/test/testkit"
)

const valuePrefix = "test!"

func testCodec() runtime.Codec {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, metav1.SchemeGroupVersion)
	utilruntime.Must(example.AddToScheme(scheme))
	utilruntime.Must(examplev1.AddToScheme(scheme))
	return apitesting.TestCodec(serializer.NewCodecFactory(scheme), examplev1.SchemeGroupVersion)
}

// subject is a storage under test, whose transformer and codec can be changed.
type subject struct {
	storage.Interface
	transformer *switched
	prefixing   *storagetesting.PrefixTransformer
	codec       *failingCodec
}

// switched is a transformer that is changed while the storage runs.
type switched struct {
	current atomic.Pointer[value.Transformer]
}

func (s *switched) set(t value.Transformer) func() {
	before := s.current.Swap(&t)
	return func() { s.current.Store(before) }
}

func (s *switched) TransformFromStorage(ctx context.Context, data []byte, dataCtx value.Context) ([]byte, bool, error) {
	return (*s.current.Load()).TransformFromStorage(ctx, data, dataCtx)
}

func (s *switched) TransformToStorage(ctx context.Context, data []byte, dataCtx value.Context) ([]byte, error) {
	return (*s.current.Load()).TransformToStorage(ctx, data, dataCtx)
}

// UpdatePrefixTransformer implements storagetesting.InterfaceWithPrefixTransformer.
func (s *subject) UpdatePrefixTransformer(modify storagetesting.PrefixTransformerModifier) func() {
	changed := *s.prefixing
	return s.transformer.set(modify(&changed))
}

// UpdateTransformer implements storagetesting.InterfaceWithTransformerOverride.
func (s *subject) UpdateTransformer(modify storagetesting.TransformerModifier) func() {
	return s.transformer.set(modify(*s.transformer.current.Load()))
}

type failingCodec struct {
	runtime.Codec
	failing atomic.Bool
}

func (c *failingCodec) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	if c.failing.Load() {
		return nil, nil, errors.New("synthetic error")
	}
	return c.Codec.Decode(data, defaults, into)
}

func setup(t *testing.T) (context.Context, *subject) {
	t.Helper()
	empty(t)
	s := &subject{transformer: &switched{}, prefixing: storagetesting.NewPrefixTransformer([]byte(valuePrefix), false), codec: &failingCodec{Codec: testCodec()}}
	s.transformer.set(s.prefixing)
	config := storagebackend.NewDefaultConfig("", s.codec).ForResource(schema.GroupResource{Resource: "pods"})
	config.Transformer = s.transformer
	newPod, newPods := func() runtime.Object { return &example.Pod{} }, func() runtime.Object { return &example.PodList{} }
	store, destroy, err := cluster.New(host.CoreV1().RESTClient(), cluster.NewMAC([]byte("a key of the suite"), true), config, newPod, newPods, "/pods/")
	testkit.Must(t, err)
	t.Cleanup(destroy)
	s.Interface = store
	host.requests.reset()
	return t.Context(), s
}

// stored checks that what the host has is the object alone.
func stored(ctx context.Context, t *testing.T, key string) {
	t.Helper()
	for _, r := range allRecords(t) {
		if r.Key != key {
			continue
		}
		decoded, err := runtime.Decode(testCodec(), r.Value[len(valuePrefix):])
		if err != nil {
			t.Fatalf("decode %q: %v", r.Value, err)
		}
		if pod := decoded.(*example.Pod); pod.ResourceVersion != "" || pod.GetSelfLink() != "" {
			t.Errorf("stored with resource version %q and link %q", pod.ResourceVersion, pod.GetSelfLink())
		}
		return
	}
	t.Fatalf("no record of %s", key)
}

// compact lets etcd forget what was before a resource version, as kube-apiserver does every five minutes.
func compact(ctx context.Context, t *testing.T, resourceVersion string) {
	t.Helper()
	revision, err := storage.APIObjectVersioner{}.ParseResourceVersion(resourceVersion)
	testkit.Must(t, err)
	client := etcd(t)
	for version, compacted := int64(0), int64(-1); compacted != int64(revision); {
		if version, _, compacted, err = etcd3.Compact(ctx, client, version, int64(revision)); err != nil {
			t.Fatal(err)
		}
	}
}

// calls checks how many objects were read, in how many pages. For each page that is not the last, one more request counts what remains.
func (s *subject) calls(t *testing.T, pageSize, objects uint64) {
	t.Helper()
	if reads := s.prefixing.GetReadsAndReset(); reads != objects {
		t.Errorf("%d objects were read, want %d", reads, objects)
	}
	want := 1
	for size, sum := pageSize, uint64(1); pageSize != 0 && sum < objects; want++ {
		size = min(2*size, 10000)
		sum += size
	}
	if pages, counts := host.requests.reset(); pages != want || counts > pages {
		t.Errorf("%d pages were read, and %d times counted, want %d", pages, counts, want)
	}
}

// TestStorage calls the functions of the suite on two kinds of host: one that serves from its watch cache, which is the
// default of kube-apiserver, and one that serves from etcd.
//
// These are not called: RunTestCreateWithTTL and RunTestGuaranteedUpdateWithTTL, as the API server stores nothing that expires;
// RunTestCompactRevision, as the host's API has no compacted revision; RunOptionalTestProgressNotify, as the host sends its bookmarks about
// once a minute; RunTestOptionalWatchBookmarksWithCorrectResourceVersion, which is for caches. Of RunTestStats, sizes are left out.
// A watch cache begins with its process, whatever etcd still has, and takes a second to know of a compaction. So what the suite does with
// history is not called on that host: RunWatchSemantics, and fromEtcd.
func TestStorage(t *testing.T) {
	wait.ForeverTestTimeout = patience
	for _, kind := range []struct {
		name      string
		arguments []string
		history   bool
	}{{"watch cache", nil, false}, {"etcd", []string{"--apiserver-arg=--watch-cache=false"}, true}} {
		t.Run(kind.name, func(t *testing.T) {
			startHost(t, kind.arguments...)
			hooked := maps.Clone(withHooks)
			if kind.history {
				// It watches from resource version 1 on, so it comes before any compaction.
				t.Run("WatchSemantics", func(t *testing.T) {
					ctx, s := setup(t)
					storagetesting.RunWatchSemantics(ctx, t, &patient{Interface: s})
				})
				maps.Copy(hooked, fromEtcd)
			}
			for name, test := range suite {
				t.Run(name, func(t *testing.T) {
					ctx, s := setup(t)
					test(ctx, t, s)
				})
			}
			for name, test := range hooked {
				t.Run(name, func(t *testing.T) {
					ctx, s := setup(t)
					test(ctx, t, s)
				})
			}
			t.Run("GetListWithoutErrorAggregation", func(t *testing.T) {
				featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, features.AllowUnsafeMalformedObjectDeletion, false)
				ctx, s := setup(t)
				storagetesting.RunTestGetListWithoutErrorAggregation(ctx, t, s, corrupt(t))
			})
		})
	}
}

// suite are the functions that need the storage alone.
var suite = map[string]func(context.Context, *testing.T, storage.Interface){
	"CreateWithKeyExist":                         storagetesting.RunTestCreateWithKeyExist,
	"Get":                                        storagetesting.RunTestGet,
	"UnconditionalDelete":                        storagetesting.RunTestUnconditionalDelete,
	"ConditionalDelete":                          storagetesting.RunTestConditionalDelete,
	"DeleteWithSuggestion":                       storagetesting.RunTestDeleteWithSuggestion,
	"DeleteWithSuggestionAndConflict":            storagetesting.RunTestDeleteWithSuggestionAndConflict,
	"DeleteWithConflict":                         storagetesting.RunTestDeleteWithConflict,
	"DeleteWithSuggestionOfDeletedObject":        storagetesting.RunTestDeleteWithSuggestionOfDeletedObject,
	"ValidateDeletionWithSuggestion":             storagetesting.RunTestValidateDeletionWithSuggestion,
	"ValidateDeletionWithOnlySuggestionValid":    storagetesting.RunTestValidateDeletionWithOnlySuggestionValid,
	"PreconditionalDeleteWithSuggestion":         storagetesting.RunTestPreconditionalDeleteWithSuggestion,
	"PreconditionalDeleteWithOnlySuggestionPass": storagetesting.RunTestPreconditionalDeleteWithOnlySuggestionPass,
	"GetListRecursivePrefix":                     storagetesting.RunTestGetListRecursivePrefix,
	"ListPaging":                                 storagetesting.RunTestListPaging,
	"NamespaceScopedList":                        storagetesting.RunTestNamespaceScopedList,
	"KeySchema":                                  storagetesting.RunTestKeySchema,
	"GuaranteedUpdateWithConflict":               storagetesting.RunTestGuaranteedUpdateWithConflict,
	"GuaranteedUpdateWithSuggestionAndConflict":  storagetesting.RunTestGuaranteedUpdateWithSuggestionAndConflict,
	"Watch":              storagetesting.RunTestWatch,
	"DeleteTriggerWatch": storagetesting.RunTestDeleteTriggerWatch,
	"WatchFromNonZero":   storagetesting.RunTestWatchFromNonZero,
	"DelayedWatchDelivery": func(ctx context.Context, t *testing.T, s storage.Interface) {
		storagetesting.RunTestDelayedWatchDelivery(ctx, t, filled{s})
	},
	"WatchContextCancel":                 storagetesting.RunTestWatchContextCancel,
	"WatcherTimeout":                     storagetesting.RunTestWatcherTimeout,
	"WatchDeleteEventObjectHaveLatestRV": storagetesting.RunTestWatchDeleteEventObjectHaveLatestRV,
	"WatchInitializationSignal": func(ctx context.Context, t *testing.T, s storage.Interface) {
		storagetesting.RunTestWatchInitializationSignal(ctx, t, &patient{Interface: s})
	},
	"ClusterScopedWatch":                     storagetesting.RunTestClusterScopedWatch,
	"NamespaceScopedWatch":                   storagetesting.RunTestNamespaceScopedWatch,
	"SendInitialEventsBackwardCompatibility": storagetesting.RunSendInitialEventsBackwardCompatibility,
	"WatchSemanticInitialEventsExtended":     storagetesting.RunWatchSemanticInitialEventsExtended,
	"WatchListMatchSingle":                   storagetesting.RunWatchListMatchSingle,
}

// withHooks are those that look behind it.
var withHooks = map[string]func(context.Context, *testing.T, *subject){
	"Create": func(ctx context.Context, t *testing.T, s *subject) { storagetesting.RunTestCreate(ctx, t, s, stored) },
	"ConsistentList": func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestConsistentList(ctx, t, s, increaseRV, false, true, false)
	},
	"GetListNonRecursive": func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestGetListNonRecursive(ctx, t, increaseRV, s)
	},
	"ListContinuation": func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestListContinuation(ctx, t, s, s.calls)
	},
	"ListPaginationRareObject": func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestListPaginationRareObject(ctx, t, s, func(t *testing.T, pageSize, objects uint64) { s.calls(t, pageSize, objects) })
	},
	"ListContinuationWithFilter": func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestListContinuationWithFilter(ctx, t, s, s.calls)
	},
	"ListResourceVersionMatch": func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestListResourceVersionMatch(ctx, t, s)
	},
	"GuaranteedUpdate": func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestGuaranteedUpdate(ctx, t, s, stored)
	},
	"GuaranteedUpdateChecksStoredData": func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestGuaranteedUpdateChecksStoredData(ctx, t, s)
	},
	"TransformationFailure": func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestTransformationFailure(ctx, t, s)
	},
	"Stats": func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestStats(ctx, t, s, s.codec, s.transformer, false)
	},
	"WatchError": func(ctx context.Context, t *testing.T, s *subject) { storagetesting.RunTestWatchError(ctx, t, s) },
	"WatchDispatchBookmarkEvents": func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestWatchDispatchBookmarkEvents(ctx, t, &patient{Interface: s}, false)
	},
	"WatchErrorIsBlockingFurtherEvents": func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunWatchErrorIsBlockingFurtherEvents(ctx, t, s)
	},
	"WatchWithUnsafeDelete": func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestWatchWithUnsafeDelete(ctx, t, s, corrupt(t))
	},
	"GetListWithErrorAggregation": func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestGetListWithErrorAggregation(ctx, t, s, corrupt(t))
	},
	"DeleteWithConflictAndMissingExpectedTransformOrDecodeError": func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestDeleteWithConflictAndMissingExpectedTransformOrDecodeError(ctx, t, s, s.codec.failing.Store)
	},
	"DeleteExpectedTransformError": func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestDeleteExpectedTransformOrDecodeError(ctx, t, s, func(failing bool) {
			s.transformer.set(s.prefixing)
			if failing {
				s.transformer.set(failingTransformer{s.prefixing})
			}
		})
	},
	"DeleteExpectedDecodeError": func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestDeleteExpectedTransformOrDecodeError(ctx, t, s, s.codec.failing.Store)
	},
	"DeleteWithSuggestionAndMissingExpectedTransformOrDecodeError": func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestDeleteWithSuggestionAndMissingExpectedTransformOrDecodeError(ctx, t, s)
	},
}

// fromEtcd compact etcd, and need a host that notices at once.
var fromEtcd = map[string]func(context.Context, *testing.T, *subject){
	"List": func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestList(ctx, t, s, compact, false, nil)
	},
	"ListInconsistentContinuation": func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestListInconsistentContinuation(ctx, t, s, compact)
	},
	"WatchFromZero": func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestWatchFromZero(ctx, t, s, compact)
	},
}

type failingTransformer struct{ value.Transformer }

func (failingTransformer) TransformFromStorage(context.Context, []byte, value.Context) ([]byte, bool, error) {
	return nil, false, errors.New("synthetic error")
}

// corrupt returns the error of a value that cannot be read.
func corrupt(t *testing.T) error {
	t.Helper()
	_, _, err := etcd3.WithCorruptObjErrorHandlingTransformer(failingTransformer{}).TransformFromStorage(t.Context(), nil, nil)
	return err
}

type storedRecord struct {
	Metadata struct {
		Labels map[string]string `json:"labels"`
	} `json:"metadata"`
	Key   string `json:"key"`
	Value []byte `json:"value"`
}
