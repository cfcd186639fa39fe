package node_test

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	runtime "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/credence-id/credence/internal/app/node"
	"github.com/credence-id/credence/internal/app/serving"
	"github.com/credence-id/credence/test/testkit"
)

// TestMain is the guard in processes that these tests start.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "guard" {
		command := node.NewGuardCommand()
		command.SetArgs(os.Args[2:])
		serving.Main(command)
	}
	os.Exit(m.Run())
}

const (
	imageID = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	podUID  = "0123456789abcdef0123456789abcdef"
)

// fakeRuntime has one image, and keeps what was created last.
type fakeRuntime struct {
	runtime.UnimplementedRuntimeServiceServer
	runtime.UnimplementedImageServiceServer
	mu        sync.Mutex
	sandbox   *runtime.PodSandboxConfig
	container *runtime.ContainerConfig
}

func (f *fakeRuntime) Version(context.Context, *runtime.VersionRequest) (*runtime.VersionResponse, error) {
	return &runtime.VersionResponse{RuntimeVersion: "2.1.4"}, nil
}

func (f *fakeRuntime) RunPodSandbox(_ context.Context, request *runtime.RunPodSandboxRequest) (*runtime.RunPodSandboxResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sandbox = request.GetConfig()
	return &runtime.RunPodSandboxResponse{PodSandboxId: "s"}, nil
}

func (f *fakeRuntime) PodSandboxStatus(context.Context, *runtime.PodSandboxStatusRequest) (*runtime.PodSandboxStatusResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return &runtime.PodSandboxStatusResponse{Status: &runtime.PodSandboxStatus{
		Metadata: f.sandbox.GetMetadata(), Annotations: f.sandbox.GetAnnotations(),
		Linux: &runtime.LinuxPodSandboxStatus{Namespaces: &runtime.Namespace{Options: f.sandbox.GetLinux().GetSecurityContext().GetNamespaceOptions()}},
	}}, nil
}

func (f *fakeRuntime) CreateContainer(_ context.Context, request *runtime.CreateContainerRequest) (*runtime.CreateContainerResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.container = request.GetConfig()
	return &runtime.CreateContainerResponse{ContainerId: "c"}, nil
}

func (f *fakeRuntime) created() *runtime.ContainerConfig {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.container
}

func (f *fakeRuntime) ImageStatus(context.Context, *runtime.ImageStatusRequest) (*runtime.ImageStatusResponse, error) {
	return &runtime.ImageStatusResponse{Image: &runtime.Image{Id: imageID}}, nil
}

func (f *fakeRuntime) serve(t *testing.T, socket string) {
	t.Helper()
	server := grpc.NewServer()
	runtime.RegisterRuntimeServiceServer(server, f)
	runtime.RegisterImageServiceServer(server, f)
	listener := testkit.Need(net.Listen("unix", socket))(t)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
}

// service is what systemd is to a guard: it holds the socket, and starts the program. As in the unit, the guard has no network if this test may make
// an empty one.
type service struct {
	program   string
	arguments []string
	socket    *os.File
}

func newService(t *testing.T, config node.Guard) service {
	t.Helper()
	testkit.Must(t, os.MkdirAll(filepath.Dir(config.Listen), 0o700))
	listener := testkit.Need(net.Listen("unix", config.Listen))(t)
	held := testkit.Need(listener.(*net.UnixListener).File())(t)
	t.Cleanup(func() { _, _ = held.Close(), listener.Close() })
	s := service{program: filepath.Join(filepath.Dir(config.Listen), "credence-node"), socket: held}
	s.arguments = []string{"guard", "--listen", config.Listen, "--runtime", config.Runtime, "--node-name", config.Node, "--allow", config.Allowed}
	s.install(t)
	return s
}

// install puts another file in the place of the program.
func (s service) install(t *testing.T) {
	t.Helper()
	own := testkit.Need(os.Executable())(t)
	content := testkit.Need(os.ReadFile(own))(t)
	testkit.Must(t, os.WriteFile(s.program+".new", content, 0o700))
	testkit.Must(t, os.Rename(s.program+".new", s.program))
}

func (s service) start(t *testing.T) *exec.Cmd {
	t.Helper()
	command := exec.Command("sh", append([]string{"-c", `LISTEN_PID=$$ LISTEN_FDS=1 exec "$0" "$@"`, s.program}, s.arguments...)...)
	command.ExtraFiles, command.Stderr, command.SysProcAttr = []*os.File{s.socket}, os.Stderr, withoutNetwork()
	testkit.Must(t, command.Start())
	t.Cleanup(func() { _ = command.Process.Kill() })
	return command
}

// withoutNetwork gives a process an empty network, if this process may make one.
func withoutNetwork() *syscall.SysProcAttr {
	attributes := &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	probe := exec.Command("true")
	if probe.SysProcAttr = attributes; probe.Run() != nil {
		return nil
	}
	return attributes
}

// dialGuard connects as a kubelet does, and waits for as long as a machine needs.
func dialGuard(socket string) (*grpc.ClientConn, error) {
	return grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithConnectParams(grpc.ConnectParams{MinConnectTimeout: 5 * time.Minute}))
}

// caller calls the guard again and again.
type caller struct {
	begun, ended atomic.Int64
	// kills is odd while a guard is killed.
	kills *atomic.Int64
}

