package guard_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"k8s.io/apimachinery/pkg/util/version"
	runtime "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/credence-id/credence/internal/endpoint"
	"github.com/credence-id/credence/internal/node/guard"
	"github.com/credence-id/credence/test/testkit"
)

// bytesCodec moves messages as they are.
type bytesCodec struct{}

func (bytesCodec) Name() string { return "proto" }
func (bytesCodec) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(*v.(*[]byte))}, nil
}

func (bytesCodec) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}

// call is what the runtime has of one.
type call struct {
	method   string
	requests [][]byte
	metadata metadata.MD
	deadline bool
}

// fakeRuntime answers each method. One that the metadata echo names gets its requests back, as they come, between a header and a trailer; all others
// have an empty answer.
type fakeRuntime struct {
	version    string
	image      *runtime.Image
	imageError error
	// live changes what the runtime has of a sandbox, which is otherwise as its kubelet has made it.
	live      func(*runtime.PodSandboxStatus)
	liveError error
	// pods are the uids of those that have a sandbox.
	pods []string
	// annotations are those of its containers.
	annotations map[string]string
	// pulling is called while an image is pulled.
	pulling func()

	mu    sync.Mutex
	calls []call
}

func (f *fakeRuntime) handle(_ any, stream grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(stream)
	received, _ := metadata.FromIncomingContext(stream.Context())
	_, deadline := stream.Context().Deadline()
	c := call{method: method, metadata: received, deadline: deadline}
	defer func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.calls = append(f.calls, c)
	}()
	echo := slices.Contains(received.Get("echo"), method)
	if echo {
		if err := stream.SendHeader(metadata.Pairs("header", "of "+method)); err != nil {
			return err
		}
		stream.SetTrailer(metadata.Pairs("trailer", "of "+method))
	}
	for {
		var request []byte
		if err := stream.RecvMsg(&request); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return err
		}
		c.requests = append(c.requests, request)
		if !echo {
			continue
		}
		if err := stream.SendMsg(&request); err != nil {
			return err
		}
	}
	switch {
	case len(received.Get("fail")) > 0:
		refusal, err := status.New(codes.ResourceExhausted, "no space").WithDetails(&runtime.VersionRequest{Version: "detail"})
		if err != nil {
			return err
		}
		return refusal.Err()
	case method == runtime.ImageService_ImageStatus_FullMethodName && !echo:
		if f.imageError != nil {
			return f.imageError
		}
		return send(stream, &runtime.ImageStatusResponse{Image: f.image})
	case method == runtime.ImageService_PullImage_FullMethodName && f.pulling != nil:
		f.pulling()
		return send(stream, &runtime.PullImageResponse{ImageRef: image})
	case method == runtime.RuntimeService_PodSandboxStatus_FullMethodName && !echo:
		return f.sandboxStatus(stream, c.requests[0])
	case method == runtime.RuntimeService_ContainerStatus_FullMethodName && !echo:
		if f.liveError != nil {
			return f.liveError
		}
		return send(stream, &runtime.ContainerStatusResponse{Status: &runtime.ContainerStatus{Annotations: f.annotations}})
	case method == runtime.RuntimeService_ListContainers_FullMethodName && !echo:
		var request runtime.ListContainersRequest
		if err := proto.Unmarshal(c.requests[0], &request); err != nil {
			return err
		}
		return send(stream, &runtime.ListContainersResponse{Containers: []*runtime.Container{{Id: request.GetFilter().GetId(), PodSandboxId: request.GetFilter().GetId()}}})
	case method == runtime.RuntimeService_ListPodSandbox_FullMethodName && !echo:
		answer := &runtime.ListPodSandboxResponse{}
		for _, uid := range f.pods {
			answer.Items = append(answer.Items, &runtime.PodSandbox{Metadata: &runtime.PodSandboxMetadata{Uid: uid}})
		}
		return send(stream, answer)
	case method == runtime.RuntimeService_Version_FullMethodName && !echo:
		return send(stream, &runtime.VersionResponse{Version: "0.1.0", RuntimeName: "containerd", RuntimeVersion: f.version, RuntimeApiVersion: "v1"})
	case !echo:
		return stream.SendMsg(new([]byte))
	}
	return nil
}

