package profile

import (
	"bytes"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	accounts "github.com/credence-id/credence/api/accounts/v1alpha1"
	"github.com/credence-id/credence/internal/admission/pods"
	"github.com/credence-id/credence/internal/app/cli/command"
	"github.com/credence-id/credence/internal/app/cli/screen"
	"github.com/credence-id/credence/internal/atomicfile"
	"github.com/credence-id/credence/internal/profile"
	"github.com/credence-id/credence/internal/wording"
)

// hardening is "profile harden": it does to manifests what admission does to pods.
type hardening struct {
	*screen.Terminal

	profiles     []string
	check, write bool
}

func newHarden(terminal *screen.Terminal) *cobra.Command {
	h := &hardening{Terminal: terminal}
	cmd := &cobra.Command{
		Use:   "harden FILE... --profile FILE",
		Short: "Fill in the security context of pods that no admission sees, such as those of a kubelet's own folder",
		Long: `Do to manifests of pods what admission does to pods of an account with a profile: fill
in what they leave open, and refuse what is weaker. It is for pods that no admission
sees: static pods, in the folder of a kubelet. The hardened manifests are printed, or
written by --write; comments are not kept. Pull secrets are not filled in: static pods
have none.

--profile is a file with a ServiceAccountProfile and the SecurityContextTemplate that it
names, or with a template alone, which is then enforced.

Exit codes: 0 done; 1 a pod is refused, and nothing is printed or written, or with
--check something would be filled in; 2 wrong usage, or a file that cannot be used.`,
		Example: `  credence profile harden /etc/kubernetes/manifests/*.yaml --profile restricted.yaml --check
  credence profile harden proxy.yaml --profile restricted.yaml --write`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return command.Usage(cmd, "wanted are files with a pod each")
			}
			return nil
		},
		RunE: h.run,
	}
	cmd.Flags().StringArrayVar(&h.profiles, "profile", nil, "A file with the profile or the template, or with both; may be repeated; required")
	cmd.Flags().BoolVar(&h.check, "check", false, "Change nothing, and exit with 1 if something would be filled in")
	cmd.Flags().BoolVar(&h.write, "write", false, "Write the manifests back into their files, each in one step")
	return cmd
}

func (h *hardening) run(cmd *cobra.Command, files []string) error {
	if h.check && h.write {
		return command.Usage(cmd, "--check changes nothing: leave --write out")
	}
	applied, err := h.profile()
	if err != nil {
		return command.Usage(cmd, "--profile: "+err.Error())
	}
	texts := make([][]byte, len(files))
	open, refused := false, false
	for i, file := range files {
		pod, err := h.pod(file)
		if err != nil {
			return command.Usage(cmd, err.Error())
		}
		os := pods.OS(pod, nil)
		_, noted := pod.Annotations[accounts.AnnotationFilledIn]
		filled := applied.Fill(profile.Pod{Pod: pod, OS: os})
		if !noted {
			// It is for pods that admission has filled in.
			if delete(filled.Pod.Annotations, accounts.AnnotationFilledIn); len(filled.Pod.Annotations) == 0 {
				filled.Pod.Annotations = nil
			}
		}
		if denial := applied.Refuse(profile.Pod{Pod: filled.Pod, OS: os}); denial != nil {
			refused = true
			fmt.Fprintf(h.ErrOut, "error: %s: %s\n", wording.Printable(file), wording.Printable(denial.Message))
		}
		for _, f := range filled.Fields {
			open = true
			if h.check {
				fmt.Fprintf(h.Out, "%s: %s would be %s\n", wording.Printable(file), wording.Printable(f.Path), wording.Printable(f.Value))
			}
		}
		if texts[i], err = manifest(filled.Pod); err != nil {
			return err
		}
		if len(filled.Fields) == 0 && h.write {
			texts[i] = nil // as it is
		}
	}
	if refused || h.check && open {
		return &command.Failure{Code: command.ExitRefused}
	}
	if h.check {
		return nil
	}
	if h.write {
		return writeBack(files, texts)
	}
	_, err = h.Out.Write(bytes.Join(texts, []byte("---\n")))
	return err
}

func writeBack(files []string, texts [][]byte) error {
	for i, file := range files {
		if texts[i] == nil {
			continue
		}
		info, err := os.Stat(file)
		if err == nil {
			err = atomicfile.Replace(file, texts[i], info.Mode().Perm())
		}
		if err != nil {
			return &command.Failure{Line: "error: " + err.Error(), Code: command.ExitUsage, Err: err}
		}
	}
	return nil
}

// pod reads a file with one pod, as a kubelet does.
func (h *hardening) pod(file string) (*corev1.Pod, error) {
	if file == "-" && h.write {
		return nil, fmt.Errorf("standard input cannot be written back: leave --write out")
	}
	objects, err := read(h.In, []string{file})
	if err != nil {
		return nil, err
	}
	if len(objects) != 1 || objects[0].kind != "Pod" || objects[0].apiVersion != "v1" {
		return nil, fmt.Errorf("%s: wanted is one Pod, as a kubelet reads it; pods of other objects get their profile when they are created", file)
	}
	pod := &corev1.Pod{}
	return pod, objects[0].into(pod)
}

// profile reads the profile to apply.
func (h *hardening) profile() (profile.Profile, error) {
	if len(h.profiles) == 0 {
		return profile.Profile{}, fmt.Errorf("give a file with a ServiceAccountProfile or a SecurityContextTemplate")
	}
	objects, err := read(h.In, h.profiles)
	if err != nil {
		return profile.Profile{}, err
	}
	profiles, templates, _, err := definitions(objects)
	if err != nil {
		return profile.Profile{}, err
	}
	if len(profiles) == 0 && len(templates) == 1 {
		alone := accounts.ServiceAccountProfile{}
		alone.Namespace, alone.Name = "static-pods", templates[0].Name
		alone.Spec.SecurityContext = &accounts.ProfileSecurityContext{Mode: accounts.ModeEnforce, TemplateRef: &accounts.TemplateReference{Name: templates[0].Name}}
		profiles = append(profiles, alone)
	}
	if len(profiles) != 1 {
		return profile.Profile{}, fmt.Errorf("wanted is one ServiceAccountProfile, or one SecurityContextTemplate; there are %d and %d", len(profiles), len(templates))
	}
	if s := profiles[0].Spec.Secrets; s != nil {
		s.Allowed, s.ImagePull = appended(s.Allowed, s.ImagePull), nil
	}
	var template *accounts.SecurityContextTemplate
	for i := range templates {
		if templates[i].Name == profile.TemplateOf(&profiles[0]) {
			template = &templates[i]
		}
	}
	resolved := profile.Resolve(&profiles[0], template)
	if len(resolved.Faults) > 0 {
		return profile.Profile{}, resolved.Faults.ToAggregate()
	}
	return resolved, nil
}

// appended adds names to a list, unless that is absent, which allows all of them.
func appended(list, names []string) []string {
	if list == nil {
		return nil
	}
	return append(list, names...)
}
