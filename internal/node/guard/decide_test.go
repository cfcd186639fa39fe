package guard_test

//lint:file-ignore SA1019 Kubelets before 1.30 write the older field of AppArmor alone, and runtimes read it where the newer one is open.

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	runtime "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/credence-id/credence/internal/node/guard"
	"github.com/credence-id/credence/test/testkit"
)

const (
	uid       = "0123456789abcdef0123456789abcdef"
	podFolder = "/var/lib/kubelet/pods/" + uid
	image     = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	manifest  = "sha256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
	other     = "sha256:cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc"
)

var (
	unconfined = &runtime.SecurityProfile{ProfileType: runtime.SecurityProfile_Unconfined}
	standard   = &runtime.SecurityProfile{ProfileType: runtime.SecurityProfile_RuntimeDefault}
)

func number(n int64) *runtime.Int64Value { return &runtime.Int64Value{Value: n} }

// masked is what kubelets hide.
var (
	masked   = []string{"/proc/acpi", "/proc/asound", "/proc/interrupts", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/sched_debug", "/proc/scsi", "/proc/timer_list", "/proc/timer_stats", "/sys/devices/virtual/powercap", "/sys/firmware"}
	readonly = []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"}
)

// sandbox is the one of the manifest kube-system/proxy on the node Node-1.
func sandbox(source string) *runtime.PodSandboxConfig {
	return &runtime.PodSandboxConfig{
		Metadata:    &runtime.PodSandboxMetadata{Namespace: "kube-system", Name: "proxy-node-1", Uid: uid},
		Annotations: map[string]string{"kubernetes.io/config.source": source},
		Linux:       &runtime.LinuxPodSandboxConfig{SecurityContext: &runtime.LinuxSandboxSecurityContext{Seccomp: standard, NamespaceOptions: &runtime.NamespaceOption{}}},
	}
}

// container is as a kubelet creates one whose manifest has no security context, of an image without a user.
func container(source string) *runtime.CreateContainerRequest {
	return &runtime.CreateContainerRequest{
		PodSandboxId: source, SandboxConfig: sandbox(source),
		Config: &runtime.ContainerConfig{
			Metadata: &runtime.ContainerMetadata{Name: "main"}, Image: &runtime.ImageSpec{Image: image},
			Annotations: map[string]string{"io.kubernetes.container.hash": "1", "io.kubernetes.pod.terminationGracePeriod": "30"},
			Mounts: []*runtime.Mount{
				{ContainerPath: "/etc/hosts", HostPath: podFolder + "/etc-hosts"},
				{ContainerPath: "/dev/termination-log", HostPath: podFolder + "/containers/main/0a1b2c3d"},
				{ContainerPath: "/cache", HostPath: podFolder + "/volumes/kubernetes.io~empty-dir/cache"},
				{ContainerPath: "/tools", Image: &runtime.ImageSpec{Image: other}},
			},
			Linux: &runtime.LinuxContainerConfig{SecurityContext: &runtime.LinuxContainerSecurityContext{
				RunAsUser: number(0), Seccomp: unconfined, MaskedPaths: masked, ReadonlyPaths: readonly, NamespaceOptions: &runtime.NamespaceOption{},
			}},
		},
	}
}

// from has containers created in a pod of another source. The runtime's sandboxes are named by theirs.
func from(source string, requests ...*runtime.CreateContainerRequest) {
	for _, r := range requests {
		r.PodSandboxId, r.SandboxConfig = source, sandbox(source)
	}
}

func security(r *runtime.CreateContainerRequest) *runtime.LinuxContainerSecurityContext {
	return r.GetConfig().GetLinux().GetSecurityContext()
}

// nodeFiles are the template and the pods that are allowed.
func nodeFiles(t *testing.T, template, allowed string) guard.Config {
	t.Helper()
	config := guard.Config{Node: "Node-1", KubeletDir: "/var/lib/kubelet", Template: template}
	if strings.Contains(template, "\n") {
		config.Template = write(t, "template.yaml", template)
	}
	if allowed != "" {
		config.Allowed = write(t, "allow.yaml", allowed)
	}
	return config
}

func write(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	testkit.Must(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

// restricted is what the template leaves of a container without a security context.
func restricted(s *runtime.LinuxContainerSecurityContext) {
	s.RunAsUser, s.RunAsGroup, s.RunAsUsername = number(65532), number(65532), ""
	s.Capabilities = &runtime.Capability{DropCapabilities: []string{"ALL"}}
	s.NoNewPrivs, s.ReadonlyRootfs, s.Privileged = true, true, false
	s.SupplementalGroupsPolicy = runtime.SupplementalGroupsPolicy_Strict
	s.Seccomp = standard
}

func TestContainersAreTightened(t *testing.T) {
	type change = func(*runtime.LinuxContainerSecurityContext)
	for name, test := range map[string]struct {
		template  string // restricted, if empty
		ask, want change
	}{
		"nothing":                    {want: restricted},
		"root by its name":           {ask: func(s *runtime.LinuxContainerSecurityContext) { s.RunAsUser, s.RunAsUsername = nil, "root" }, want: restricted},
		"a user by a name":           {ask: func(s *runtime.LinuxContainerSecurityContext) { s.RunAsUser, s.RunAsUsername = nil, "app" }, want: restricted},
		"a user that is cut to root": {ask: func(s *runtime.LinuxContainerSecurityContext) { s.RunAsUser = number(1 << 32) }, want: restricted},
		"a user and group of its own": {
			ask: func(s *runtime.LinuxContainerSecurityContext) { s.RunAsUser, s.RunAsGroup = number(1000), number(2000) },
			want: func(s *runtime.LinuxContainerSecurityContext) {
				restricted(s)
				s.RunAsUser, s.RunAsGroup = number(1000), number(2000)
			},
		},
		"a user without a group, which could be root's": {
			ask:  func(s *runtime.LinuxContainerSecurityContext) { s.RunAsUser = number(1000) },
			want: func(s *runtime.LinuxContainerSecurityContext) { restricted(s); s.RunAsUser = number(1000) },
		},
		"groups": {
			ask:  func(s *runtime.LinuxContainerSecurityContext) { s.SupplementalGroups = []int64{0, 7, 1 << 32} },
			want: func(s *runtime.LinuxContainerSecurityContext) { restricted(s); s.SupplementalGroups = []int64{7} },
		},
		"privileged": {ask: func(s *runtime.LinuxContainerSecurityContext) {
			s.Privileged, s.Apparmor, s.ApparmorProfile = true, unconfined, "unconfined"
		}, want: restricted},
		"capabilities": {
			ask: func(s *runtime.LinuxContainerSecurityContext) {
				s.Capabilities = &runtime.Capability{AddCapabilities: []string{"SYS_ADMIN", "NET_BIND_SERVICE"}, AddAmbientCapabilities: []string{"SYS_PTRACE"}}
			},
			want: func(s *runtime.LinuxContainerSecurityContext) {
				restricted(s)
				s.Capabilities.AddCapabilities = []string{"NET_BIND_SERVICE"}
			},
		},
		"an unmasked /proc": {
			ask:  func(s *runtime.LinuxContainerSecurityContext) { s.MaskedPaths, s.ReadonlyPaths = nil, nil },
			want: restricted,
		},
		"a type of SELinux": {
			ask: func(s *runtime.LinuxContainerSecurityContext) {
				s.SelinuxOptions = &runtime.SELinuxOption{Type: "spc_t", Level: "s0:c1"}
			},
			want: func(s *runtime.LinuxContainerSecurityContext) {
				restricted(s)
				s.SelinuxOptions = &runtime.SELinuxOption{Level: "s0:c1"}
			},
		},
		"a file of seccomp that may allow everything": {
			ask: func(s *runtime.LinuxContainerSecurityContext) {
				s.Seccomp = &runtime.SecurityProfile{ProfileType: runtime.SecurityProfile_Localhost, LocalhostRef: "/elsewhere/strict.json"}
			},
			want: restricted,
		},
		"a profile of AppArmor that may allow everything": {
			ask: func(s *runtime.LinuxContainerSecurityContext) {
				s.Apparmor, s.ApparmorProfile = &runtime.SecurityProfile{ProfileType: runtime.SecurityProfile_Localhost, LocalhostRef: "chrome"}, "localhost/chrome"
			},
			want: restricted,
		},
		"baseline leaves root": {
			template: guard.Baseline,
			ask: func(s *runtime.LinuxContainerSecurityContext) {
				s.Privileged, s.Capabilities = true, &runtime.Capability{AddCapabilities: []string{"CHOWN", "NET_ADMIN"}}
			},
			want: func(s *runtime.LinuxContainerSecurityContext) {
				s.Privileged, s.Seccomp, s.Capabilities = false, standard, &runtime.Capability{AddCapabilities: []string{"CHOWN"}}
			},
		},
		"a file": {
			template: "apiVersion: accounts.credence.dev/v1alpha1\nkind: SecurityContextTemplate\nmetadata: {name: own}\nspec:\n  pod: {runAsUser: 20017}\n  container: {seccompProfile: {type: Localhost, localhostProfile: own.json}}\n",
			want: func(s *runtime.LinuxContainerSecurityContext) {
				s.RunAsUser = number(20017)
				s.Seccomp = &runtime.SecurityProfile{ProfileType: runtime.SecurityProfile_Localhost, LocalhostRef: "/var/lib/kubelet/seccomp/own.json"}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			template := test.template
			if template == "" {
				template = guard.Restricted
			}
			w := newWorld(t, nodeFiles(t, template, ""))
			asked, want := container("file"), container("file")
			if test.ask != nil {
				test.ask(security(asked))
				test.ask(security(want))
			}
			test.want(security(want))
			if name == "an unmasked /proc" {
				security(want).MaskedPaths, security(want).ReadonlyPaths = masked, readonly
			}
			if name == "privileged" || strings.HasPrefix(name, "a profile of AppArmor") {
				security(want).Apparmor, security(want).ApparmorProfile = nil, ""
			}
			for _, source := range []string{"file", "http", "", "else"} {
				from(source, asked, want)
				testkit.Must(t, testkit.Err(w.kubelet.CreateContainer(t.Context(), asked)))
				if diff := cmp.Diff(want, w.created(t), protocmp.Transform()); diff != "" {
					t.Errorf("source %q: what the runtime is given (-want +got):\n%s", source, diff)
				}
			}
			// Once more it is as strict.
			got := w.created(t)
			testkit.Must(t, testkit.Err(w.kubelet.CreateContainer(t.Context(), got)))
			if !proto.Equal(got, w.created(t)) {
				t.Errorf("a container that was tightened is changed again: %v", w.created(t))
			}
			// One of the API stays as it is.
			from("api", asked)
			testkit.Must(t, testkit.Err(w.kubelet.CreateContainer(t.Context(), asked)))
			if diff := cmp.Diff(asked, w.created(t), protocmp.Transform()); diff != "" {
				t.Errorf("a pod of the API is changed (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMountsAreNotPassedOnToTheHost(t *testing.T) {
	w := newWorld(t, nodeFiles(t, guard.Baseline, ""))
	asked := container("file")
	asked.Config.Mounts[2].Propagation = runtime.MountPropagation_PROPAGATION_BIDIRECTIONAL
	testkit.Must(t, testkit.Err(w.kubelet.CreateContainer(t.Context(), asked)))
	if got := w.created(t).GetConfig().GetMounts()[2].GetPropagation(); got != runtime.MountPropagation_PROPAGATION_HOST_TO_CONTAINER {
		t.Errorf("the mount is %s", got)
	}
}

// A container that has something of the host is refused, with what it is and what to do. One of the API is not.
func TestContainersAreRefused(t *testing.T) {
	mount := func(path string) func(*runtime.CreateContainerRequest) {
		return func(r *runtime.CreateContainerRequest) {
			r.Config.Mounts = append(r.Config.Mounts, &runtime.Mount{ContainerPath: "/host", HostPath: path})
		}
	}
	for name, test := range map[string]struct {
		ask    func(*runtime.CreateContainerRequest)
		reason string
	}{
		"the host's root":                {mount("/"), "the host's / at /host"},
		"a socket":                       {mount("/run/containerd/containerd.sock"), "the host's /run/containerd/containerd.sock at /host"},
		"volumes of another pod":         {mount("/var/lib/kubelet/pods/0f0e0d0c-0000-4000-8000-000000000000/volumes/kubernetes.io~projected/token"), "the host's /var/lib/kubelet/pods/0f0e"},
		"a pod whose uid begins alike":   {mount(podFolder + "0/volumes/kubernetes.io~empty-dir/cache"), "the host's " + podFolder + "0/"},
		"out of its own folder":          {mount(podFolder + "/volumes/kubernetes.io~empty-dir/.."), "the host's " + podFolder + "/volumes"},
		"far out of its own folder":      {mount(podFolder + "/volumes/a~b/../../../../../../../etc"), "the host's "},
		"through a link in a volume":     {mount(podFolder + "/volumes/kubernetes.io~empty-dir/cache/link"), "the host's " + podFolder + "/volumes/kubernetes.io~empty-dir/cache/link"},
		"its own folder":                 {mount(podFolder), "the host's " + podFolder},
		"all of its volumes":             {mount(podFolder + "/volumes"), "the host's " + podFolder + "/volumes"},
		"a part of a folder of the host": {mount(podFolder + "/volume-subpaths/host/main/0"), "a subPath at /host, of which can't be known"},
		"a path beside an image":         {func(r *runtime.CreateContainerRequest) { r.Config.Mounts[3].HostPath = "/etc" }, "the host's /etc at /tools"},
		"no path":                        {mount(""), "the host's  at /host"},
		"a device": {func(r *runtime.CreateContainerRequest) {
			r.Config.Devices = []*runtime.Device{{HostPath: "/dev/sda", ContainerPath: "/dev/x"}}
		}, "device /dev/sda"},
		"a device of a plugin": {func(r *runtime.CreateContainerRequest) {
			r.Config.CDIDevices = []*runtime.CDIDevice{{Name: "vendor.com/gpu=0"}}
		}, "device vendor.com/gpu=0"},
		"a device by an annotation": {func(r *runtime.CreateContainerRequest) {
			r.Config.Annotations = map[string]string{"cdi.k8s.io/x": "vendor.com/gpu=1"}
		}, "annotation cdi.k8s.io/x"},
		"the host's network": {func(r *runtime.CreateContainerRequest) {
			security(r).NamespaceOptions = &runtime.NamespaceOption{Network: runtime.NamespaceMode_NODE}
		}, "hostNetwork"},
		"a disk of the host": {mount(podFolder + "/volumes/kubernetes.io~fc/disk"), "the host's " + podFolder + "/volumes/kubernetes.io~fc/disk"},
		"a port of the sandbox": {func(r *runtime.CreateContainerRequest) {
			r.SandboxConfig.PortMappings = []*runtime.PortMapping{{HostPort: 6443}}
		}, "hostPort 6443"},
		"a network of the sandbox": {func(r *runtime.CreateContainerRequest) {
			r.SandboxConfig.Linux.SecurityContext.NamespaceOptions.Network = runtime.NamespaceMode_NODE
		}, "hostNetwork"},
		"the host's processes": {func(r *runtime.CreateContainerRequest) {
			security(r).NamespaceOptions = &runtime.NamespaceOption{Pid: runtime.NamespaceMode_NODE, Ipc: runtime.NamespaceMode_NODE}
		}, "hostPID, hostIPC"},
		"the uid of a pod of the API": {func(r *runtime.CreateContainerRequest) {
			r.SandboxConfig.Metadata.Uid = "0f0e0d0c-0000-4000-8000-000000000000"
		}, `metadata.uid "0f0e0d0c-0000-4000-8000-000000000000", which may be that of another pod`},
		"a uid that is a path": {func(r *runtime.CreateContainerRequest) { r.SandboxConfig.Metadata.Uid = "../../../.." }, `metadata.uid "../../../.."`},
		"options of Windows":   {func(r *runtime.CreateContainerRequest) { r.Config.Windows = &runtime.WindowsContainerConfig{} }, "options of Windows"},
		"no security context":  {func(r *runtime.CreateContainerRequest) { r.Config.Linux = nil }, "no security context of Linux"},
		"no configuration":     {func(r *runtime.CreateContainerRequest) { r.Config = nil }, "no security context of Linux"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nodeFiles(t, guard.Restricted, ""))
			asked := container("file")
			test.ask(asked)
			_, err := w.kubelet.CreateContainer(t.Context(), asked)
			w.mustRefuse(t, err, codes.PermissionDenied, "pod kube-system/proxy-node-1, which does not come from the API: ", test.reason,
				" by its template restricted: take it out of the manifest, or list pod kube-system/proxy and the digests of its images in the file of --allow")
			from("api", asked)
			testkit.Expect(t, testkit.Err(w.kubelet.CreateContainer(t.Context(), asked)), "a pod of the API is refused")
		})
	}
}

// The sandbox counts as the runtime has it, and not as the request repeats it.
func TestSandboxesAsTheyRun(t *testing.T) {
	namespaces := func(s *runtime.PodSandboxStatus) *runtime.NamespaceOption {
		return s.GetLinux().GetNamespaces().GetOptions()
	}
	for name, test := range map[string]struct {
		source string // of the request
		live   func(*runtime.PodSandboxStatus)
		reason string
	}{
		"a pod that is not of the API": {"api", func(s *runtime.PodSandboxStatus) {
			s.Annotations["kubernetes.io/config.source"] = "file"
			namespaces(s).Network = 2
		}, "hostNetwork"},
		"without a source":                  {"api", func(s *runtime.PodSandboxStatus) { s.Annotations, namespaces(s).Pid = nil, 2 }, "hostPID"},
		"the host's network":                {"file", func(s *runtime.PodSandboxStatus) { namespaces(s).Network = 2 }, "hostNetwork"},
		"a namespace that is not known":     {"file", func(s *runtime.PodSandboxStatus) { namespaces(s).Ipc = 7 }, "hostIPC"},
		"no namespaces":                     {"file", func(s *runtime.PodSandboxStatus) { s.Linux = nil }, "a sandbox whose namespaces the runtime does not state"},
		"an annotation of a plugin":         {"file", func(s *runtime.PodSandboxStatus) { s.Annotations["devices.nri.io/container.main"] = "x" }, "annotation devices.nri.io/container.main"},
		"another pod":                       {"file", func(s *runtime.PodSandboxStatus) { s.Metadata.Name = "other-node-1" }, "the sandbox of pod kube-system/other-node-1 with uid " + uid},
		"another pod of the same name":      {"file", func(s *runtime.PodSandboxStatus) { s.Metadata.Uid = strings.Repeat("f", 32) }, "with uid " + strings.Repeat("f", 32)},
		"another pod, of another namespace": {"file", func(s *runtime.PodSandboxStatus) { s.Metadata.Namespace = "default" }, "the sandbox of pod default/proxy-node-1 with uid " + uid},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nodeFiles(t, guard.Restricted, ""))
			w.runtime.live = test.live
			_, err := w.kubelet.CreateContainer(t.Context(), container(test.source))
			w.mustRefuse(t, err, codes.PermissionDenied, "pod kube-system/proxy-node-1, which does not come from the API: ", test.reason+": credence-node guard refuses")
		})
	}
	// One that is allowed gives nothing to a container in the sandbox of another pod.
	w := newWorld(t, nodeFiles(t, guard.Restricted, "pods:\n- {pod: kube-system/proxy, images: ['"+image+"']}\n"))
	w.runtime.image, w.runtime.live = &runtime.Image{Id: image}, func(s *runtime.PodSandboxStatus) { s.Metadata.Name = "other-node-1" }
	_, err := w.kubelet.CreateContainer(t.Context(), container("file"))
	w.mustRefuse(t, err, codes.PermissionDenied, "the sandbox of pod kube-system/other-node-1")
	w.runtime.live = func(s *runtime.PodSandboxStatus) { namespaces(s).Network = 2 }
	testkit.Expect(t, testkit.Err(w.kubelet.CreateContainer(t.Context(), container("file"))), "with the network of the host, which it may have")
}

// Nothing is created in a sandbox that the runtime does not have.
func TestSandboxesThatCannotBeLookedUp(t *testing.T) {
	for _, source := range []string{"api", "file"} {
		w := newWorld(t, nodeFiles(t, guard.Restricted, ""))
		w.runtime.liveError = status.Error(codes.NotFound, "no such sandbox")
		_, err := w.kubelet.CreateContainer(t.Context(), container(source))
		w.mustRefuse(t, err, codes.NotFound, "look up the sandbox of pod kube-system/proxy-node-1: no such sandbox")
	}
}

func TestBaselineHasDevices(t *testing.T) {
	w := newWorld(t, nodeFiles(t, guard.Baseline, ""))
	asked := container("file")
	asked.Config.Devices = []*runtime.Device{{HostPath: "/dev/x"}}
	testkit.Expect(t, testkit.Err(w.kubelet.CreateContainer(t.Context(), asked)))
}

func TestSandboxes(t *testing.T) {
	for name, test := range map[string]struct {
		ask    func(*runtime.PodSandboxConfig)
		reason string // empty: tightened
	}{
		"nothing": {ask: func(*runtime.PodSandboxConfig) {}},
		"annotations of Kubernetes": {ask: func(c *runtime.PodSandboxConfig) {
			c.Annotations["kubernetes.io/config.hash"], c.Annotations["kubeadm.kubernetes.io/etcd.advertise-client-urls"] = "x", "x"
		}},
		"privileged": {ask: func(c *runtime.PodSandboxConfig) { c.Linux.SecurityContext.Privileged = true }},
		"root": {ask: func(c *runtime.PodSandboxConfig) {
			c.Linux.SecurityContext.RunAsUser, c.Linux.SecurityContext.Seccomp = number(0), unconfined
		}},
		"the host's network": {func(c *runtime.PodSandboxConfig) {
			c.Linux.SecurityContext.NamespaceOptions.Network = runtime.NamespaceMode_NODE
		}, "hostNetwork"},
		"a port": {func(c *runtime.PodSandboxConfig) {
			c.PortMappings = []*runtime.PortMapping{{ContainerPort: 80}, {ContainerPort: 81, HostPort: 8081}}
		}, "hostPort 8081"},
		"an annotation of a plugin":                                    {func(c *runtime.PodSandboxConfig) { c.Annotations["devices.nri.io/container.main"] = "x" }, "annotation devices.nri.io/container.main"},
		"an annotation of a plugin, for all containers":                {func(c *runtime.PodSandboxConfig) { c.Annotations["mounts.nri.io"] = "x" }, "annotation mounts.nri.io"},
		"an annotation of a runtime":                                   {func(c *runtime.PodSandboxConfig) { c.Annotations["io.katacontainers.config.x"] = "x" }, "annotation io.katacontainers.config.x"},
		"an annotation of CRI-O":                                       {func(c *runtime.PodSandboxConfig) { c.Annotations["seccomp-profile.kubernetes.cri-o.io"] = "x" }, "annotation seccomp-profile.kubernetes.cri-o.io"},
		"an annotation for containers":                                 {func(c *runtime.PodSandboxConfig) { c.Annotations["io.kubernetes.container.x"] = "x" }, "annotation io.kubernetes.container.x"},
		"an annotation whose prefix only ends like that of Kubernetes": {func(c *runtime.PodSandboxConfig) { c.Annotations["notkubernetes.io/x"] = "x" }, "annotation notkubernetes.io/x"},
		"an annotation of a class":                                     {func(c *runtime.PodSandboxConfig) { c.Annotations["rdt.resources.beta.kubernetes.io/pod"] = "x" }, "annotation rdt.resources.beta.kubernetes.io/pod"},
		"an annotation without a prefix":                               {func(c *runtime.PodSandboxConfig) { c.Annotations["note"] = "x" }, "annotation note"},
		"a uid":                                                        {func(c *runtime.PodSandboxConfig) { c.Metadata.Uid = "" }, `metadata.uid ""`},
		"options of Windows":                                           {func(c *runtime.PodSandboxConfig) { c.Windows = &runtime.WindowsPodSandboxConfig{} }, "options of Windows"},
		"no security context":                                          {func(c *runtime.PodSandboxConfig) { c.Linux = nil }, "no security context of Linux"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nodeFiles(t, guard.Restricted, ""))
			asked := &runtime.RunPodSandboxRequest{Config: sandbox("http")}
			test.ask(asked.Config)
			_, err := w.kubelet.RunPodSandbox(t.Context(), asked)
			if test.reason != "" {
				w.mustRefuse(t, err, codes.PermissionDenied, "pod kube-system/proxy-node-1, which", test.reason)
			} else if err != nil {
				t.Error(err)
			} else {
				want := proto.Clone(asked).(*runtime.RunPodSandboxRequest)
				s := want.Config.Linux.SecurityContext
				s.Privileged, s.RunAsUser, s.RunAsGroup, s.ReadonlyRootfs, s.Seccomp = false, number(65532), number(65532), true, standard
				s.SupplementalGroupsPolicy = runtime.SupplementalGroupsPolicy_Strict
				var got runtime.RunPodSandboxRequest
				w.last(t, &got)
				if diff := cmp.Diff(want, &got, protocmp.Transform()); diff != "" {
					t.Errorf("what the runtime is given (-want +got):\n%s", diff)
				}
			}
			asked.Config.Annotations = sandbox("api").GetAnnotations()
			testkit.Expect(t, testkit.Err(w.kubelet.RunPodSandbox(t.Context(), asked)), "a pod of the API is refused")
			var got runtime.RunPodSandboxRequest
			if w.last(t, &got); !proto.Equal(asked, &got) {
				t.Errorf("a pod of the API is changed: %v", &got)
			}
		})
	}
}

// A handler may be a runtime that gives devices, or none of the guard's fields.
func TestHandlersAreRefused(t *testing.T) {
	w := newWorld(t, nodeFiles(t, guard.Restricted, ""))
	_, err := w.kubelet.RunPodSandbox(t.Context(), &runtime.RunPodSandboxRequest{Config: sandbox("file"), RuntimeHandler: "h"})
	w.mustRefuse(t, err, codes.PermissionDenied, "the runtime's handler h")
	testkit.Expect(t, testkit.Err(w.kubelet.RunPodSandbox(t.Context(), &runtime.RunPodSandboxRequest{Config: sandbox("api"), RuntimeHandler: "h"})))
}

// A container is of an image that the runtime has, by its ID: a runtime takes the name of a file for a checkpoint.
func TestImagesThatAreCheckpoints(t *testing.T) {
	for name, test := range map[string]struct {
		image  *runtime.Image
		reason string
	}{
		"a file": {nil, "a name that is not of an image which the runtime has, and may be a file with a checkpoint"},
		"of CRI-O": {&runtime.Image{Id: image, Spec: &runtime.ImageSpec{Annotations: map[string]string{
			"io.kubernetes.cri-o.annotations.checkpoint.name": "main",
		}}}, "an image that is a checkpoint"},
		"of later versions": {&runtime.Image{Id: image, Spec: &runtime.ImageSpec{Annotations: map[string]string{"org.criu.checkpoint.container.name": "main"}}}, "an image that is a checkpoint"},
		"an image":          {&runtime.Image{Id: image, Spec: &runtime.ImageSpec{Annotations: map[string]string{"org.opencontainers.image.title": "main"}}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nodeFiles(t, guard.Baseline, ""))
			w.runtime.image = test.image
			asked := container("file")
			asked.Config.Image.Image = "var/lib/kubelet/checkpoints/c.tar"
			_, err := w.kubelet.CreateContainer(t.Context(), asked)
			if test.reason != "" {
				w.mustRefuse(t, err, codes.PermissionDenied, test.reason)
			} else if err != nil {
				t.Error(err)
			} else if got := w.created(t).GetConfig().GetImage().GetImage(); got != image {
				t.Errorf("the runtime creates %s", got)
			}
			from("api", asked)
			if _, err := w.kubelet.CreateContainer(t.Context(), asked); err != nil || w.created(t).GetConfig().GetImage().GetImage() != asked.GetConfig().GetImage().GetImage() {
				t.Errorf("of the API: %v, %v", err, w.created(t))
			}
		})
	}
}