func (f *fakeRuntime) sandboxStatus(stream grpc.ServerStream, data []byte) error {
	var request runtime.PodSandboxStatusRequest
	if err := proto.Unmarshal(data, &request); err != nil {
		return err
	}
	if f.liveError != nil {
		return f.liveError
	}
	config := sandbox(request.GetPodSandboxId())
	made := &runtime.PodSandboxStatus{
		Metadata: config.GetMetadata(), Annotations: config.GetAnnotations(),
		Linux: &runtime.LinuxPodSandboxStatus{Namespaces: &runtime.Namespace{Options: config.GetLinux().GetSecurityContext().GetNamespaceOptions()}},
	}
	if f.live != nil {
		f.live(made)
	}
	return send(stream, &runtime.PodSandboxStatusResponse{Status: made})
}

func send(stream grpc.ServerStream, message proto.Message) error {
	data, err := proto.Marshal(message)
	if err != nil {
		return err
	}
	return stream.SendMsg(&data)
}

// lookups are the calls of the guard itself.
var lookups = []string{
	runtime.ImageService_ImageStatus_FullMethodName, runtime.RuntimeService_PodSandboxStatus_FullMethodName,
	runtime.RuntimeService_ContainerStatus_FullMethodName, runtime.RuntimeService_ListContainers_FullMethodName,
	runtime.RuntimeService_ListPodSandbox_FullMethodName,
}

// world is a guard between a kubelet and a runtime.
type world struct {
	runtime *fakeRuntime
	raw     *grpc.ClientConn
	kubelet runtime.RuntimeServiceClient
}

func newWorld(t testing.TB, config guard.Config) *world {
	t.Helper()
	folder, err := os.MkdirTemp("", "guard") // paths of sockets are short
	testkit.Must(t, err)
	w := &world{runtime: &fakeRuntime{image: &runtime.Image{Id: image}}}
	stopRuntime := w.runtime.serve(t, filepath.Join(folder, "runtime.sock"))
	stopGuard := serveGuard(t, config, filepath.Join(folder, "guard.sock"), filepath.Join(folder, "runtime.sock"))
	w.raw = dial(t, filepath.Join(folder, "guard.sock"), grpc.WithDefaultCallOptions(grpc.ForceCodecV2(bytesCodec{}), grpc.MaxCallRecvMsgSize(16<<20)))
	typed := dial(t, filepath.Join(folder, "guard.sock"))
	w.kubelet = runtime.NewRuntimeServiceClient(typed)
	t.Cleanup(func() {
		for _, err := range []error{w.raw.Close(), typed.Close()} {
			if err != nil {
				t.Error(err)
			}
		}
		stopGuard()
		stopRuntime()
		testkit.Expect(t, os.RemoveAll(folder))
	})
	return w
}

func (f *fakeRuntime) serve(t testing.TB, socket string) (stop func()) {
	t.Helper()
	server := grpc.NewServer(grpc.ForceServerCodecV2(bytesCodec{}), grpc.UnknownServiceHandler(f.handle), grpc.MaxRecvMsgSize(16<<20))
	listener := testkit.Need(net.Listen("unix", socket))(t)
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	return func() {
		server.Stop()
		if err := <-ended; err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			t.Error(err)
		}
	}
}

func serveGuard(t testing.TB, config guard.Config, socket, runtimeSocket string) (stop func()) {
	t.Helper()
	config.Log = slog.New(slog.DiscardHandler)
	g := testkit.Need(guard.New(config, endpoint.Socket(runtimeSocket)))(t)
	listener := testkit.Need(net.Listen("unix", socket))(t)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- g.Serve(ctx, listener) }()
	return func() {
		cancel()
		testkit.Expect(t, <-ended)
	}
}

func dial(t testing.TB, socket string, options ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	connection := testkit.Need(grpc.NewClient("unix://"+socket, append(options, grpc.WithTransportCredentials(insecure.NewCredentials()))...))(t)
	return connection
}

// lastCall is the runtime's last one but lookups.
func (w *world) lastCall(t *testing.T) call {
	t.Helper()
	var last call
	testkit.Eventually(t, "the runtime has a call", func() bool {
		w.runtime.mu.Lock()
		defer w.runtime.mu.Unlock()
		for _, c := range w.runtime.calls {
			if !slices.Contains(lookups, c.method) {
				last = c
			}
		}
		return last.method != ""
	})
	return last
}

func (w *world) last(t *testing.T, into proto.Message) {
	t.Helper()
	testkit.Must(t, proto.Unmarshal(w.lastCall(t).requests[0], into))
}

// created is the last container that the runtime has created.
func (w *world) created(t *testing.T) *runtime.CreateContainerRequest {
	t.Helper()
	var request runtime.CreateContainerRequest
	w.last(t, &request)
	return &request
}

