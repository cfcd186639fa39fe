package csi

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/admission/pods"
	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/target"
	"github.com/credence-id/credence/internal/wording"
)

// The attributes that the kubelet adds to those of a volume, by podInfoOnMount and tokenRequests of the CSIDriver.
const (
	ofKubelet    = "csi.storage.k8s.io/"
	podName      = ofKubelet + "pod.name"
	podNamespace = ofKubelet + "pod.namespace"
	podUID       = ofKubelet + "pod.uid"
	podTokens    = ofKubelet + "serviceAccount.tokens"
	ephemeral    = ofKubelet + "ephemeral"
)

// attributes are those of a volume that a pod's author writes.
func attributes() []string {
	return []string{v1alpha1.VolumeAttributeIdentity, v1alpha1.VolumeAttributeMountPath, v1alpha1.VolumeAttributeRegistries}
}

func invalid(format string, values ...any) error {
	return status.Errorf(codes.InvalidArgument, format, values...)
}

// read reads a call, with the pod's token for an audience. Its errors have the code InvalidArgument or FailedPrecondition.
func read(call *spec.NodePublishVolumeRequest, audience string) (request, error) {
	if call.GetVolumeId() == "" {
		return request{}, invalid("the call has no volume id")
	}
	if err := checkPath(call.GetTargetPath()); err != nil {
		return request{}, err
	}
	if err := checkKind(call); err != nil {
		return request{}, err
	}
	given := call.GetVolumeContext()
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if !slices.Contains(attributes(), name) && !strings.HasPrefix(name, ofKubelet) {
			return request{}, invalid("volumeAttributes of the volume has %q, which is not an attribute: there are %s", wording.Abbreviate(wording.Printable(name)), strings.Join(attributes(), ", "))
		}
	}
	r := request{
		path: call.GetTargetPath(),
		pod:  types.NamespacedName{Namespace: given[podNamespace], Name: given[podName]},
		uid:  types.UID(given[podUID]),

		registries: given[v1alpha1.VolumeAttributeRegistries],
	}
	if given[ephemeral] != "true" || r.pod.Namespace == "" || r.pod.Name == "" || r.uid == "" {
		return request{}, status.Errorf(codes.FailedPrecondition, "the kubelet states no pod for the volume: a cluster admin gives CSIDriver %s podInfoOnMount: true and volumeLifecycleModes: [Ephemeral], as Credence installs it", Name)
	}
	var err error
	if r.identity, r.mountPath, err = chosen(r.pod.Namespace, given); err != nil {
		return request{}, err
	}
	if r.group, err = group(call.GetVolumeCapability().GetMount().GetVolumeMountGroup()); err != nil {
		return request{}, err
	}
	r.podToken, r.podTokenExpiry, err = tokenOfPod(call, audience)
	return r, err
}

// checkPath refuses paths at which no kubelet wants a volume.
func checkPath(target string) error {
	if target == "" {
		return invalid("the call has no target path")
	}
	if !filepath.IsAbs(target) || filepath.Clean(target) != target || filepath.Dir(target) == target {
		return invalid("the target path %q is not a clean absolute path", wording.Printable(target))
	}
	return nil
}

// checkKind refuses volumes of other kinds than the one there is.
func checkKind(call *spec.NodePublishVolumeRequest) error {
	capability := call.GetVolumeCapability()
	switch {
	case capability == nil:
		return invalid("the call has no volume capability")
	case capability.GetMount() == nil:
		return invalid("the volume is not a block device: it is mounted")
	case capability.GetMount().GetFsType() != "":
		return invalid("fsType of the volume is %q: leave it out, its files are in memory", wording.Printable(capability.GetMount().GetFsType()))
	case !call.GetReadonly():
		return invalid("the volume is not read-only: set csi.readOnly: true in it")
	}
	for name := range call.GetSecrets() {
		if name != podTokens {
			return invalid("the volume names a Secret: leave nodePublishSecretRef out")
		}
	}
	return nil
}

// chosen are the identity and the path that the pod's author chooses.
func chosen(namespace string, given map[string]string) (types.NamespacedName, string, error) {
	name := given[v1alpha1.VolumeAttributeIdentity]
	if name == "" {
		return types.NamespacedName{}, "", invalid("volumeAttributes of the volume has no %s: it is the name of a WorkloadIdentity in namespace %s", v1alpha1.VolumeAttributeIdentity, namespace)
	}
	if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
		return types.NamespacedName{}, "", invalid("attribute %s of the volume: %q is not a valid name of a WorkloadIdentity: %s", v1alpha1.VolumeAttributeIdentity, wording.Abbreviate(wording.Printable(name)), problems[0])
	}
	mountPath, present := given[v1alpha1.VolumeAttributeMountPath]
	if !present {
		mountPath = path.Join(target.DefaultMountPath, name)
	}
	mountPath, problem := pods.ParseMountPath(mountPath, target.Linux)
	if problem != "" {
		return types.NamespacedName{}, "", invalid("attribute %s of the volume %s: give the absolute path at which containers mount it", v1alpha1.VolumeAttributeMountPath, problem)
	}
	return types.NamespacedName{Namespace: namespace, Name: name}, mountPath, nil
}

func group(text string) (*int64, error) {
	if text == "" {
		return nil, nil
	}
	id, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		return nil, invalid("the volume mount group %q is not a number of a group", wording.Abbreviate(wording.Printable(text)))
	}
	number := int64(id)
	return &number, nil
}

// tokenOfPod is the service-account token of the pod for an audience; empty: that of the API server. Kubelets that know it pass tokens as secrets: what a pod's author
// writes into the attributes does not count then.
func tokenOfPod(call *spec.NodePublishVolumeRequest, audience string) (identity.Token, time.Time, error) {
	text, secret := call.GetSecrets()[podTokens]
	if !secret {
		text = call.GetVolumeContext()[podTokens]
	}
	var tokens map[string]struct {
		Token               string    `json:"token"`
		ExpirationTimestamp time.Time `json:"expirationTimestamp"`
	}
	// The error of the decoder can have a part of the token.
	if text == "" || json.Unmarshal([]byte(text), &tokens) != nil || tokens[audience].Token == "" {
		whose := "the API server"
		if audience != "" {
			whose = "the audience " + audience
		}
		return identity.Token{}, time.Time{}, status.Errorf(codes.FailedPrecondition,
			"the kubelet brings no token of the pod for %s: a cluster admin gives CSIDriver %s tokenRequests: [{audience: %q, expirationSeconds: 600}], as Credence installs it", whose, Name, audience)
	}
	return identity.NewToken(tokens[audience].Token), tokens[audience].ExpirationTimestamp, nil
}

func (r request) String() string {
	return fmt.Sprintf("workload identity %s for pod %s", r.identity, r.pod)
}