// containerd shows that a container was restored once it is created. Its processes start later.
func TestRestoredContainersAreNotStarted(t *testing.T) {
	w := newWorld(t, nodeFiles(t, guard.Baseline, ""))
	w.runtime.annotations = map[string]string{"restored": "true"}
	_, err := w.kubelet.StartContainer(t.Context(), &runtime.StartContainerRequest{ContainerId: "file"})
	w.mustRefuse(t, err, codes.PermissionDenied, "pod kube-system/proxy-node-1, which does not come from the API: a checkpoint: ")
	testkit.Expect(t, testkit.Err(w.kubelet.StartContainer(t.Context(), &runtime.StartContainerRequest{ContainerId: "api"})), "of the API")
	w.runtime.annotations = map[string]string{"io.kubernetes.container.hash": "1"}
	testkit.Expect(t, testkit.Err(w.kubelet.StartContainer(t.Context(), &runtime.StartContainerRequest{ContainerId: "file"})), "not restored")
	w.runtime.liveError = status.Error(codes.NotFound, "no such container")
	if _, err := w.kubelet.StartContainer(t.Context(), &runtime.StartContainerRequest{ContainerId: "file"}); status.Code(err) != codes.NotFound {
		t.Errorf("not there: %v", err)
	}
}

// Processes of a checkpoint can't be tightened.
func TestCheckpointsAreNotRestored(t *testing.T) {
	w := newWorld(t, nodeFiles(t, guard.Baseline, ""))
	_, err := w.kubelet.RestorePod(t.Context(), &runtime.RestorePodRequest{Config: sandbox("file")})
	w.mustRefuse(t, err, codes.PermissionDenied, "a checkpoint")
	testkit.Expect(t, testkit.Err(w.kubelet.RestorePod(t.Context(), &runtime.RestorePodRequest{Config: sandbox("api")})))
}

