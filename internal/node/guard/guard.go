package guard

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtime "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/credence-id/credence/internal/securitycontext/cri"
)

// Config is what decides about the pods of a node.
type Config struct {
	// Node is the name that the kubelet gives the node: the names of its own pods end with it.
	Node string
	// KubeletDir is the kubelet's root directory.
	KubeletDir string
	// Template is the name of a template, or a file; Allowed is a file, or empty. Both are read for each container, so that changes hold at
	// once, and what can't be read keeps the pods of the node's own files alone from starting.
	Template, Allowed string
	// Reviews has pods of the API reviewed, if it is set, except those of the namespaces Unreviewed. Verdicts is the file where verdicts are
	// kept, or empty: they are in memory alone.
	Reviews    Reviewer
	Unreviewed []string
	Verdicts   string
	Log        *slog.Logger
}

// Check returns what is wrong with the two files.
func (c Config) Check() error {
	_, _, err := c.rules()
	return err
}

func (c Config) rules() (Template, Allowed, error) {
	template, err := ReadTemplate(c.Template)
	if err != nil {
		return Template{}, nil, fmt.Errorf("read the template: %w", err)
	}
	allowed, err := ReadAllowed(c.Allowed)
	if err != nil {
		return Template{}, nil, fmt.Errorf("read which pods are allowed: %w", err)
	}
	return template, allowed, nil
}

// The kubelet writes from where it has a pod into this annotation, whatever the pod has there.
const (
	sourceAnnotation = "kubernetes.io/config.source"
	sourceAPI        = "api"
)

// pod is one whose sandbox or container is created.
type pod struct {
	full, manifest string // namespace and name, with and without the node's
	uid            string
	fromAPI        bool
}

func (c Config) podOf(sandbox *runtime.PodSandboxConfig) pod {
	m := sandbox.GetMetadata()
	p := pod{full: m.GetNamespace() + "/" + m.GetName(), uid: m.GetUid(), fromAPI: sandbox.GetAnnotations()[sourceAnnotation] == sourceAPI}
	if name, found := strings.CutSuffix(p.full, "-"+strings.ToLower(c.Node)); found {
		p.manifest = name
	}
	return p
}

func (c Config) folder(p pod) string { return filepath.Join(c.KubeletDir, "pods", p.uid) }

// node is what messages to the runtime depend on.
func (c Config) node() cri.Node {
	return cri.Node{SeccompFolder: filepath.Join(c.KubeletDir, "seccomp")}
}

// runPodSandbox decides about the sandbox of a pod. An allowed pod has it by its name alone, as there is no image of the pod in it.
func (g *Guard) runPodSandbox(ctx context.Context, request *runtime.RunPodSandboxRequest) (changed bool, err error) {
	config := request.GetConfig()
	p := g.podOf(config)
	if p.fromAPI {
		// Kubelets of Windows give the sandbox the pod's account, too.
		if spec := config.GetWindows().GetSecurityContext().GetCredentialSpec(); spec != "" {
			return false, g.review(ctx, p, "", spec)
		}
		return false, nil
	}
	template, allowed, err := g.rules()
	if err != nil {
		return false, g.unready(ctx, p, err)
	}
	reasons := g.strange(p, config.GetWindows() != nil)
	if len(reasons) == 0 && allowed[p.manifest] != nil {
		return false, nil
	}
	reasons = append(append(reasons, unknownOf(request)...), sandboxOf(config)...)
	if handler := request.GetRuntimeHandler(); handler != "" {
		reasons = append(reasons, "the runtime's handler "+handler)
	}
	if reasons = append(reasons, annotationsOf(config.GetAnnotations(), harmless)...); len(reasons) > 0 {
		return false, g.refused(ctx, p, "", template, reasons)
	}
	if config.GetLinux().GetSecurityContext() == nil {
		return false, g.refused(ctx, p, "", template, []string{"no security context of Linux"})
	}
	fields, err := template.tightenSandbox(config.GetLinux().GetSecurityContext(), g.node())
	if err != nil {
		return false, g.unready(ctx, p, err)
	}
	return len(fields) > 0, nil
}

