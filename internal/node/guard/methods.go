package guard

import runtime "k8s.io/cri-api/pkg/apis/runtime/v1"

// Why a method passes undecided.
const (
	reads  = "it reads"
	ends   = "it stops or removes"
	within = "it is of what was created, which was decided on, and gives it no further rights"
	stored = "an image runs only in a container, which is decided on"
	ofNode = "it is a setting of the runtime for all pods"
)

// passing are the methods that pass undecided, and why. Those that are neither here nor decided on are refused: what they create can't be known.
var passing = map[string]string{
	runtime.RuntimeService_Version_FullMethodName:                 reads,
	runtime.RuntimeService_PodSandboxStatus_FullMethodName:        reads,
	runtime.RuntimeService_ListPodSandbox_FullMethodName:          reads,
	runtime.RuntimeService_StreamPodSandboxes_FullMethodName:      reads,
	runtime.RuntimeService_ListContainers_FullMethodName:          reads,
	runtime.RuntimeService_StreamContainers_FullMethodName:        reads,
	runtime.RuntimeService_ContainerStatus_FullMethodName:         reads,
	runtime.RuntimeService_ContainerStats_FullMethodName:          reads,
	runtime.RuntimeService_ListContainerStats_FullMethodName:      reads,
	runtime.RuntimeService_StreamContainerStats_FullMethodName:    reads,
	runtime.RuntimeService_PodSandboxStats_FullMethodName:         reads,
	runtime.RuntimeService_ListPodSandboxStats_FullMethodName:     reads,
	runtime.RuntimeService_StreamPodSandboxStats_FullMethodName:   reads,
	runtime.RuntimeService_Status_FullMethodName:                  reads,
	runtime.RuntimeService_GetContainerEvents_FullMethodName:      reads,
	runtime.RuntimeService_ListMetricDescriptors_FullMethodName:   reads,
	runtime.RuntimeService_ListPodSandboxMetrics_FullMethodName:   reads,
	runtime.RuntimeService_StreamPodSandboxMetrics_FullMethodName: reads,
	runtime.RuntimeService_RuntimeConfig_FullMethodName:           reads,
	runtime.ImageService_ListImages_FullMethodName:                reads,
	runtime.ImageService_StreamImages_FullMethodName:              reads,
	runtime.ImageService_ImageStatus_FullMethodName:               reads,
	runtime.ImageService_ImageFsInfo_FullMethodName:               reads,

	runtime.RuntimeService_StopPodSandbox_FullMethodName:   ends,
	runtime.RuntimeService_RemovePodSandbox_FullMethodName: ends,
	runtime.RuntimeService_StopContainer_FullMethodName:    ends,
	runtime.RuntimeService_RemoveContainer_FullMethodName:  ends,
	runtime.ImageService_RemoveImage_FullMethodName:        ends,

	runtime.RuntimeService_ExecSync_FullMethodName:                  within,
	runtime.RuntimeService_Exec_FullMethodName:                      within,
	runtime.RuntimeService_Attach_FullMethodName:                    within,
	runtime.RuntimeService_PortForward_FullMethodName:               within,
	runtime.RuntimeService_ReopenContainerLog_FullMethodName:        within,
	runtime.RuntimeService_UpdateContainerResources_FullMethodName:  within,
	runtime.RuntimeService_UpdatePodSandboxResources_FullMethodName: within,
	runtime.RuntimeService_CheckpointContainer_FullMethodName:       within,
	runtime.RuntimeService_CheckpointPod_FullMethodName:             within,

	runtime.ImageService_PullImage_FullMethodName:             stored,
	runtime.RuntimeService_UpdateRuntimeConfig_FullMethodName: ofNode,
}

// endless are the streams that end with the kubelet or the runtime alone.
var endless = map[string]bool{runtime.RuntimeService_GetContainerEvents_FullMethodName: true}
