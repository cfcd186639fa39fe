package profile

import (
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	accounts "github.com/credence-id/credence/api/accounts/v1alpha1"
)

// note writes the paths of what was filled in into an annotation of the pod, so that Requested can take it off. Those of an earlier pass stay.
func (f *filler) note() {
	paths := filledIn(f.Pod)
	noted := map[string]bool{}
	for _, path := range paths {
		noted[path] = true
	}
	for _, field := range f.Fields {
		if !noted[field.Path] {
			noted[field.Path] = true
			paths = append(paths, field.Path)
		}
	}
	text := strings.Join(paths, ",")
	if f.Pod.Annotations == nil {
		f.Pod.Annotations = map[string]string{accounts.AnnotationFilledIn: text}
		f.add("/metadata/annotations", map[string]string{accounts.AnnotationFilledIn: text})
		return
	}
	f.Pod.Annotations[accounts.AnnotationFilledIn] = text
	f.add("/metadata/annotations/"+strings.ReplaceAll(accounts.AnnotationFilledIn, "/", "~1"), text)
}

func filledIn(pod *corev1.Pod) []string {
	text := pod.Annotations[accounts.AnnotationFilledIn]
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}

// Requested returns a pod as its author wrote it: a copy without what Fill has filled in, so that it can be decided on again. The
// token that the API server did not add because of that is not added.
func Requested(pod *corev1.Pod) *corev1.Pod {
	paths := filledIn(pod)
	if len(paths) == 0 {
		return pod
	}
	pod = pod.DeepCopy()
	containers := map[string]container{}
	for _, c := range containersOf(pod, nil) {
		containers[c.list+"["+c.name+"]"] = c
	}
	for _, path := range paths {
		switch path {
		case pathAutomount:
			pod.Spec.AutomountServiceAccountToken = nil
		case pathPullSecrets:
			pod.Spec.ImagePullSecrets = nil
		case pathOS:
			pod.Spec.OS = nil
		default:
			empty(pod, containers, path)
		}
	}
	if delete(pod.Annotations, accounts.AnnotationFilledIn); len(pod.Annotations) == 0 {
		pod.Annotations = nil
	}
	return pod
}

var contextPath = regexp.MustCompile(`^spec\.(?:(\w+\[[^\]]*\])\.)?securityContext\.(windowsOptions\.)?(\w+)$`)

// empty empties a field of a security context, and contexts that have no other one.
func empty(pod *corev1.Pod, containers map[string]container, path string) {
	parts := contextPath.FindStringSubmatch(path)
	if parts == nil {
		return
	}
	of, windows, field := parts[1], parts[2] != "", parts[3]
	if of == "" {
		if sc := pod.Spec.SecurityContext; sc != nil && windows {
			emptied(windowsRules, &sc.WindowsOptions, field)
		} else if sc != nil {
			if field == appArmorProfile {
				unannotate(pod, containers, sc.AppArmorProfile)
			}
			emptied(podRules, &pod.Spec.SecurityContext, field)
		}
		if pod.Spec.SecurityContext == nil {
			pod.Spec.SecurityContext = &corev1.PodSecurityContext{} // as the API server sets it
		}
		return
	}
	switch c, has := containers[of]; {
	case !has || *c.context == nil:
	case windows:
		emptied(windowsRules, &(*c.context).WindowsOptions, field)
	default:
		if field == appArmorProfile {
			unannotate(pod, map[string]container{of: c}, (*c.context).AppArmorProfile)
		}
		emptied(containerRules, c.context, field)
	}
}

func emptied[C any](rules []rule[C], in **C, name string) {
	if *in == nil {
		return
	}
	for _, r := range rules {
		// The contents of a credential spec were filled in for its name.
		if r.name == name || name == "gmsaCredentialSpecName" && r.name == "gmsaCredentialSpec" {
			r.fill(*in, new(C))
		}
	}
	if equality.Semantic.DeepEqual(*in, new(C)) {
		*in = nil
	}
}