// An allowed pod stays as it is, with the images that are listed alone. The runtime creates the image that was looked up.
func TestAllowedPods(t *testing.T) {
	list := func(pod string, images ...string) string {
		return "pods:\n- pod: " + pod + "\n  images: [" + strings.Join(images, ", ") + "]\n"
	}
	for name, test := range map[string]struct {
		allowed string
		image   *runtime.Image
		keeps   bool
	}{
		"by its configuration": {list("kube-system/proxy", other, image), &runtime.Image{Id: image}, true},
		"by a manifest":        {list("kube-system/proxy", manifest), &runtime.Image{Id: image, RepoDigests: []string{"registry.k8s.io/a@" + other, "registry.k8s.io/proxy@" + manifest}}, true},
		"another image":        {list("kube-system/proxy", other), &runtime.Image{Id: image, RepoTags: []string{other}}, false},
		"a tag like a digest":  {list("kube-system/proxy", other), &runtime.Image{Id: image, RepoDigests: []string{other}}, false},
		"no image":             {list("kube-system/proxy", other), nil, false},
		"another pod":          {list("kube-system/other", image), &runtime.Image{Id: image}, false},
		"another namespace":    {list("default/proxy", image), &runtime.Image{Id: image}, false},
		"with the node's name": {list("kube-system/proxy-node-1", image), &runtime.Image{Id: image}, false},
		"none":                 {"pods: []\n", &runtime.Image{Id: image}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nodeFiles(t, guard.Restricted, test.allowed))
			w.runtime.image = test.image
			asked := container("file")
			asked.Config.Image.Image = "proxy:v1"
			asked.Config.Mounts = append(asked.Config.Mounts, &runtime.Mount{HostPath: "/", ContainerPath: "/host"})
			security(asked).Privileged = true
			want := proto.Clone(asked).(*runtime.CreateContainerRequest)
			want.Config.Image.Image = image
			_, err := w.kubelet.CreateContainer(t.Context(), asked)
			if !test.keeps {
				w.mustRefuse(t, err, codes.PermissionDenied, `container "main" with image proxy:v1: the host's / at /host`)
				return
			}
			testkit.Must(t, err)
			if diff := cmp.Diff(want, w.created(t), protocmp.Transform()); diff != "" {
				t.Errorf("what the runtime is given (-want +got):\n%s", diff)
			}
			hosts := &runtime.RunPodSandboxRequest{Config: sandbox("file")}
			hosts.Config.Linux.SecurityContext.NamespaceOptions.Network = runtime.NamespaceMode_NODE
			testkit.Expect(t, testkit.Err(w.kubelet.RunPodSandbox(t.Context(), hosts)), "its sandbox is refused")
		})
	}
}

