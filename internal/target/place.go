package target

import "strings"

// OS is the operating system of a pod, which decides how paths are written.
type OS string

// The operating systems that Kubernetes has nodes of.
const (
	Linux   OS = "linux"
	Windows OS = "windows"
)

// Place is where a workload finds its token: the file token in a folder.
type Place struct {
	OS  OS
	Dir string
}

// TokenFile is the name of the token in its folder.
const TokenFile = "token"

// SecretPlace is where the Secrets of GEP-26 are mounted, by the type of target system.
func SecretPlace(targetType string) Place {
	return Place{OS: Linux, Dir: "/var/run/workload-identity/" + targetType}
}

// DefaultMountPath is the folder below which a pod has a folder for each of its identities.
const DefaultMountPath = "/var/run/secrets/workload-identity"

// PodPlace is where a pod finds the token of an identity, below a mount path: an absolute path with slashes, as volume mounts
// have it on every operating system, or one that begins with a drive.
func PodPlace(os OS, mountPath, identityName string) Place {
	dir := strings.TrimRight(mountPath, `/\`) + "/" + identityName
	if os == Windows {
		if strings.HasPrefix(dir, "/") {
			dir = "C:" + dir
		}
		dir = strings.ReplaceAll(dir, "/", `\`)
	}
	return Place{OS: os, Dir: dir}
}

// File is the path of a file beside the token.
func (p Place) File(name string) string {
	if p.OS == Windows {
		return p.Dir + `\` + name
	}
	return p.Dir + "/" + name
}

// Token is the path of the token.
func (p Place) Token() string { return p.File(TokenFile) }