// mustRefuse checks that a call was refused, and that the runtime has not had it.
func (w *world) mustRefuse(t *testing.T, err error, code codes.Code, texts ...string) {
	t.Helper()
	if status.Code(err) != code {
		t.Fatalf("%v, want %s", err, code)
	}
	for _, text := range texts {
		if !strings.Contains(status.Convert(err).Message(), text) {
			t.Errorf("the refusal is %q, want %q in it", status.Convert(err).Message(), text)
		}
	}
	w.runtime.mu.Lock()
	defer w.runtime.mu.Unlock()
	for _, c := range w.runtime.calls {
		if !slices.Contains(lookups, c.method) && c.method != runtime.RuntimeService_StopContainer_FullMethodName {
			t.Errorf("the runtime has %s", c.method)
		}
	}
}

// ofTheAPI is a request about a pod of the API, and has a field that this version does not know.
func ofTheAPI(t *testing.T, method string) []byte {
	t.Helper()
	var request proto.Message
	switch method {
	case runtime.RuntimeService_RunPodSandbox_FullMethodName:
		request = &runtime.RunPodSandboxRequest{Config: sandbox("api")}
	case runtime.RuntimeService_CreateContainer_FullMethodName:
		request = container("api")
	case runtime.RuntimeService_RestorePod_FullMethodName:
		request = &runtime.RestorePodRequest{Config: sandbox("api")}
	case runtime.RuntimeService_StartContainer_FullMethodName:
		request = &runtime.StartContainerRequest{ContainerId: "api"}
	case runtime.RuntimeService_Version_FullMethodName: // its answer has no version here
		request = &runtime.VersionRequest{Version: "v1"}
	default:
		return []byte("\xff not to be decoded: " + method)
	}
	data := testkit.Need(proto.Marshal(request))(t)
	return protowire.AppendString(protowire.AppendTag(data, 999, protowire.BytesType), "of a later version")
}

// Each method passes through byte for byte, with metadata, deadline, header and trailer.
func TestEachMethodPassesThrough(t *testing.T) {
	w := newWorld(t, nodeFiles(t, "/nowhere", ""))
	var methods []string
	for _, service := range []grpc.ServiceDesc{runtime.RuntimeService_ServiceDesc, runtime.ImageService_ServiceDesc} {
		for _, m := range service.Methods {
			methods = append(methods, "/"+service.ServiceName+"/"+m.MethodName)
		}
		for _, s := range service.Streams {
			methods = append(methods, "/"+service.ServiceName+"/"+s.StreamName)
		}
	}
	if len(methods) < 43 {
		t.Errorf("%d methods only", len(methods))
	}
	for _, method := range methods {
		for _, request := range [][]byte{ofTheAPI(t, method), {}} {
			if len(request) == 0 && ofTheAPI(t, method)[0] != 0xff {
				continue // of no pod, which is refused
			}
			ctx, cancel := context.WithTimeout(metadata.AppendToOutgoingContext(t.Context(), "echo", method, "trace", "a", "trace", "b"), time.Hour)
			var answer []byte
			var header, trailer metadata.MD
			if err := w.raw.Invoke(ctx, method, &request, &answer, grpc.Header(&header), grpc.Trailer(&trailer)); err != nil {
				t.Fatalf("%s: %v", method, err)
			}
			cancel()
			if !bytes.Equal(answer, request) {
				t.Errorf("%s: the answer is %q, want %q", method, answer, request)
			}
			if h, tr := header.Get("header"), trailer.Get("trailer"); len(h) != 1 || len(tr) != 1 || h[0] != "of "+method || tr[0] != h[0] {
				t.Errorf("%s: header %q, trailer %q", method, h, tr)
			}
		}
	}
	w.runtime.mu.Lock()
	defer w.runtime.mu.Unlock()
	for _, c := range w.runtime.calls {
		if trace := c.metadata.Get("trace"); len(trace) != 2 || !c.deadline {
			t.Errorf("%s: metadata %v, deadline: %v", c.method, c.metadata, c.deadline)
		}
	}
}

// A method that is not of this version of CRI could create. It has the answer of a runtime that does not have it.
func TestMethodsOfOthers(t *testing.T) {
	w := newWorld(t, nodeFiles(t, guard.Restricted, ""))
	for _, method := range []string{
		"/runtime.v1.RuntimeService/OfALaterVersion", "/runtime.v2.RuntimeService/CreateContainer", "/runtime.v1alpha2.RuntimeService/CreateContainer",
		"/containerd.services.containers.v1.Containers/Create", "/containerd.services.tasks.v1.Tasks/Create",
	} {
		request := ofTheAPI(t, method)
		err := w.raw.Invoke(t.Context(), method, &request, new([]byte))
		w.mustRefuse(t, err, codes.Unimplemented, "credence-node guard does not know "+method)
	}
}