// Nothing that can't be decided is created; pods of the API are, and all else goes on. A file that is mended counts at once.
func TestNothingIsCreatedWithoutADecision(t *testing.T) {
	for name, test := range map[string]struct {
		template, allowed string
		reason            string
	}{
		"no template":           {"/nowhere", "", "read the template: open /nowhere: no such file"},
		"not a template":        {"kind: Pod\n", "", "apiVersion and kind must be"},
		"an unknown field":      {"apiVersion: accounts.credence.dev/v1alpha1\nkind: SecurityContextTemplate\nspec: {container: {runAsUserr: 5}}\n", "", "runAsUserr"},
		"root":                  {"apiVersion: accounts.credence.dev/v1alpha1\nkind: SecurityContextTemplate\nspec: {container: {runAsUser: 0}}\n", "", "spec.container.runAsUser: Invalid value: 0: must not be root's"},
		"not root, of no user":  {"apiVersion: accounts.credence.dev/v1alpha1\nkind: SecurityContextTemplate\nspec: {pod: {runAsNonRoot: true}}\n", "", "spec.container.runAsUser: Required value: a number holds runAsNonRoot"},
		"a group of volumes":    {"apiVersion: accounts.credence.dev/v1alpha1\nkind: SecurityContextTemplate\nspec: {pod: {fsGroup: 7, sysctls: [{name: a, value: b}]}, windows: {hostProcess: false}}\n", "", "[spec.pod.fsGroup: Forbidden: it can't be held at the runtime: take it off, spec.pod.sysctls: "},
		"what no pod can have":  {"apiVersion: accounts.credence.dev/v1alpha1\nkind: SecurityContextTemplate\nspec: {container: {runAsUser: -1}}\n", "", "runAsUser"},
		"no list":               {guard.Restricted, "\n", "pods is missing"},
		"a list of other pods":  {guard.Restricted, "pods:\n- pod: proxy\n  images: []\n", `pods[0].pod "proxy" is not the namespace and name of a manifest`},
		"a pod twice":           {guard.Restricted, "pods:\n- {pod: a/b, images: ['" + image + "']}\n- {pod: a/b, images: ['" + image + "']}\n", `pods[1].pod "a/b" is there already`},
		"a pod without images":  {guard.Restricted, "pods:\n- pod: kube-system/proxy\n", "pods[0].images is missing"},
		"an image by its tag":   {guard.Restricted, "pods:\n- {pod: a/b, images: ['proxy:v1']}\n", `pods[0].images: "proxy:v1" is not a digest`},
		"a field that is wrong": {guard.Restricted, "pods: []\nall: true\n", "all"},
	} {
		t.Run(name, func(t *testing.T) {
			config := nodeFiles(t, test.template, test.allowed)
			w := newWorld(t, config)
			if err := config.Check(); err == nil || !strings.Contains(err.Error(), test.reason) {
				t.Errorf("the check is %v, want %q", err, test.reason)
			}
			_, err := w.kubelet.RunPodSandbox(t.Context(), &runtime.RunPodSandboxRequest{Config: sandbox("file")})
			w.mustRefuse(t, err, codes.FailedPrecondition, "creates nothing of it: ", test.reason, "mend the file on this node, as root")
			_, err = w.kubelet.CreateContainer(t.Context(), container("http"))
			w.mustRefuse(t, err, codes.FailedPrecondition, "creates nothing of it: ", test.reason)
			testkit.Expect(t, testkit.Err(w.kubelet.CreateContainer(t.Context(), container("api"))), "a pod of the API")
			testkit.Expect(t, testkit.Err(w.kubelet.StopContainer(t.Context(), &runtime.StopContainerRequest{})), "a container is not stopped")
			if test.allowed == "" {
				return
			}
			testkit.Must(t, os.WriteFile(config.Allowed, []byte("pods: []\n"), 0o600))
			testkit.Expect(t, testkit.Err(w.kubelet.CreateContainer(t.Context(), container("http"))), "with the file mended")
		})
	}
}

