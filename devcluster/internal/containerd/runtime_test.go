//go:build linux

package containerd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// runtime is a container runtime with images, pods and containers.
type runtime struct {
	cri.UnimplementedRuntimeServiceServer
	cri.UnimplementedImageServiceServer

	mu         sync.Mutex
	images     []string
	containers map[string]bool // whether it runs
	pods       map[string]bool
	grace      []int64
	failure    error
}

func serve(t *testing.T, folder string, r *runtime) {
	t.Helper()
	listener, err := net.Listen("unix", Socket(folder))
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	cri.RegisterRuntimeServiceServer(server, r)
	cri.RegisterImageServiceServer(server, r)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
}

func (*runtime) Version(context.Context, *cri.VersionRequest) (*cri.VersionResponse, error) {
	return &cri.VersionResponse{}, nil
}

func (r *runtime) ImageStatus(_ context.Context, request *cri.ImageStatusRequest) (*cri.ImageStatusResponse, error) {
	if !slices.Contains(r.images, request.GetImage().GetImage()) {
		return &cri.ImageStatusResponse{}, r.failure
	}
	return &cri.ImageStatusResponse{Image: &cri.Image{Id: "x"}}, r.failure
}

func (r *runtime) ListContainers(_ context.Context, request *cri.ListContainersRequest) (*cri.ListContainersResponse, error) {
	answer := &cri.ListContainersResponse{}
	for id, runs := range r.containers {
		if runs == (request.GetFilter().GetState().GetState() == cri.ContainerState_CONTAINER_RUNNING) {
			answer.Containers = append(answer.Containers, &cri.Container{Id: id})
		}
	}
	return answer, nil
}

func (r *runtime) ListPodSandbox(_ context.Context, request *cri.ListPodSandboxRequest) (*cri.ListPodSandboxResponse, error) {
	answer := &cri.ListPodSandboxResponse{}
	for id, ready := range r.pods {
		if ready == (request.GetFilter().GetState().GetState() == cri.PodSandboxState_SANDBOX_READY) {
			answer.Items = append(answer.Items, &cri.PodSandbox{Id: id})
		}
	}
	return answer, nil
}

func (r *runtime) StopContainer(_ context.Context, request *cri.StopContainerRequest) (*cri.StopContainerResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.containers[request.GetContainerId()] = false
	r.grace = append(r.grace, request.GetTimeout())
	return &cri.StopContainerResponse{}, r.failure
}

func (r *runtime) StopPodSandbox(_ context.Context, request *cri.StopPodSandboxRequest) (*cri.StopPodSandboxResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pods[request.GetPodSandboxId()] = false
	return &cri.StopPodSandboxResponse{}, nil
}

func TestEndPods(t *testing.T) {
	folder := t.TempDir()
	r := &runtime{containers: map[string]bool{"a": true, "b": true, "ended": false}, pods: map[string]bool{"p": true, "q": false}}
	serve(t, folder, r)
	if err := EndPods(t.Context(), folder, 2*time.Second); err != nil {
		t.Fatal(err)
	}
	if r.containers["a"] || r.containers["b"] || r.pods["p"] || !slices.Equal(r.grace, []int64{2, 2}) {
		t.Errorf("containers %v, pods %v, grace %v", r.containers, r.pods, r.grace)
	}
	// One that can't be stopped keeps none of the others.
	r.containers, r.pods, r.failure = map[string]bool{"a": true, "b": true}, map[string]bool{"p": true}, errors.New("hangs")
	if err := EndPods(t.Context(), folder, 0); err == nil || !strings.Contains(err.Error(), "end pods: ") || r.containers["a"] || r.containers["b"] || r.pods["p"] {
		t.Errorf("%v, containers %v, pods %v", err, r.containers, r.pods)
	}
}

func TestAwait(t *testing.T) {
	folder := t.TempDir()
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("containerd has ended"))
	if err := Await(ctx, Socket(folder)); err == nil || !strings.Contains(err.Error(), "containerd does not answer: containerd has ended") {
		t.Errorf("nothing answers: %v", err)
	}
	answered := make(chan error, 1)
	go func() { answered <- Await(t.Context(), Socket(folder)) }()
	serve(t, folder, &runtime{}) // before or after the first request
	if err := <-answered; err != nil {
		t.Error(err)
	}
}

func TestHasImage(t *testing.T) {
	folder := t.TempDir()
	r := &runtime{images: []string{PauseImage}}
	serve(t, folder, r)
	for name, want := range map[string]bool{PauseImage: true, "docker.io/library/other:1": false} {
		if got, err := HasImage(t.Context(), folder, name); err != nil || got != want {
			t.Errorf("%s: %t, %v", name, got, err)
		}
	}
	r.failure = errors.New("no disk")
	if _, err := HasImage(t.Context(), folder, PauseImage); err == nil || !strings.Contains(err.Error(), "look up image "+PauseImage+" in containerd: ") {
		t.Errorf("%v", err)
	}
}