func (c *caller) run(ctx context.Context, call func(context.Context) error) error {
	for ctx.Err() == nil {
		before := c.kills.Load()
		c.begun.Add(1)
		err := call(ctx)
		c.ended.Add(1)
		// A call that a killed guard had is broken, and the kubelet repeats it.
		if broken := status.Code(err) == codes.Unavailable && (before%2 == 1 || c.kills.Load() != before); err != nil && !broken && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

// A guard is killed, and another version takes its place, while systemd holds the socket: calls wait for the next one. The guard that is stopped ends
// the calls that it has. Calls are broken only if the guard that has them is killed.
func TestGuardThatRestarts(t *testing.T) {
	config := guardConfig(t)
	(&fakeRuntime{}).serve(t, config.Runtime)
	s := newService(t, config)
	guard := s.start(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()

	version := func(ctx context.Context, connection *grpc.ClientConn) error {
		_, err := runtime.NewRuntimeServiceClient(connection).Version(ctx, &runtime.VersionRequest{})
		return err
	}
	kept := testkit.Need(dialGuard(config.Listen))(t)
	defer kept.Close()
	kills, callers, failures := new(atomic.Int64), []*caller{}, make(chan error, 4)
	for i := range cap(failures) {
		c := &caller{kills: kills}
		callers = append(callers, c)
		go func() {
			failures <- c.run(ctx, func(ctx context.Context) error {
				if i == 0 {
					return version(ctx, kept)
				}
				connection, err := dialGuard(config.Listen)
				if err != nil {
					return err
				}
				defer connection.Close()
				return version(ctx, connection)
			})
		}()
	}
	answered := func(what string) {
		t.Helper()
		var before []int64
		for _, c := range callers {
			before = append(before, c.ended.Load())
		}
		testkit.Eventually(t, what, func() bool {
			select {
			case err := <-failures:
				t.Fatalf("a call: %v", err)
			default:
			}
			for i, c := range callers {
				if c.ended.Load() < before[i]+5 {
					return false
				}
			}
			return true
		})
	}
	waiting := func() {
		t.Helper()
		testkit.Eventually(t, "all callers wait for a guard", func() bool {
			for _, c := range callers {
				if c.begun.Load() == c.ended.Load() {
					return false
				}
			}
			return true
		})
	}

	answered("the guard answers")
	kills.Add(1)
	testkit.Must(t, guard.Process.Kill())
	_ = guard.Wait()
	kills.Add(1)
	waiting()
	guard = s.start(t)
	answered("the guard after one that was killed answers")

	s.install(t)
	testkit.Must(t, guard.Process.Signal(syscall.SIGTERM))
	testkit.Expect(t, guard.Wait(), "the guard that is stopped")
	waiting()
	guard = s.start(t)
	answered("the guard of another version answers")

	cancel()
	for range callers {
		testkit.Expect(t, <-failures, "a call")
	}
	testkit.Must(t, guard.Process.Signal(syscall.SIGTERM))
	testkit.Expect(t, guard.Wait())
	testkit.Expect(t, testkit.Err(os.Stat(config.Listen)), "the socket that systemd holds")
}

// After a reboot the API may be away. The guard decides without it: it has no network here, no kubeconfig and no credentials.
func TestGuardWithoutTheAPI(t *testing.T) {
	config, fake := guardConfig(t), &fakeRuntime{}
	fake.serve(t, config.Runtime)
	config.Allowed = filepath.Join(filepath.Dir(config.Runtime), "allow.yaml")
	testkit.Must(t, os.WriteFile(config.Allowed, []byte("pods: [{pod: kube-system/kube-apiserver, images: ['"+imageID+"']}]\n"), 0o600))
	guard := newService(t, config).start(t)
	connection := testkit.Need(dialGuard(config.Listen))(t)
	defer connection.Close()
	kubelet := runtime.NewRuntimeServiceClient(connection)
	for _, test := range []struct {
		pod     string
		allowed bool
	}{{"kube-apiserver", true}, {"other", false}} {
		sandbox := &runtime.PodSandboxConfig{
			Metadata:    &runtime.PodSandboxMetadata{Namespace: "kube-system", Name: test.pod + "-node-1", Uid: podUID},
			Annotations: map[string]string{"kubernetes.io/config.source": "file"},
			Linux:       &runtime.LinuxPodSandboxConfig{SecurityContext: &runtime.LinuxSandboxSecurityContext{NamespaceOptions: &runtime.NamespaceOption{Pid: runtime.NamespaceMode_CONTAINER}}},
		}
		if _, err := kubelet.RunPodSandbox(t.Context(), &runtime.RunPodSandboxRequest{Config: sandbox}); err != nil {
			t.Errorf("the sandbox of %s: %v", test.pod, err)
		}
		if _, err := kubelet.CreateContainer(t.Context(), &runtime.CreateContainerRequest{PodSandboxId: "s", SandboxConfig: sandbox, Config: &runtime.ContainerConfig{
			Metadata: &runtime.ContainerMetadata{Name: "main"}, Image: &runtime.ImageSpec{Image: imageID},
			Linux: &runtime.LinuxContainerConfig{SecurityContext: &runtime.LinuxContainerSecurityContext{Privileged: true, NamespaceOptions: sandbox.GetLinux().GetSecurityContext().GetNamespaceOptions()}},
		}}); err != nil {
			t.Errorf("the container of %s: %v", test.pod, err)
			continue
		}
		if got := fake.created().GetLinux().GetSecurityContext().GetPrivileged(); got != test.allowed {
			t.Errorf("the container of %s is privileged: %v, want %v", test.pod, got, test.allowed)
		}
	}
	testkit.Must(t, guard.Process.Signal(syscall.SIGTERM))
	testkit.Expect(t, guard.Wait())
}

// A guard does not serve on another socket than that of --listen.
func TestOtherSocketsOfSystemd(t *testing.T) {
	config := guardConfig(t)
	s := newService(t, config)
	s.arguments[2] = filepath.Join(filepath.Dir(config.Runtime), "other.sock")
	command := s.start(t)
	if err := command.Wait(); err == nil {
		t.Errorf("the guard serves %s on the socket %s", s.arguments[2], config.Listen)
	}
}