// The guard is in the version that kubelets write into the status of their Node, and in nothing else of the answer.
func TestVersionHasTheGuard(t *testing.T) {
	w := newWorld(t, nodeFiles(t, "/nowhere", ""))
	for has, want := range map[string]string{
		"2.1.4":        "2.1.4+credence-guard",
		"v2.2.0-rc.1":  "2.2.0-rc.1+credence-guard",
		"1.34.1+git-5": "1.34.1+git-5.credence-guard",
		"1.7.24~ds1":   "1.7.24+credence-guard", // of Debian; kubelets cut it
		"unknown":      "unknown",
		"":             "",
	} {
		w.runtime.version = has
		got := testkit.Need(w.kubelet.Version(t.Context(), &runtime.VersionRequest{}))(t)
		if diff := cmp.Diff(&runtime.VersionResponse{Version: "0.1.0", RuntimeName: "containerd", RuntimeVersion: want, RuntimeApiVersion: "v1"}, got, protocmp.Transform()); diff != "" {
			t.Errorf("%q (-want +got):\n%s", has, diff)
		}
		if read, err := version.ParseSemantic(want); err == nil && read.String() != want {
			t.Errorf("kubelets read %s as %s", want, read)
		}
	}
}

// A refusal of the runtime is the kubelet's answer, with its code and details.
func TestFailuresPassThrough(t *testing.T) {
	w := newWorld(t, nodeFiles(t, guard.Baseline, ""))
	for _, method := range []string{runtime.RuntimeService_RunPodSandbox_FullMethodName, runtime.RuntimeService_StopContainer_FullMethodName} {
		request := ofTheAPI(t, method)
		var answer []byte
		var trailer metadata.MD
		err := w.raw.Invoke(metadata.AppendToOutgoingContext(t.Context(), "fail", "1"), method, &request, &answer, grpc.Trailer(&trailer))
		got := status.Convert(err)
		if got.Code() != codes.ResourceExhausted || got.Message() != "no space" || len(got.Details()) != 1 || !proto.Equal(got.Details()[0].(proto.Message), &runtime.VersionRequest{Version: "detail"}) {
			t.Errorf("%s: %v with %v", method, err, got.Details())
		}
	}
}

// Messages of a stream pass in both directions while it is open, and its end passes, too.
func TestStreamsPassThrough(t *testing.T) {
	w := newWorld(t, nodeFiles(t, guard.Baseline, ""))
	stream := testkit.Need(w.raw.NewStream(metadata.AppendToOutgoingContext(t.Context(), "echo", runtime.RuntimeService_GetContainerEvents_FullMethodName), &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, runtime.RuntimeService_GetContainerEvents_FullMethodName))(t)
	if header, err := stream.Header(); err != nil || len(header.Get("header")) != 1 {
		t.Errorf("before the first message: header %v, %v", header, err)
	}
	for _, message := range []string{"one", "two", strings.Repeat("large", 1<<20)} {
		sent, got := []byte(message), []byte(nil)
		if err := errors.Join(stream.SendMsg(&sent), stream.RecvMsg(&got)); err != nil || !bytes.Equal(sent, got) {
			t.Fatalf("%v; got %d bytes of %d", err, len(got), len(sent))
		}
	}
	second := testkit.Need(w.raw.NewStream(metadata.AppendToOutgoingContext(t.Context(), "echo", runtime.RuntimeService_GetContainerEvents_FullMethodName), &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, runtime.RuntimeService_GetContainerEvents_FullMethodName))(t)
	testkit.Must(t, second.CloseSend())
	if err := second.RecvMsg(new([]byte)); !errors.Is(err, io.EOF) {
		t.Errorf("after the end: %v", err)
	}
	if trailer := second.Trailer(); len(trailer.Get("trailer")) != 1 {
		t.Errorf("after the end: trailer %v", trailer)
	}
}

// A stream that the kubelet leaves is left at the runtime, too.
func TestStreamsThatAreLeft(t *testing.T) {
	w := newWorld(t, nodeFiles(t, guard.Baseline, ""))
	ctx, cancel := context.WithCancel(metadata.AppendToOutgoingContext(t.Context(), "echo", runtime.RuntimeService_GetContainerEvents_FullMethodName))
	stream := testkit.Need(w.raw.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, "/runtime.v1.RuntimeService/GetContainerEvents"))(t)
	testkit.Must(t, testkit.Err(stream.Header()))
	cancel()
	w.lastCall(t) // it is there once it has ended
}