// createContainer decides about a container of a pod. Its pod comes from the API if both the request and the sandbox at the runtime have that.
func (g *Guard) createContainer(ctx context.Context, request *runtime.CreateContainerRequest) (changed bool, err error) {
	config, p := request.GetConfig(), g.podOf(request.GetSandboxConfig())
	live, err := g.containers.PodSandboxStatus(ctx, &runtime.PodSandboxStatusRequest{PodSandboxId: request.GetPodSandboxId()})
	if err != nil {
		return false, status.Errorf(status.Code(err), "look up the sandbox of pod %s: %s", p.full, status.Convert(err).Message())
	}
	sandbox := live.GetStatus()
	if has := g.podOf(&runtime.PodSandboxConfig{Metadata: sandbox.GetMetadata(), Annotations: sandbox.GetAnnotations()}); p.fromAPI && has.fromAPI {
		return false, g.review(ctx, has, config.GetMetadata().GetName(), config.GetWindows().GetSecurityContext().GetCredentialSpec())
	}
	p.fromAPI = false
	template, allowed, err := g.rules()
	if err != nil {
		return false, g.unready(ctx, p, err)
	}
	name := config.GetMetadata().GetName()
	reasons := append(g.strange(p, config.GetWindows() != nil), otherPod(request.GetSandboxConfig(), sandbox)...)
	answer, err := g.images.ImageStatus(ctx, &runtime.ImageStatusRequest{Image: config.GetImage()})
	if err != nil {
		return false, status.Errorf(status.Code(err), "%s: container %q: look up image %s: %s", p, name, config.GetImage().GetImage(), status.Convert(err).Message())
	}
	image := answer.GetImage()
	if len(reasons) == 0 && allowed.has(p, image) {
		config.Image.Image = image.GetId()
		g.Log.InfoContext(ctx, "container allowed", "pod", p.full, "container", name, "image", image.GetId())
		return true, nil
	}
	security := config.GetLinux().GetSecurityContext()
	// An allowed pod has its sandbox by its name: another image does not get what that has of the host.
	reasons = append(reasons, namespacesOf(security.GetNamespaceOptions())...)
	reasons = append(reasons, sandboxOf(request.GetSandboxConfig())...)
	reasons = append(reasons, liveOf(sandbox)...)
	reasons = append(reasons, mountsOf(config.GetMounts(), g.folder(p))...)
	reasons = append(reasons, checkpointOf(image)...)
	reasons = append(reasons, unknownOf(request)...)
	if !template.devices {
		reasons = append(reasons, devicesOf(config)...)
	}
	if security == nil {
		reasons = append(reasons, "no security context of Linux")
	}
	if len(reasons) > 0 {
		return false, g.refused(ctx, p, fmt.Sprintf("container %q with image %s: ", name, config.GetImage().GetImage()), template, reasons)
	}
	fields, err := template.tighten(security, g.node())
	if err != nil {
		return false, g.unready(ctx, p, err)
	}
	// A name could have another image a moment later, or be that of a file.
	if id := image.GetId(); config.Image.Image != id {
		config.Image.Image = id
		fields = append(fields, "image")
	}
	for _, m := range config.GetMounts() {
		if m.GetPropagation() == runtime.MountPropagation_PROPAGATION_BIDIRECTIONAL {
			m.Propagation = runtime.MountPropagation_PROPAGATION_HOST_TO_CONTAINER
			fields = append(fields, "mountPropagation")
		}
	}
	if len(fields) > 0 {
		g.Log.InfoContext(ctx, "container tightened", "pod", p.full, "container", name, "template", template.Name, "fields", fields)
	}
	return len(fields) > 0, nil
}

// restored is an annotation that runtimes give a container which they have restored from a checkpoint in place of an image.
const restored = "restored"

// startContainer decides about a container that was restored: whether an image is a checkpoint, containerd shows only then.
func (g *Guard) startContainer(ctx context.Context, request *runtime.StartContainerRequest) (changed bool, err error) {
	answer, err := g.containers.ContainerStatus(ctx, &runtime.ContainerStatusRequest{ContainerId: request.GetContainerId()})
	if _, found := answer.GetStatus().GetAnnotations()[restored]; err != nil || !found {
		return false, err
	}
	list, err := g.containers.ListContainers(ctx, &runtime.ListContainersRequest{Filter: &runtime.ContainerFilter{Id: request.GetContainerId()}})
	if err != nil {
		return false, err
	}
	for _, c := range list.GetContainers() {
		live, err := g.containers.PodSandboxStatus(ctx, &runtime.PodSandboxStatusRequest{PodSandboxId: c.GetPodSandboxId()})
		if err != nil {
			return false, err
		}
		p := g.podOf(&runtime.PodSandboxConfig{Metadata: live.GetStatus().GetMetadata(), Annotations: live.GetStatus().GetAnnotations()})
		if !p.fromAPI {
			return false, g.refused(ctx, p, "", Template{Name: g.Template}, []string{"a checkpoint"})
		}
	}
	return false, nil
}

// restorePod decides about a pod that is restored from a checkpoint: what its processes may do is in there, and can't be tightened.
func (g *Guard) restorePod(ctx context.Context, request *runtime.RestorePodRequest) (changed bool, err error) {
	p := g.podOf(request.GetConfig())
	if p.fromAPI {
		return false, g.review(ctx, p, "", request.GetConfig().GetWindows().GetSecurityContext().GetCredentialSpec())
	}
	return false, g.refused(ctx, p, "", Template{Name: g.Template}, []string{"a checkpoint"})
}

// strange are reasons to refuse whatever is created of a pod.
func (g *Guard) strange(p pod, windows bool) []string {
	var reasons []string
	if !computed.MatchString(p.uid) {
		reasons = append(reasons, fmt.Sprintf("metadata.uid %q, which may be that of another pod", p.uid))
	}
	if windows {
		reasons = append(reasons, "options of Windows")
	}
	return reasons
}

func (p pod) String() string { return "pod " + p.full + ", which does not come from the API" }

func (g *Guard) refused(ctx context.Context, p pod, container string, template Template, all []string) error {
	var reasons []string
	for _, reason := range all {
		if !slices.Contains(reasons, reason) {
			reasons = append(reasons, reason)
		}
	}
	g.Log.WarnContext(ctx, "refused", "pod", p.full, "container", container, "template", template.Name, "reasons", reasons)
	return status.Errorf(codes.PermissionDenied, "%s: %s%s: credence-node guard refuses that by its template %s: take it out of the manifest, or list pod %s and the digests of its images in the file of --allow on this node, as root",
		p, container, strings.Join(reasons, ", "), template.Name, strings.TrimSuffix(p.full, "-"+strings.ToLower(g.Node)))
}

func (g *Guard) unready(ctx context.Context, p pod, err error) error {
	g.Log.ErrorContext(ctx, "nothing is created of pods that do not come from the API", "pod", p.full, "error", err)
	return status.Errorf(codes.FailedPrecondition, "%s: credence-node guard creates nothing of it: %s: mend the file on this node, as root", p, err)
}
