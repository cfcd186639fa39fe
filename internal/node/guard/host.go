package guard

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	runtime "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Anything of the host can't be tightened: a pod has it or not.

// namespacesOf names the namespaces of the host that a pod would be in.
func namespacesOf(n *runtime.NamespaceOption) []string {
	var found []string
	for _, each := range []struct {
		mode  runtime.NamespaceMode
		field string
	}{{n.GetNetwork(), "hostNetwork"}, {n.GetPid(), "hostPID"}, {n.GetIpc(), "hostIPC"}} {
		switch each.mode {
		case runtime.NamespaceMode_POD, runtime.NamespaceMode_CONTAINER, runtime.NamespaceMode_TARGET:
		default:
			found = append(found, each.field)
		}
	}
	return found
}

// sandboxOf names what a sandbox has of the host.
func sandboxOf(c *runtime.PodSandboxConfig) []string {
	return append(namespacesOf(c.GetLinux().GetSecurityContext().GetNamespaceOptions()), portsOf(c.GetPortMappings())...)
}

// liveOf names what a sandbox has of the host, as the runtime has it, and what else no container of another image may share.
func liveOf(s *runtime.PodSandboxStatus) []string {
	namespaces := s.GetLinux().GetNamespaces().GetOptions()
	if namespaces == nil {
		return []string{"a sandbox whose namespaces the runtime does not state"}
	}
	return append(namespacesOf(namespaces), annotationsOf(s.GetAnnotations(), harmless)...)
}

// otherPod names the pod of a sandbox, if a container would be in that of another one.
func otherPod(requested *runtime.PodSandboxConfig, live *runtime.PodSandboxStatus) []string {
	r, l := requested.GetMetadata(), live.GetMetadata()
	if r.GetNamespace() == l.GetNamespace() && r.GetName() == l.GetName() && r.GetUid() == l.GetUid() {
		return nil
	}
	return []string{fmt.Sprintf("the sandbox of pod %s/%s with uid %s", l.GetNamespace(), l.GetName(), l.GetUid())}
}

// portsOf names the ports of the host that a pod would have.
func portsOf(ports []*runtime.PortMapping) []string {
	var found []string
	for _, p := range ports {
		if p.GetHostPort() != 0 {
			found = append(found, fmt.Sprintf("hostPort %d", p.GetHostPort()))
		}
	}
	return found
}

var (
	// computed is the form of the uid that a kubelet computes of a manifest. Others, such as those of pods from the API, a manifest gives itself.
	computed = regexp.MustCompile(`^[0-9a-f]{32}$`)
	// ofKubelet are the paths that a kubelet makes below a pod's folder, and mounts by themselves. A path below a volume could go through a link that
	// a container has made. Those of subPath (volume-subpaths) are not among them: they may be of any folder of the host. Volumes of other plugins
	// may be a disk of the host.
	ofKubelet = regexp.MustCompile(`^(etc-hosts|containers/[^/]+/[^/]+|volumes/kubernetes\.io~(configmap|downward-api|empty-dir|projected|secret)/[^/]+)$`)
	// harmless are annotations of Kubernetes itself. Any other may be for the runtime, or a plugin of it, which gives a pod by it what no field requests.
	harmless = regexp.MustCompile(`^([^/]+\.)?kubernetes\.io/`)
	// classes are annotations of Kubernetes all the same by which runtimes put a pod into a class of caches or of disks.
	classes = regexp.MustCompile(`\.resources\.beta\.kubernetes\.io/`)
	// ofKubeletContainer are annotations that the kubelet gives each container.
	ofKubeletContainer = regexp.MustCompile(`^io\.kubernetes\.(container|pod)\.`)
)

// mountsOf names the paths of the host that a container would have. Images, and files and volumes that the kubelet makes for this pod alone, are not of
// the host.
func mountsOf(mounts []*runtime.Mount, podFolder string) []string {
	var found []string
	for _, m := range mounts {
		path := m.GetHostPath()
		if path == "" && m.GetImage() != nil {
			continue
		}
		below, inside := strings.CutPrefix(path, podFolder+"/")
		switch {
		case inside && filepath.Clean(path) == path && ofKubelet.MatchString(below):
		case inside && strings.HasPrefix(below, "volume-subpaths/"):
			found = append(found, fmt.Sprintf("a subPath at %s, of which can't be known whether it is of the host", m.GetContainerPath()))
		default:
			found = append(found, fmt.Sprintf("the host's %s at %s", path, m.GetContainerPath()))
		}
	}
	return found
}

// checkpointImages are annotations by which CRI-O recognizes an image that is a checkpoint.
var checkpointImages = regexp.MustCompile(`^(io\.kubernetes\.cri-o\.annotations\.checkpoint\.|org\.criu\.checkpoint\.)`)

// checkpointOf names what may be a checkpoint, whose processes have the rights that they had: an image with such annotations, and a name that the
// runtime has no image for, and may have a file for.
func checkpointOf(image *runtime.Image) []string {
	if image.GetId() == "" {
		return []string{"a name that is not of an image which the runtime has, and may be a file with a checkpoint"}
	}
	for name := range image.GetSpec().GetAnnotations() {
		if checkpointImages.MatchString(name) {
			return []string{"an image that is a checkpoint"}
		}
	}
	return nil
}

// annotationsOf names the annotations that may be for a runtime, or its plugins.
func annotationsOf(annotations map[string]string, passing *regexp.Regexp) []string {
	var found []string
	for name := range annotations {
		if !passing.MatchString(name) || classes.MatchString(name) {
			found = append(found, "annotation "+name)
		}
	}
	slices.Sort(found)
	return found
}

// devicesOf names the devices of the host that a container would have. An annotation that is not the kubelet's is of a plugin for devices.
func devicesOf(c *runtime.ContainerConfig) []string {
	var found []string
	for _, d := range c.GetDevices() {
		found = append(found, "device "+d.GetHostPath())
	}
	for _, d := range c.GetCDIDevices() {
		found = append(found, "device "+d.GetName())
	}
	return append(found, annotationsOf(c.GetAnnotations(), ofKubeletContainer)...)
}
