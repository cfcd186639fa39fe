package cri

import (
	"errors"
	"fmt"
	"io/fs"
	"path"

	corev1 "k8s.io/api/core/v1"
	runtime "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// seccompProfile is unconfined if it is not set.
func seccompProfile(asked *corev1.SeccompProfile, node Node) (*runtime.SecurityProfile, error) {
	if asked == nil {
		return &runtime.SecurityProfile{ProfileType: runtime.SecurityProfile_Unconfined}, nil
	}
	switch asked.Type {
	case corev1.SeccompProfileTypeRuntimeDefault:
		return &runtime.SecurityProfile{ProfileType: runtime.SecurityProfile_RuntimeDefault}, nil
	case corev1.SeccompProfileTypeUnconfined:
		return &runtime.SecurityProfile{ProfileType: runtime.SecurityProfile_Unconfined}, nil
	case corev1.SeccompProfileTypeLocalhost:
		if asked.LocalhostProfile == nil || !fs.ValidPath(path.Clean(*asked.LocalhostProfile)) || path.Clean(*asked.LocalhostProfile) == "." {
			return nil, errors.New("a seccompProfile of type Localhost must name a file below the node's folder of profiles: set localhostProfile to a relative path")
		}
		return &runtime.SecurityProfile{ProfileType: runtime.SecurityProfile_Localhost, LocalhostRef: path.Join(node.SeccompFolder, *asked.LocalhostProfile)}, nil
	}
	return nil, fmt.Errorf("the type %q of seccompProfile is not known: set it to RuntimeDefault, Localhost or Unconfined", asked.Type)
}

// appArmorProfile is nil if it is not set: the runtime then has its own default.
func appArmorProfile(asked *corev1.AppArmorProfile) (*runtime.SecurityProfile, error) {
	if asked == nil {
		return nil, nil
	}
	switch asked.Type {
	case corev1.AppArmorProfileTypeRuntimeDefault:
		return &runtime.SecurityProfile{ProfileType: runtime.SecurityProfile_RuntimeDefault}, nil
	case corev1.AppArmorProfileTypeUnconfined:
		return &runtime.SecurityProfile{ProfileType: runtime.SecurityProfile_Unconfined}, nil
	case corev1.AppArmorProfileTypeLocalhost:
		if asked.LocalhostProfile == nil || *asked.LocalhostProfile == "" {
			return nil, errors.New("an appArmorProfile of type Localhost must name a profile that is loaded on the node: set localhostProfile")
		}
		return &runtime.SecurityProfile{ProfileType: runtime.SecurityProfile_Localhost, LocalhostRef: *asked.LocalhostProfile}, nil
	}
	return nil, fmt.Errorf("the type %q of appArmorProfile is not known: set it to RuntimeDefault, Localhost or Unconfined", asked.Type)
}

// maskedPaths are hidden from a container, as they reveal or change state of the host, unless it sets procMount to Unmasked.
func maskedPaths(mount *corev1.ProcMountType) []string {
	if mount != nil && *mount == corev1.UnmaskedProcMount {
		return nil
	}
	return []string{
		"/proc/acpi",
		"/proc/asound",
		"/proc/interrupts",
		"/proc/kcore",
		"/proc/keys",
		"/proc/latency_stats",
		"/proc/sched_debug",
		"/proc/scsi",
		"/proc/timer_list",
		"/proc/timer_stats",
		"/sys/devices/virtual/powercap",
		"/sys/firmware",
	}
}

// readonlyPaths are read-only for a container, unless it sets procMount to Unmasked.
func readonlyPaths(mount *corev1.ProcMountType) []string {
	if mount != nil && *mount == corev1.UnmaskedProcMount {
		return nil
	}
	return []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"}
}