// A file that other users can write is not read; one of a group that may read it is.
func TestFilesOfOthers(t *testing.T) {
	for name, test := range map[string]struct {
		change func(path string) error
		reason string
	}{
		"readable":             {func(path string) error { return os.Chmod(path, 0o644) }, ""},
		"writable by a group":  {func(path string) error { return os.Chmod(path, 0o620) }, "has mode 0620, so that other users can write it: chmod go-w "},
		"writable by everyone": {func(path string) error { return os.Chmod(path, 0o602) }, "has mode 0602, so that other users can write it"},
		"of another user":      {func(path string) error { return os.Chown(path, 4711, -1) }, "belongs to uid 4711: chown root "},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "of another user" && os.Geteuid() != 0 {
				t.Skip("only root can give a file to another user")
			}
			template := "apiVersion: accounts.credence.dev/v1alpha1\nkind: SecurityContextTemplate\nmetadata: {name: own}\nspec: {container: {runAsUser: 20017}}\n"
			for _, file := range []func(guard.Config) string{func(c guard.Config) string { return c.Template }, func(c guard.Config) string { return c.Allowed }} {
				config := nodeFiles(t, template, "pods: []\n")
				testkit.Must(t, test.change(file(config)))
				w := newWorld(t, config)
				_, err := w.kubelet.CreateContainer(t.Context(), container("file"))
				if test.reason == "" {
					if err != nil {
						t.Error(err)
					}
					continue
				}
				w.mustRefuse(t, err, codes.FailedPrecondition, file(config)+" "+test.reason)
			}
		})
	}
}