// A guard that is to end serves on while a call is in flight, new connections too. Then it ends, and with it streams that never end.
func TestCallsInFlight(t *testing.T) {
	folder := t.TempDir()
	socket, runtimeSocket := filepath.Join(folder, "g"), filepath.Join(folder, "r")
	began, release := make(chan struct{}), make(chan struct{})
	defer (&fakeRuntime{pulling: func() { close(began); <-release }}).serve(t, runtimeSocket)()
	g := testkit.Need(guard.New(nodeFiles(t, guard.Restricted, ""), endpoint.Socket(runtimeSocket)))(t)
	listener := testkit.Need(net.Listen("unix", socket))(t)
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- g.Serve(ctx, listener) }()
	connection := dial(t, socket)
	defer connection.Close()
	method := runtime.RuntimeService_GetContainerEvents_FullMethodName
	events := testkit.Need(connection.NewStream(metadata.AppendToOutgoingContext(t.Context(), "echo", method), &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, method, grpc.ForceCodecV2(bytesCodec{})))(t)
	testkit.Must(t, testkit.Err(events.Header()))
	pulled := make(chan error, 1)
	go func() {
		_, err := runtime.NewImageServiceClient(connection).PullImage(t.Context(), &runtime.PullImageRequest{})
		pulled <- err
	}()
	<-began
	end()
	for range 10 {
		later := dial(t, socket)
		testkit.Expect(t, testkit.Err(runtime.NewRuntimeServiceClient(later).Version(t.Context(), &runtime.VersionRequest{})), "while an image is pulled")
		testkit.Expect(t, later.Close())
	}
	close(release)
	testkit.Expect(t, <-pulled, "the pull")
	testkit.Expect(t, <-ended)
	if err := events.RecvMsg(new([]byte)); status.Code(err) != codes.Unavailable || status.Convert(err).Message() != "credence-node guard ends" {
		t.Errorf("the stream of events ends with %v", err)
	}
}

// While the runtime is away nothing is created, and once it is back the guard has found it.
func TestRuntimeThatIsAway(t *testing.T) {
	folder := t.TempDir()
	socket, runtimeSocket := filepath.Join(folder, "g"), filepath.Join(folder, "r")
	defer serveGuard(t, nodeFiles(t, guard.Restricted, ""), socket, runtimeSocket)()
	connection := dial(t, socket)
	defer connection.Close()
	kubelet := runtime.NewRuntimeServiceClient(connection)
	for _, source := range []string{"api", "file"} {
		if _, err := kubelet.CreateContainer(t.Context(), container(source)); status.Code(err) != codes.Unavailable {
			t.Errorf("a container of %s: %v, want Unavailable", source, err)
		}
	}
	if _, err := kubelet.Version(t.Context(), &runtime.VersionRequest{}); status.Code(err) != codes.Unavailable {
		t.Errorf("%v, want Unavailable", err)
	}
	defer (&fakeRuntime{}).serve(t, runtimeSocket)()
	testkit.Eventually(t, "the guard finds the runtime", func() bool {
		_, err := kubelet.Version(t.Context(), &runtime.VersionRequest{})
		return err == nil
	})
}

// BenchmarkCall is a call of a kubelet, by itself and through a guard.
func BenchmarkCall(b *testing.B) {
	folder := testkit.Need(os.MkdirTemp("", "guard"))(b)
	defer os.RemoveAll(folder)
	socket, runtimeSocket := filepath.Join(folder, "guard.sock"), filepath.Join(folder, "runtime.sock")
	defer (&fakeRuntime{image: &runtime.Image{Id: image}}).serve(b, runtimeSocket)()
	defer serveGuard(b, guard.Config{Node: "Node-1", KubeletDir: "/var/lib/kubelet", Template: guard.Restricted}, socket, runtimeSocket)()
	for name, through := range map[string]string{"alone": runtimeSocket, "guarded": socket} {
		connection := dial(b, through)
		defer connection.Close()
		kubelet := runtime.NewRuntimeServiceClient(connection)
		b.Run(name+"/Version", func(b *testing.B) {
			for b.Loop() {
				testkit.Must(b, testkit.Err(kubelet.Version(b.Context(), &runtime.VersionRequest{})))
			}
		})
		for _, source := range []string{"api", "file"} {
			b.Run(name+"/CreateContainer/"+source, func(b *testing.B) {
				for b.Loop() {
					testkit.Must(b, testkit.Err(kubelet.CreateContainer(b.Context(), container(source))))
				}
			})
		}
	}
}