// program writes a shell script that takes the place of a program.
func program(t *testing.T, name, script string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestImport(t *testing.T) {
	folder := t.TempDir()
	ctr := program(t, "ctr", `echo "$@" >'`+folder+`/arguments'; cat >'`+folder+`/archive'
echo 'unpacking docker.io/library/a:1 (sha256:00)...done'; echo 'elapsed: 1s'; echo 'unpacking b:2 (sha256:11)...done'`)
	names, err := Import(t.Context(), Programs{Ctr: ctr}, folder, strings.NewReader("archive"))
	if err != nil || !slices.Equal(names, []string{"docker.io/library/a:1", "b:2"}) {
		t.Errorf("%v, %v", names, err)
	}
	arguments, err := os.ReadFile(filepath.Join(folder, "arguments"))
	if err != nil || !strings.HasPrefix(string(arguments), "--address "+Socket(folder)+" --namespace k8s.io images import --snapshotter ") {
		t.Errorf("%s, %v", arguments, err)
	}
	if archive, err := os.ReadFile(filepath.Join(folder, "archive")); err != nil || string(archive) != "archive" {
		t.Errorf("%s, %v", archive, err)
	}
	if _, err := Import(t.Context(), Programs{Ctr: program(t, "ctr", "echo unrecognized image format; exit 1")}, folder, strings.NewReader("x")); err == nil || err.Error() != "import images: unrecognized image format" {
		t.Errorf("an invalid archive: %v", err)
	}
}

// The error is that of the program that was to be loaded, or of the runtime, whichever is the cause.
func TestLoadRefuses(t *testing.T) {
	folder := t.TempDir()
	script := program(t, "script", "")
	if err := Load(t.Context(), Programs{}, folder, PauseImage, script); err == nil || !strings.Contains(err.Error(), script) {
		t.Errorf("a program that is not static: %v", err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := Load(t.Context(), Programs{Ctr: program(t, "ctr", "echo no runtime; exit 1")}, folder, PauseImage, self); err == nil || err.Error() != "load image "+PauseImage+": no runtime" {
		t.Errorf("without a runtime: %v", err)
	}
	if err := Load(t.Context(), Programs{Ctr: program(t, "ctr", "cat >/dev/null")}, folder, PauseImage, self); err != nil {
		t.Errorf("an image that is taken: %v", err)
	}
}

func TestConfiguration(t *testing.T) {
	s := Settings{Folder: filepath.Join(t.TempDir(), `a "folder"`)}
	if err := s.Prepare(); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(s.configFile())
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"version = 2", fmt.Sprintf("address = %q", s.Socket()), fmt.Sprintf("conf_dir = %q", s.CNIFolder()), fmt.Sprintf("sandbox_image = %q", PauseImage)} {
		if !strings.Contains(string(content), want) {
			t.Errorf("the configuration has no %s:\n%s", want, content)
		}
	}
}

// Processes of containerd with this folder are killed, those with another one are not. Then the state is removed, and images stay.
func TestWhatAKilledRunHasLeft(t *testing.T) {
	folder, other := t.TempDir(), t.TempDir()
	left := func(folder string) *exec.Cmd {
		t.Helper()
		command := exec.CommandContext(t.Context(), "/bin/sh")
		command.Args = []string{"containerd-shim", "-c", "read forever", Socket(folder)}
		stdin, err := command.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = stdin.Close() })
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		return command
	}
	ours, foreign := left(folder), left(other)
	killed := make(chan error, 1)
	go func() { killed <- ours.Wait() }()
	if err := Kill(t.Context(), folder); err != nil {
		t.Fatal(err)
	}
	if err := <-killed; err == nil || err.Error() != "signal: killed" {
		t.Errorf("the shim: %v", err)
	}
	if found, err := processes(other); err != nil || !slices.Equal(found, []int{foreign.Process.Pid}) {
		t.Errorf("processes of the other folder are %v, %v", found, err)
	}
	if err := Kill(t.Context(), other); err != nil {
		t.Error(err)
	}
	_ = foreign.Wait() // it was killed
	for _, name := range []string{"containerd-state/tasks", "containerd/images"} {
		if err := os.MkdirAll(filepath.Join(folder, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := RemoveState(folder); err != nil {
		t.Fatal(err)
	}
	if entries, err := os.ReadDir(folder); err != nil || len(entries) != 1 || entries[0].Name() != "containerd" {
		t.Errorf("%v, %v, want the images", entries, err)
	}
}

func TestRunEndsWithItsProgram(t *testing.T) {
	s := Settings{Folder: t.TempDir(), Programs: Programs{Containerd: program(t, "containerd", `echo "$@"; exit 4`)}}
	var output strings.Builder
	err := s.Run(t.Context(), &output, func(int) {})
	if err == nil || !strings.HasSuffix(err.Error(), "exit status 4") || output.String() != "--config "+s.configFile()+"\n" {
		t.Errorf("%v, %q", err, output.String())
	}
}