// Fields of later versions can't be judged. Pods that are allowed, and those of the API, have them.
func TestFieldsOfLaterVersions(t *testing.T) {
	later := protowire.AppendString(protowire.AppendTag(nil, 999, protowire.BytesType), "x")
	mark := func(m proto.Message) { m.ProtoReflect().SetUnknown(later) }
	for name, change := range map[string]func(*runtime.CreateContainerRequest){
		"CreateContainerRequest":        func(r *runtime.CreateContainerRequest) { mark(r) },
		"LinuxContainerSecurityContext": func(r *runtime.CreateContainerRequest) { mark(security(r)) },
		"Mount":                         func(r *runtime.CreateContainerRequest) { mark(r.Config.Mounts[1]) },
		"PodSandboxConfig":              func(r *runtime.CreateContainerRequest) { mark(r.SandboxConfig) },
	} {
		t.Run(name, func(t *testing.T) {
			config := nodeFiles(t, guard.Baseline, "pods: []\n")
			w := newWorld(t, config)
			asked := container("file")
			change(asked)
			_, err := w.kubelet.CreateContainer(t.Context(), asked)
			w.mustRefuse(t, err, codes.PermissionDenied, "field 999 of "+name+", which this version of the guard does not know: ")
			testkit.Must(t, os.WriteFile(config.Allowed, []byte("pods:\n- {pod: kube-system/proxy, images: ['"+image+"']}\n"), 0o600))
			if _, err := w.kubelet.CreateContainer(t.Context(), asked); err != nil || !proto.Equal(asked, w.created(t)) {
				t.Errorf("allowed: %v, %v", err, w.created(t))
			}
		})
	}
	w := newWorld(t, nodeFiles(t, guard.Baseline, ""))
	request := &runtime.RunPodSandboxRequest{Config: sandbox("file")}
	mark(request.GetConfig().GetLinux())
	_, err := w.kubelet.RunPodSandbox(t.Context(), request)
	w.mustRefuse(t, err, codes.PermissionDenied, "field 999 of LinuxPodSandboxConfig, which")
}

// An image that can't be looked up is not the one that is allowed.
func TestImagesThatCannotBeLookedUp(t *testing.T) {
	w := newWorld(t, nodeFiles(t, guard.Restricted, "pods:\n- {pod: kube-system/proxy, images: ['"+image+"']}\n"))
	w.runtime.imageError = status.Error(codes.Unavailable, "the store is away")
	_, err := w.kubelet.CreateContainer(t.Context(), container("file"))
	w.mustRefuse(t, err, codes.Unavailable, `container "main": look up image `+image+": the store is away")
}

// A request that can't be read is not passed on, of which pod it may be.
func TestUnreadableRequests(t *testing.T) {
	w := newWorld(t, nodeFiles(t, guard.Baseline, ""))
	for _, method := range []string{runtime.RuntimeService_RunPodSandbox_FullMethodName, runtime.RuntimeService_CreateContainer_FullMethodName, runtime.RuntimeService_RestorePod_FullMethodName} {
		var answer []byte
		err := w.raw.Invoke(t.Context(), method, new([]byte("\xff\xff")), &answer)
		w.mustRefuse(t, err, codes.InvalidArgument, "can't read the message, and creates nothing")
	}
}
